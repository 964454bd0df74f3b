"""The estimator."""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from daimc import _daimc
from daimc._data import Data, array_of
from daimc._impute import complete
from daimc._input import data_of, warn_of_ids
from daimc._mask import refuse_mask_as_y
from daimc._progress import Progress, logger
from daimc._report import page_of
from daimc._scverse import Slots, annotate, is_mudata, warn_of_counts
from daimc._select import Selection, select
from daimc._settings import clusters_of, seed_of, threads_of
from daimc._tables import is_annotated
from daimc._warnings import warn_of_fit

#: Options of a fit by their names here, with their names in the file of a model.
OPTIONS = dict(_daimc.options())


class DAIMC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Doubly aligned incomplete multi-view clustering.

    One matrix V ≥ 0 with a row for each instance is shared by all views; a view shows x ≈ U v. The bases U of the views
    are aligned by a regression whose coefficients B are sparse in features.

    Where a parameter is `None`, the preset decides.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    n_components : int, default=None
        Columns of V; as many as clusters by default.
    preset : {"default", "paper"}, default="default"
        Where the other options start from; "paper" is the published algorithm.
    alpha : float, default=None
        Weight of the alignment of the bases.
    beta : float, default=None
        Weight of the sparsity of B.
    scale : str or dict, default=None
        How views are scaled: "auto", "none", "unit", "min-max", "min-max-unit", "z-score", "z-score-unit", "tf-idf",
        "log" (of 1 + x, then as "min-max-unit") or "log-unit".
        "auto", the default, tries "min-max-unit" and "unit" on a sample of the instances and takes the one whose clusters
        neighbours in single views predict better, of logarithms where dense values are not negative and
        heavy-tailed; sparse counts are scaled by "tf-idf". A dictionary
        says it for some views by name, and under the key `None` for all others.
    top_features : int, default=None
        Only so many features of each view are used, those of largest variance (of logarithms, where these are taken). By
        default all are.
    equal_weight : bool, default=None
        Whether views are brought to equal weight after scaling.
    init : {"aligned", "paper"} or array of shape (n_samples, n_components), default=None
        How V starts.
    solver : {"coordinate", "multiplicative"}, default=None
        How V is updated.
    passes : int, default=None
        Passes of the solver over a row in one iteration, at most.
    max_iter : int, default=None
        Iterations, at most.
    tol : float, default=None
        The fit has converged when the objective changes by less than this share.
    n_init : int, default=None
        Starts of each k-means.
    runs : int, default=None
        Fits from so many starts that are combined into one clustering. `confidence_` is then higher where they agree,
        and `feature_stability_` tells which features do not depend on the start.
    neighbours : {"off", "refine", "embed", "auto"}, default=None
        Whether it is used who is near whom in each view: "refine" cuts the clusters from the graph of neighbours, "embed"
        fits to the eigenvectors of each view's graph, "auto" is a vote of V alone and two such cuts, weighted by how well
        neighbours in single views predict the clusters. By default "auto", and "off" in the paper's preset
        and beyond 200 000 instances. `neighbours_` says what was done. New instances are placed by their own values alone.
    view_weights : {"equal", "learned"}, default=None
        Whether a view that the other views cannot predict counts less. By default all count alike.
    penalty : {"published", "relative", "auto"}, default=None
        What `alpha` and `beta` are measured by: as published, by the data (`beta` is then a share from 0 to 1 below which
        features are left out), or chosen by the prediction of hidden rows.
    assess : bool, default=None
        Whether clusters are compared with those of permuted data (`significance_`) and of parts of the data
        (`reproducibility_`, by which `confidence_` is tempered), by 17 quick fits to a sample. The labels do not depend on
        it. By default they are.
    view_slices : list or dict, default=None
        Where X is one matrix: its views, each a slice or a list of columns (numbers or names); a dictionary also names
        them. By default the matrix is one view.
    id_column : str, default=None
        Where views are DataFrames: the column with the IDs of instances. By default the index of pandas. It is no feature,
        and `view_slices` does not count it.
    layer : str or dict, default=None
        Where X is an AnnData or a MuData: the layer that is the view, for every modality or by modality. By default `.X`.
    use_rep : str or dict, default=None
        The same for a key of `.obsm`, such as "X_pca".
    key_added : str, default="daimc"
        Under which name a fit writes its results into an AnnData or a MuData; see the notes. `None`: it leaves it as it is.
    handle_unseen : {"error", "keep"}, default="error"
        What becomes of an instance that no view shows: it is an error, or it is kept in its place without a cluster. Its
        label is then -1, its confidence 0, and its rows of `embedding_` and `contributions_` are NaN, as are those that
        `transform`, `contributions` and `impute` return. Nothing else depends on it, and it is not in the file of a model.
    random_state : int, Generator, RandomState or None, default=None
        Where every random draw comes from. An integer is the seed that the command line and the Rust library take.
    n_jobs : int, default=None
        Threads; `None` and -1 stand for all processors. The result does not depend on them.
    verbose : bool, default=False
        Whether a bar shows how far the fit is.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each instance; clusters are numbered by size, 0 is the largest. Instances stand in the order of the
        rows; where views are joined by ID, in the order in which the views first list them, which is the order of the index
        where all views have the same.
    embedding_ : ndarray of shape (n_samples, n_components)
        V.
    confidence_ : ndarray of shape (n_samples,)
        How sure each instance's cluster is, from 0 to 1: an estimate of the share of fits to resampled data in which the instance
        stays with its cluster.
    basis_, alignment_ : list of ndarray of shape (n_features of the view, n_components)
        U and B of each view.
    feature_relevance_ : list of ndarray of shape (n_features of the view,)
        How much each feature matters: the length of its row of B.
    feature_stability_ : list of ndarray of shape (n_features of the view, n_clusters), or None
        The share of the runs in which each feature leads each cluster: in which it is among those of largest absolute weight
        (`feature_weights`), a twentieth of the view's features but at least ten and at most half, on the same side, for
        or against. `None` if there was but one run.
    contributions_ : ndarray of shape (n_samples, n_views)
        What each view says for the cluster of each instance, from -1 to 1; NaN where the view does not show the instance. The
        evidence of a view is how much nearer the instance's row is to what the model expects of its own cluster than to what
        it expects of the strongest other cluster, in squared distance after scaling; the contribution is the view's share
        of it. Below zero, the view speaks against the cluster. Without their signs, the contributions of an instance sum
        to 1, unless no view says anything: then they are 0. Not there after `load`, which has no data: see the method `contributions`.
    objective_ : float
        The objective of the result.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each iteration.
    n_iter_ : int
        Iterations that were run.
    converged_ : bool
        Whether the objective came to rest, or at least the clusters: where `max_iter` was reached, no more than one in 200
        instances changed its largest column of V during the last fifth of the iterations.
    neighbours_ : tuple of str
        What was made of the neighbourhoods, and why.
    missingness_ : dict
        How far the clusters go together with which views instances have: `information`, the mutual information of the two
        in nats less its mean over permutations of the presence patterns, and `p_value`, the share of the permutations that
        have as much. Where they go together so far that it matters, `fit` gives a :class:`MissingnessWarning`.
    significance_ : dict or None
        Whether the clusters are clearer than chance: `agreement`, how far neighbours in single views agree on the clusters
        of a sample (0 to 1), `by_chance`, the same where every feature is permuted, and `deviation`, the standard deviation of
        that. `fit` gives a :class:`SignificanceWarning` where the agreement is less than 3.5 of these beyond chance. None
        where there are fewer than five samples for a cluster.
    reproducibility_ : float or None
        How far parts of the data lead to the same clusters: the mean share of samples that stay where they are in quick fits to
        four fifths of a subsample. `confidence_` is made of it and of how clear the cluster of each sample is.
    missing_cells_ : list of ndarray of shape (n_features of the view,)
        How many of the instances that each view shows lack each of its features. A feature that all lack takes no part.
    run_agreement_ : ndarray of shape (runs,)
        The share of the samples that each of several runs puts where all together do; empty with one run. How far they are
        apart tells how much the result depends on its start.
    view_names_ : list of str
        The names of the views.
    ids_ : ndarray of shape (n_samples,)
        The IDs of the instances, in the order of `labels_`: the index of pandas, also where X is one DataFrame, or
        what `id_column` names; row numbers where none were given.
    seed_ : int
        The seed that `random_state` came to.
    n_features_in_ : int
        Features of all views together.

    Notes
    -----
    X may be a list or a dictionary of matrices whose rows are the same instances; a dictionary or list of pandas or polars
    DataFrames, whose rows are joined by ID; a MuData, each modality of which is a view; an AnnData, which is one view; or one
    matrix with `view_slices`. Matrices are numpy arrays of any order or scipy matrices.
    A `numpy.memmap` is read where it lies, and in a dictionary the name of a `.npy` file stands for its array, mapped:
    data that do not fit into memory are not copied.
    Missing is a row of NaN, an ID that a table does not have, or what `mask` says. A row of an array or a DataFrame may also be NaN
    in part: the fit counts the cells that are there, and `missing_cells_` how many are not. A sparse matrix has no such
    cells, since what it does not store is zero: NaN in part of a row is an error there.
    Tables of other libraries (Dask, Modin, cuDF, Spark, pyarrow, xarray) are refused: as arrays they would lose their IDs.
    After `set_output(transform="pandas")` the DataFrames that come out have the index of the tables.

    A fit writes into the AnnData or MuData that it is given: clusters to `.obs["daimc"]`, confidence to
    `.obs["daimc_confidence"]`, V to `.obsm["X_daimc"]`, contributions to `.obsm["daimc_contributions"]`, the weights of features to
    `.varm["daimc_weights"]` (of each modality, where features are those of `.var`), and options, scalings with their reasons and
    the version to `.uns["daimc"]`. `predict` and its kin find features by their names there: others are passed over.
    Raw counts are told by a `CountsWarning`.

    A `SignificanceWarning` tells that the clusters are no clearer than chance, a `MissingnessWarning` that they go together with
    which views show an instance.

    References
    ----------
    M. Hu and S. Chen, Doubly Aligned Incomplete Multi-view Clustering, IJCAI 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from daimc import DAIMC
    >>> a = np.array([[1.0, 0.1], [0.9, 0.0], [0.1, 1.0], [0.0, 0.8], [1.1, 0.0]])
    >>> b = np.array([[3.0], [3.1], [-2.9], [-3.0], [np.nan]])
    >>> model = DAIMC(n_clusters=2, random_state=0).fit([a, b])
    >>> bool(model.labels_[0] == model.labels_[4] != model.labels_[2])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        preset: str = "default",
        alpha: float | None = None,
        beta: float | None = None,
        scale: str | dict[str | None, str] | None = None,
        top_features: int | None = None,
        equal_weight: bool | None = None,
        init: Any = None,
        solver: str | None = None,
        passes: int | None = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_init: int | None = None,
        runs: int | None = None,
        neighbours: str | None = None,
        view_weights: str | None = None,
        penalty: str | None = None,
        assess: bool | None = None,
        view_slices: Any = None,
        id_column: str | None = None,
        layer: str | dict[str, str] | None = None,
        use_rep: str | dict[str, str] | None = None,
        key_added: str | None = "daimc",
        handle_unseen: str = "error",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.n_components = n_components
        self.preset = preset
        self.alpha = alpha
        self.beta = beta
        self.scale = scale
        self.top_features = top_features
        self.equal_weight = equal_weight
        self.init = init
        self.solver = solver
        self.passes = passes
        self.max_iter = max_iter
        self.tol = tol
        self.n_init = n_init
        self.runs = runs
        self.neighbours = neighbours
        self.view_weights = view_weights
        self.penalty = penalty
        self.assess = assess
        self.view_slices = view_slices
        self.id_column = id_column
        self.layer = layer
        self.use_rep = use_rep
        self.key_added = key_added
        self.handle_unseen = handle_unseen
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # --- fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, mask: Any = None) -> DAIMC:
        """Clusters the instances of X.

        Parameters
        ----------
        X : views
            See the notes of the class.
        y : ignored
            For scikit-learn. What looks like a mask is refused here.
        mask : array of shape (n_samples, n_views), list, dict or DataFrame, default=None
            `True` where a view shows an instance. A list has a vector for each view, a dictionary one by name. Where views
            are joined by ID, a DataFrame has IDs as index and views as columns.
        """
        self._fit(X, y, mask)
        return self

    def fit_predict(self, X: Any, y: Any = None, *, mask: Any = None) -> NDArray[np.int64]:
        """Clusters the instances of X and returns `labels_`."""
        self._fit(X, y, mask)
        return self.labels_

    def fit_transform(self, X: Any, y: Any = None, *, mask: Any = None) -> NDArray[np.float64]:
        """Clusters the instances of X and returns `embedding_`."""
        data = self._fit(X, y, mask)
        return self._framed(self.embedding_, data)

    def select(
        self,
        X: Any,
        n_clusters: Iterable[int] = range(2, 13),
        *,
        mask: Any = None,
        n_resamples: int = 10,
        hidden: float = 0.5,
    ) -> Selection:
        """Recommends a number of clusters for X, without labels.

        The data are resampled: instances lose some of their views, and a fit sees the rest. The number is recommended
        whose clusters resamples agree on, and which predict what was hidden from them. The other parameters are those of
        this estimator, which stays as it is; only `neighbours` is "off" here, and `init` may not be an array.

        Parameters
        ----------
        X : views
            See the notes of the class.
        n_clusters : iterable of int, default=range(2, 13)
            The numbers to choose among, at least two, each from 2 to below the number of instances.
        mask : array, list, dict or DataFrame, default=None
            As for `fit`.
        n_resamples : int, default=10
            How often the data are resampled, with a fit for each number of clusters.
        hidden : float, default=0.5
            How much a resample hides: of what an instance is seen in beyond one view, this share.

        Returns
        -------
        Selection
            `n_clusters` is the recommendation, `estimator` is this estimator with it, ready to be fitted.

        Examples
        --------
        >>> from daimc import DAIMC, datasets
        >>> data = datasets.make_views(120, 3, [10, 20], random_state=0)
        >>> selection = DAIMC(random_state=0).select(data.views, range(2, 6), n_resamples=4)
        >>> selection.n_clusters
        3
        >>> labels = selection.estimator.fit_predict(data.views)
        """
        return select(self, X, n_clusters, mask, n_resamples, hidden)

    # --- new instances ------------------------------------------------------------------------------------------------

    def predict(self, X: Any, *, mask: Any = None) -> NDArray[np.int64]:
        """The clusters of new instances, from whichever views they have.

        A list has `None` in the place of a view that is absent; a dictionary may leave it out.
        """
        return self._place(X, mask)[2]

    def transform(self, X: Any, *, mask: Any = None) -> NDArray[np.float64]:
        """The rows of V of new instances, with the bases fixed."""
        data, rows, _ = self._place(X, mask)
        return self._framed(rows, data)

    def contributions(self, X: Any, *, mask: Any = None) -> NDArray[np.float64]:
        """What each view says for the clusters of new instances, as `contributions_` does for those of the fit.

        An array of instances × `view_names_`, with NaN where X does not show an instance.
        """
        check_is_fitted(self)
        data = self._read(X, mask, reset=False)
        found = self._model.contributions(data.views, data.joined, threads_of(self.n_jobs))
        return data.spread(found, np.nan)

    def impute(self, X: Any, *, mask: Any = None, return_error: bool = False) -> Any:
        """X with what is missing filled in: rows of views, and cells of other rows.

        A missing value is a mean of what the nearest instances have, of what those of the same cluster have, and of what the
        model reconstructs, each counting as much as is best for values of X that are there and were hidden. Values are learnt
        from X alone, and stay within the range that a feature has there: give new instances together with those of the
        fit. In a view that shows fewer than eight instances there is the reconstruction alone.

        What is there comes out as it is. The result is of the form of X: a list, a dictionary, an AnnData, a MuData or one matrix, and
        DataFrames where X has DataFrames. Rows stand in the order of `instance_ids(X)`; a view that is absent in X comes out
        whole.

        Parameters
        ----------
        X : as in `fit`
            The instances.
        mask : as in `fit`
            Which views show which instances.
        return_error : bool, default=False
            Whether to return how good it is, too.

        Returns
        -------
        filled : of the form of X
            The views.
        error : dict of dict of float
            With `return_error`. For each view the root mean squared error of `"rows"` and of `"cells"` that were there and were
            hidden, in standard deviations of each feature (filled in with the mean it is about 1, and more where values are
            heavy-tailed); NaN where nothing was missing or nothing could be tried.
        """
        data, latent, _ = self._place(X, mask)
        threads = threads_of(self.n_jobs)
        slots = Slots(self.layer, self.use_rep)
        filled, error = complete(self._model, X, data, latent, self.view_slices, self.id_column, slots, threads)
        return (filled, error) if return_error else filled

    def score(self, X: Any, y: Any = None, *, mask: Any = None) -> float:
        """The share of the (scaled) data that the model explains: 1 − Σ‖x − Uv‖² / Σ‖x‖², at most 1."""
        check_is_fitted(self)
        data = self._read(X, mask, reset=False)
        refuse_mask_as_y(y, data.views)
        error, square = self._model.misfit(data.views, data.joined, threads_of(self.n_jobs))
        return 1.0 - error / square if square > 0 else 0.0

    def instance_ids(self, X: Any, *, mask: Any = None) -> NDArray[Any]:
        """The IDs of the instances of X, in the order in which results are given."""
        check_is_fitted(self)
        return array_of(self._read(X, mask, reset=False).names.given)

    def feature_weights(self, view: str) -> NDArray[np.float64]:
        """What each feature of a view says for each cluster: an array of features × clusters."""
        check_is_fitted(self)
        return self._model.weights(view)

    def feature_names(self, view: str) -> list[str]:
        """The names of a view's features; their numbers where they have none."""
        check_is_fitted(self)
        names = self._model.features(view)
        return names or [str(number) for number in range(len(self._model.relevance(view)))]

    def scaling(self, view: str) -> tuple[str, str]:
        """How a view was scaled, and why."""
        check_is_fitted(self)
        return self._model.scaling(view)

    # --- files --------------------------------------------------------------------------------------------------------

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the model to the safetensors file that the command line also reads and writes."""
        check_is_fitted(self)
        self._model.save(path)

    def report(
        self, path: str | PathLike[str], X: Any = None, truth: Any = None, title: str | None = None, *, mask: Any = None
    ) -> None:
        """Writes the page about the clusters that `daimc fit` also writes: one HTML file, which needs no other.

        Parameters
        ----------
        path : path-like
            The file.
        X : views
            The data of the fit, which a model does not keep. Other data are an error.
        truth : array-like of shape (n_samples,) or Series, default=None
            Known classes, in the order of `labels_`, to compare the clusters with; those of a Series are found by ID. `None` and NaN
            are not known.
        title : str, default=None
            The title of the page.
        mask : as in `fit`
            Which views show which instances.
        """
        check_is_fitted(self)
        page = page_of(self, X, truth, title, mask)
        Path(path).write_text(page, encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str], **params: Any) -> DAIMC:
        """Reads a model that `save` or `daimc fit` wrote.

        What is no option of the fit is not in the file: give `view_slices`, `id_column`, `layer`, `use_rep`, `handle_unseen`,
        `n_jobs` as `params`.
        """
        model = _daimc.Model.load(path)
        stored = json.loads(model.options)
        options = {name: stored[key] for name, key in OPTIONS.items()}
        if options["n_components"] == stored["clusters"]:
            options["n_components"] = None
        if stored["view_scales"]:
            options["scale"] = {None: stored["scale"], **stored["view_scales"]}
        loaded = cls(stored["clusters"], **{"random_state": stored["seed"], **options, **params})
        loaded._adopt(model, None)
        loaded.n_features_in_ = sum(len(basis) for basis in loaded.basis_)
        loaded.ids_ = np.arange(len(loaded.labels_)) if model.ids is None else array_of(model.ids)
        return loaded

    # --- the inside ---------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, mask: Any) -> Data:
        """What `fit` and its kin do, one call above it, where warnings point to."""
        clusters, seed, threads = clusters_of(self.n_clusters), seed_of(self.random_state), threads_of(self.n_jobs)
        options, start = self._options()
        resolved = json.loads(_daimc.resolve(clusters, seed, options))
        data = self._read(X, mask, reset=True)
        refuse_mask_as_y(y, data.views)
        instances = int(np.count_nonzero(data.seen))
        if instances < clusters:
            raise ValueError(f"n_samples={instances} should be >= n_clusters={clusters}")
        if start is not None and len(start) == len(data.seen):
            start = start[data.seen]

        progress = Progress(bool(self.verbose), resolved["max_iterations"], resolved["runs"])
        each = progress if progress.wanted else None
        try:
            fitted = _daimc.fit(data.views, data.joined, clusters, seed, options, start, threads, each)
        except BaseException as error:
            progress.close("stopped" if isinstance(error, KeyboardInterrupt) else "failed")
            raise
        model, alone, contributions = fitted
        progress.close("converged" if model.converged else "not converged")
        warn_of_ids(data, alone, stacklevel=4)
        self._adopt(model, data)
        self.contributions_ = data.spread(contributions, np.nan)
        self.ids_ = array_of(data.names.given)
        logger.info(
            "%d instances in %d view(s): %s after %d iterations, objective %.6g",
            instances,
            len(self.view_names_),
            "converged" if self.converged_ else "not converged",
            self.n_iter_,
            self.objective_,
        )
        warn_of_fit(model, stacklevel=4)
        if is_mudata(X) or is_annotated(X):
            warn_of_counts(self, data, stacklevel=4)
            if self.key_added is not None:
                annotate(X, self, data)
        return data

    def _options(self) -> tuple[dict[str, Any], NDArray[np.float64] | None]:
        """The options that were given, and V where it is given to start from."""
        options = {name: getattr(self, name) for name in OPTIONS}
        start = None
        if options["init"] is not None and not isinstance(options["init"], str):
            start = np.array(options.pop("init"), dtype=np.float64, ndmin=2)
        return {name: value for name, value in options.items() if value is not None}, start

    def _read(self, X: Any, mask: Any, reset: bool) -> Data:
        return data_of(self, X, mask, reset)

    def _place(self, X: Any, mask: Any) -> tuple[Data, NDArray[np.float64], NDArray[np.int64]]:
        """New instances with their rows of V and their clusters."""
        check_is_fitted(self)
        data = self._read(X, mask, reset=False)
        latent, labels, _ = self._model.place(data.views, data.joined, threads_of(self.n_jobs))
        return data, data.spread(latent, np.nan), data.spread(labels, -1)

    def _framed(self, rows: NDArray[np.float64], data: Data) -> NDArray[np.float64]:
        """Rows of V with the index of the tables where pandas is wanted: scikit-learn knows that of one DataFrame only."""
        if data.names.index is None or _get_output_config("transform", self)["dense"] != "pandas":
            return rows
        import pandas

        frame: NDArray[np.float64] = pandas.DataFrame(rows, index=data.names.index)
        return frame

    def _adopt(self, model: _daimc.Model, data: Data | None) -> None:
        """Takes what a model says of its instances, and of those of `data` that it did not see."""

        def spread(found: NDArray[Any], blank: float) -> NDArray[Any]:
            return found if data is None else data.spread(found, blank)

        self._model = model
        self.view_names_ = model.views
        self.labels_: NDArray[np.int64] = spread(model.labels, -1)
        self.embedding_: NDArray[np.float64] = spread(model.latent, np.nan)
        self.confidence_: NDArray[np.float64] = spread(model.confidence, 0.0)
        self.basis_ = [model.basis(view) for view in self.view_names_]
        self.alignment_ = [model.alignment(view) for view in self.view_names_]
        self.feature_relevance_ = [model.relevance(view) for view in self.view_names_]
        stability = [model.stability(view) for view in self.view_names_]
        known = [shares for shares in stability if shares is not None]
        self.feature_stability_ = known if len(known) == len(stability) else None
        self.objective_ = model.objective
        self.objective_history_ = model.history
        self.n_iter_ = len(self.objective_history_)
        self.converged_ = model.converged
        self.neighbours_ = model.neighbours
        information, p_value, _ = model.missingness
        self.missingness_ = {"information": information, "p_value": p_value}
        self.reproducibility_ = model.reproducibility
        significance = model.significance
        self.significance_ = None
        if significance is not None:
            agreement, by_chance, deviation, _ = significance
            self.significance_ = {"agreement": agreement, "by_chance": by_chance, "deviation": deviation}
        self.missing_cells_ = [model.missing_cells(view) for view in self.view_names_]
        self.run_agreement_ = np.array([agreement for *_, agreement in model.runs])
        self.seed_ = int(json.loads(model.options)["seed"])

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A cell of a dense matrix that is NaN is missing.
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
