"""The estimator."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import copy
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from daimc import _daimc
from daimc._dask import client_of, is_dask
from daimc._data import Data, array_of
from daimc._impute import complete
from daimc._input import data_of, warn_of_ids
from daimc._mask import refuse_mask_as_y
from daimc._online import update
from daimc._progress import Progress, logger
from daimc._report import page_of
from daimc._scverse import Slots, annotate, is_mudata, warn_of_counts
from daimc._select import Selection, select
from daimc._settings import clusters_of, device_of, seed_of, threads_of
from daimc._tables import is_annotated
from daimc._warnings import warn_of_fit

#: The names of the options of a fit in Python, with their names in a model file.
OPTIONS = dict(_daimc.options())


class DAIMC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """Doubly aligned incomplete multi-view clustering.

    All views share one matrix V ≥ 0 with a row v for each instance; each view is modelled as x ≈ U v. The bases U of
    the views are aligned by a regression whose coefficients B are sparse in features.

    If a parameter is `None`, the preset determines its value.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    n_components : int, default=None
        The number of columns of V; by default, the number of clusters.
    preset : {"default", "paper"}, default="default"
        Defaults of the other options; "paper" is the published algorithm.
    alpha : float, default=None
        Weight of the alignment of the bases.
    beta : float, default=None
        Weight of the sparsity of B.
    scale : str or dict, default=None
        How views are scaled: "auto", "none", "unit", "min-max", "min-max-unit", "z-score", "z-score-unit", "tf-idf",
        "log" (of 1 + x, then as "min-max-unit") or "log-unit". "auto", the default, takes the likeliest of
        "unit", "min-max-unit" and "z-score-unit" ("log-unit" and "log" for dense, non-negative, heavy-tailed values;
        "tf-idf" for sparse counts), unless neighbours in single views predict the clusters of another one clearly
        better, on a sample of the instances. A dictionary sets the scaling of some views by name and, under the key
        `None`, of all others.
    top_features : int, default=None
        Use only this number of features of each view, those with the largest variance (of the logarithms, where these
        are taken). By default all features are used.
    equal_weight : bool, default=None
        Whether views are given equal weight after scaling.
    init : {"aligned", "paper"} or array of shape (n_samples, n_components), default=None
        How V is initialised.
    solver : {"coordinate", "multiplicative"}, default=None
        How V is updated.
    passes : int, default=None
        Maximum number of passes of the solver over a row in one iteration.
    max_iter : int, default=None
        Maximum number of iterations.
    tol : float, default=None
        The fit has converged when the relative change of the objective is below this threshold.
    n_init : int, default=None
        Number of initialisations of each k-means.
    runs : int, default=None
        Number of runs, from different starts, that are combined into one clustering. `confidence_` is then higher
        where they agree, and `feature_stability_` shows which features do not depend on the start.
    neighbours : {"off", "refine", "embed", "auto"}, default=None
        Use of nearest neighbours within each view: "refine" cuts the clusters from the kNN graph, "embed" fits to the
        eigenvectors of each view's kNN graph, "auto" is a vote of V alone and two such cuts, weighted by how well
        neighbours in single views predict the clusters. By default "auto", and "off" in the paper's preset.
        `neighbours_` describes what was done. If neighbours were used, `predict` also uses the neighbours of new
        instances among those of the fit.
    neighbours_budget : float, default=None
        The CPU time that neighbourhoods may take if `neighbours` is "auto", in seconds of one core. Their cost
        is estimated from the shape of the data, and methods that would take longer are skipped. By default ten times
        the time of the fit without them, at least a minute.
    view_weights : {"equal", "learned"}, default=None
        Whether a view that the other views cannot predict gets a lower weight. By default all views have equal
        weight.
    penalty : {"published", "relative", "auto"}, default=None
        The scale of `alpha` and `beta`: as published, relative to the data (`beta` is then a share from 0 to 1 below
        which features are dropped), or chosen by the prediction of hidden rows.
    assess : bool, default=None
        Whether clusters are compared with those of permuted data (`significance_`) and of parts of the data
        (`reproducibility_`, by which `confidence_` is tempered), with 17 quick fits to a sample. The labels do not
        depend on it. By default they are compared, except in the paper's preset: `significance_` and
        `reproducibility_` are then None, and `confidence_` is the plain margin.
    map : bool, default=True
        Whether there is a map of the instances (`map_`), for which the fitted estimator keeps the graph that the
        clusters were cut from, until it is used. The labels do not depend on it.
    view_slices : list or dict, default=None
        If X is one matrix: its views, each a slice or a list of columns (numbers or names); a dictionary also names
        them. By default the matrix is one view.
    id_column : str, default=None
        If views are DataFrames: the column with the IDs of instances. By default the pandas index. It is not a
        feature, and `view_slices` does not count it.
    layer : str or dict, default=None
        If X is an AnnData or a MuData: the layer to use as the view, for every modality or by modality. By default
        `.X`.
    use_rep : str or dict, default=None
        The same for a key of `.obsm`, such as "X_pca".
    key_added : str, default="daimc"
        The name under which a fit writes its results into an AnnData or a MuData; see the notes. With `None`, nothing
        is written.
    handle_unseen : {"error", "keep"}, default="error"
        What to do with an instance that is missing from every view: raise an error, or keep it in its place without a
        cluster. Its label is then -1, its confidence 0, and its rows of `embedding_`, `map_` and `contributions_` are
        NaN, as are those that `transform`, `contributions` and `impute` return. Nothing else depends on it, and it is
        not stored in the model file.
    random_state : int, Generator, RandomState or None, default=None
        The source of randomness. An integer is the same seed as that of the command line and the Rust library.
    n_jobs : int, default=None
        The number of threads; `None` and -1 mean all processors. The result does not depend on it.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        The device for the iterations and the search for neighbours: the CPU, an NVIDIA GPU ("cuda:1" is the second,
        "cuda:0,1" two that share the rows), or "auto", a GPU if one is available and the fit takes more than two
        seconds. The results of a GPU differ from those of the CPU by rounding errors. Only the methods that fit use
        it, and not with Dask or MPI. If views are GPU arrays, it has to be their GPU, or "auto".
    precision : {"single", "tf32"}, default="single"
        The precision of products on a GPU; "tf32" is faster and rounds factors to 11 bits.
    verbose : bool, default=False
        Whether to show a progress bar.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        The cluster of each instance; clusters are numbered by size, 0 is the largest. Instances are in the order of
        the rows; if views are joined by ID, in the order in which they first appear in the views, which is the order
        of the index if all views share it.
    embedding_ : ndarray of shape (n_samples, n_components)
        V.
    map_ : ndarray of shape (n_samples, 2) or None
        A map of the instances, as in UMAP: a layout of the graph that the clusters were cut from, in which instances
        that are close to each other in the views and in V attract, and all others repel each other; of the kNN graph
        of the rows of V if neighbourhoods were not used. Distances between separate clusters mean little. It is
        computed when it is first used: here, by `plots`, `report` and `save`, when the estimator is pickled, and for
        an AnnData or a MuData that the fit writes to; with Dask and MPI, by `fit`. `None` with `map=False`, after
        `partial_fit`, for files of versions without maps, and after a fit with Dask or MPI if the driving process
        lacks the memory for V of all instances and its graph.
    confidence_ : ndarray of shape (n_samples,)
        The confidence in each instance's cluster, from 0 to 1: an estimate of the share of fits to resampled data in
        which the instance stays with its cluster.
    basis_, alignment_ : list of ndarray of shape (n_features of the view, n_components)
        U and B of each view.
    feature_relevance_ : list of ndarray of shape (n_features of the view,)
        The relevance of each feature: the norm of its row of B.
    feature_stability_ : list of ndarray of shape (n_features of the view, n_clusters), or None
        The share of runs in which each feature leads each cluster, that is, is among those with the largest absolute
        weights (`feature_weights`), a twentieth of the view's features but at least ten and at most half, with the
        same sign. `None` if there was only one run.
    contributions_ : ndarray of shape (n_samples, n_views)
        How strongly each view supports the cluster of each instance, from -1 to 1; NaN where the instance is missing
        from the view. The evidence of a view is how much closer the instance's row is to what the model expects of
        its own cluster than to what it expects of the strongest other cluster, in squared distance after scaling; the
        contribution is the view's share of it. A negative value is evidence against the cluster. The absolute
        contributions of an instance sum to 1, unless no view has any evidence: then they are 0. Not available after
        `load`, which has no data: see the method `contributions`.
    objective_ : float
        The final value of the objective.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each iteration.
    n_iter_ : int
        The number of iterations.
    converged_ : bool
        Whether the objective converged, or at least the clusters: if `max_iter` was reached, no more than one in 200
        instances changed its largest column of V during the last fifth of the iterations.
    neighbours_ : tuple of str
        How neighbourhoods were used, and why.
    device_ : str
        The device that was used: "cpu", or the name of the GPU.
    missingness_ : dict
        How strongly the clusters are associated with which views instances have: `information`, the mutual
        information of the two in nats minus its mean over permutations of the presence patterns, and `p_value`, the
        share of permutations with at least as much. If the association is strong enough to matter, `fit` issues a
        :class:`MissingnessWarning`.
    significance_ : dict or None
        Whether the clusters are clearer than chance: `agreement`, how well neighbours in single views agree on the
        clusters of a sample (0 to 1), `by_chance`, the same with every feature permuted, and `deviation`, its
        standard deviation. `fit` issues a :class:`SignificanceWarning` if the agreement is less than 3.5 standard
        deviations above chance. None if clusters were not compared (see `assess`) or there are fewer than five samples
        per cluster.
    reproducibility_ : float or None
        How reproducible the clusters are from parts of the data: the mean share of samples that keep their cluster in
        quick fits to four fifths of a subsample. `confidence_` combines it with how clear the cluster of each sample
        is. None if clusters were not compared (see `assess`).
    missing_cells_ : list of ndarray of shape (n_features of the view,)
        For each feature, how many of the instances present in the view lack its value. A feature without any value is
        ignored.
    run_agreement_ : ndarray of shape (runs,)
        The share of samples that each of several runs assigns to the same cluster as the combined result; empty with
        one run. Their spread shows how much the result depends on its start.
    view_names_ : list of str
        The names of the views.
    ids_ : ndarray of shape (n_samples,)
        The IDs of the instances, in the order of `labels_`: the pandas index, also if X is one DataFrame, or the
        column `id_column`; row numbers if none were given.
    update_ : Update
        How far the model moved in the last `partial_fit` that was not the first: `drift` and `cluster_drift` by view,
        `unexplained` and `emerging` instances of the batch, `died` clusters. Not available after a fit.
    seed_ : int
        The seed derived from `random_state`.
    n_features_in_ : int
        The total number of features of all views.

    Notes
    -----
    X may be a list or a dictionary of matrices whose rows are the same instances; a dictionary or list of pandas or
    polars DataFrames, whose rows are joined by ID; a MuData, each modality of which is a view; an AnnData, which is
    one view; or one matrix with `view_slices`. Matrices are numpy arrays of any memory layout or scipy matrices. With
    `device="cuda"` they may also be GPU arrays with `__cuda_array_interface__` (CuPy, PyTorch, JAX), in single or
    double precision and with contiguous rows: the iterations use them without a copy. Results are numpy arrays in any
    case; `torch.as_tensor(model.labels_, device=x.device)` copies them to the GPU. A
    `numpy.memmap` is read in place, and in a dictionary the name of a `.npy` file stands for its memory-mapped array:
    data that do not fit into memory are not copied. An instance is missing from a view if its row is NaN, if the
    table does not contain its ID, or if `mask` says so. A row of an array or a DataFrame may also be partly NaN: the
    fit uses the values that are present, and `missing_cells_` counts those that are not. In a sparse matrix a partly
    NaN row is an error, since values that are not stored are zero. Dask arrays and DataFrames are clustered without
    being gathered, if there is a client of dask.distributed; see `fit`. Tables of other libraries (Modin, cuDF,
    Spark, pyarrow, xarray) are rejected: as arrays they would lose their IDs. After `set_output(transform="pandas")`
    the resulting DataFrames have the index of the tables.

    A fit writes its results into the AnnData or MuData that is passed: clusters to `.obs["daimc"]`, confidence to
    `.obs["daimc_confidence"]`, V to `.obsm["X_daimc"]`, the map to `.obsm["X_daimc_map"]`, contributions to
    `.obsm["daimc_contributions"]`, the weights of features to `.varm["daimc_weights"]` (of each modality, where
    features are those of `.var`), and options, scalings with their reasons and the version to `.uns["daimc"]`.
    `predict` and similar methods match features by name there; additional ones are ignored. For raw counts a
    `CountsWarning` is issued.

    A `SignificanceWarning` means that the clusters are no clearer than chance, a `MissingnessWarning` that they are
    associated with which views an instance has.

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
        neighbours_budget: float | None = None,
        view_weights: str | None = None,
        penalty: str | None = None,
        assess: bool | None = None,
        map: bool = True,
        view_slices: Any = None,
        id_column: str | None = None,
        layer: str | dict[str, str] | None = None,
        use_rep: str | dict[str, str] | None = None,
        key_added: str | None = "daimc",
        handle_unseen: str = "error",
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        precision: str = "single",
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
        self.neighbours_budget = neighbours_budget
        self.view_weights = view_weights
        self.penalty = penalty
        self.assess = assess
        self.map = map
        self.view_slices = view_slices
        self.id_column = id_column
        self.layer = layer
        self.use_rep = use_rep
        self.key_added = key_added
        self.handle_unseen = handle_unseen
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.precision = precision
        self.verbose = verbose

    @cached_property
    def map_(self) -> NDArray[np.float64] | None:
        # Documented with the other attributes.
        check_is_fitted(self)
        found = self._with_map().map
        if found is None or self._rows is None:
            return found
        return np.where(self._rows[:, None] < 0, np.nan, found[self._rows])

    # --- fitting ------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, mask: Any = None, client: Any = None, comm: Any = None) -> DAIMC:
        """Clusters the instances of X.

        Parameters
        ----------
        X : views
            See the notes of the class.
        y : ignored
            For compatibility with scikit-learn. Anything that looks like a mask is rejected here.
        mask : array of shape (n_samples, n_views), list, dict or DataFrame, default=None
            `True` where an instance is present in a view. A list has a vector for each view, a dictionary one by
            name. If views are joined by ID, a DataFrame has IDs as index and views as columns.
        client : dask.distributed.Client, default=None
            If views are Dask collections: the client of the Dask cluster; by default the current one. Partitions
            become shards on the workers that hold them, and `labels_`, `embedding_`, `confidence_`, `contributions_` and
            `map_` are Dask collections.
        comm : mpi4py.MPI.Comm, default=None
            Every rank passes its own rows of the same views and receives the results for them. The model is the same
            on all ranks.

        Notes
        -----
        With Dask and MPI all parameters work as in one process, except `device`. For neighbourhoods, V and the rows of the
        views are gathered in the process of the client, or on rank 0: views of up to 128 features, and sparse ones of
        up to 512 bytes a row, as they are, others projected on their 128 leading directions. If that process lacks the
        memory, neighbourhoods are off, and `neighbours_` says so. The result is identical for any number of processes, and
        to the last bit to that of one process unless rows were projected. `report` and `save` include the instances if V,
        labels and confidence of all instances fit into the memory of that process.
        """
        self._fit(X, y, mask, client, comm)
        return self

    def fit_predict(
        self, X: Any, y: Any = None, *, mask: Any = None, client: Any = None, comm: Any = None
    ) -> NDArray[np.int64]:
        """Clusters the instances of X and returns `labels_`."""
        self._fit(X, y, mask, client, comm)
        return self.labels_

    def fit_transform(
        self, X: Any, y: Any = None, *, mask: Any = None, client: Any = None, comm: Any = None
    ) -> NDArray[np.float64]:
        """Clusters the instances of X and returns `embedding_`."""
        data = self._fit(X, y, mask, client, comm)
        return self.embedding_ if data is None else self._framed(self.embedding_, data)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        mask: Any = None,
        memory_factor: float = 1.0,
        add_views: Iterable[str] = (),
    ) -> DAIMC:
        """Learns from a batch of new instances, with whichever views they have.

        The first call is a fit. Every later call, including the first after `fit` or `load`, keeps sums over the
        earlier instances, the scaling of the views and the numbering of the clusters. `labels_`, `embedding_` and all
        other attributes with a row for each instance then refer to the last batch; use `predict` for earlier ones.

        If the fit used neighbours, its instances keep their clusters, and new ones are assigned as by `predict`. Without
        neighbours, the clusters move with the batches; if the first batch was fitted by `partial_fit`, they are also
        revised until 200 instances per cluster have been seen, because a few hundred are a poor start.

        Parameters
        ----------
        X : views
            See the notes of the class. As in `predict`, a list has `None` in the place of a view that is absent; a
            dictionary may leave it out. An ID that the model has already learnt from is an error, and so is a batch by
            which the model would lose a cluster; the model then stays as it is.
        y : ignored
            For compatibility with scikit-learn.
        mask : array, list, dict or DataFrame, default=None
            As for `fit`.
        memory_factor : float, default=1.0
            Weight of the earlier instances relative to the batch, above 0 and at most 1: with 0.9, instances from ten
            batches ago count about a third. A factor below 1 removes the neighbours, which cannot be weighted: new
            instances are then assigned by V alone.
        add_views : iterable of str, default=()
            Views of X to add that the model has not seen; X is then a dictionary.

        Returns
        -------
        DAIMC
            The estimator, whose `update_` reports how far the model moved.

        Examples
        --------
        >>> from daimc import DAIMC, datasets
        >>> data = datasets.make_views(400, 3, [10, 20], random_state=0)
        >>> model = DAIMC(3, random_state=0)
        >>> for start in range(0, 400, 100):
        ...     batch = {name: rows[start : start + 100] for name, rows in data.views.items()}
        ...     model = model.partial_fit(batch)
        >>> len(model.labels_), len(model.predict(data.views))
        (100, 400)
        """
        if hasattr(self, "_model"):
            update(self, X, y, mask, memory_factor, add_views)
        else:
            self._fit(X, y, mask)
            self._begin_stream()
        return self

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

        The data are resampled: some views of each instance are hidden, and the rest are fitted. The recommended
        number is the one whose clusters agree between resamples and predict what was hidden. The other parameters are
        those of this estimator, which is not changed; only `neighbours` is "off" here, and `init` may not be an
        array.

        Parameters
        ----------
        X : views
            See the notes of the class.
        n_clusters : iterable of int, default=range(2, 13)
            The numbers to choose from, at least two of them, each at least 2 and below the number of instances.
        mask : array, list, dict or DataFrame, default=None
            As for `fit`.
        n_resamples : int, default=10
            The number of resamples, each fitted with every number of clusters.
        hidden : float, default=0.5
            The share of an instance's views that a resample hides, not counting the one view that is always kept.

        Returns
        -------
        Selection
            `n_clusters` is the recommended number, `estimator` is this estimator with that number, ready to be
            fitted.

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
        if is_dask(X) and (client := client_of(None)) is not None:
            labels: NDArray[np.int64] = self._place_lazily(X, mask, client, 1)
            return labels
        return self._place(X, mask)[2]

    def transform(self, X: Any, *, mask: Any = None) -> NDArray[np.float64]:
        """The rows of V of new instances, with the bases fixed."""
        if is_dask(X) and (client := client_of(None)) is not None:
            latent: NDArray[np.float64] = self._place_lazily(X, mask, client, 0)
            return latent
        data, rows, _ = self._place(X, mask)
        return self._framed(rows, data)

    def contributions(self, X: Any, *, mask: Any = None) -> NDArray[np.float64]:
        """How strongly each view supports the clusters of new instances, like `contributions_` for those of the fit.

        An array of instances × `view_names_`, with NaN where an instance is missing from a view of X.
        """
        check_is_fitted(self)
        data = self._read(X, mask, reset=False)
        found = self._model.contributions(data.views, data.joined, threads_of(self.n_jobs))
        return data.spread(found, np.nan)

    def impute(self, X: Any, *, mask: Any = None, return_error: bool = False) -> Any:
        """X with missing rows of views, and missing values in other rows, filled in.

        A missing value is estimated by a weighted mean of the values of the nearest instances, of those of the same
        cluster, and of the model's reconstruction, with the weights that are best for held-out values of X. Values
        are learnt from X alone, and stay within the range of the feature in X: pass new instances together with those
        of the fit. In a view with fewer than eight instances the reconstruction alone is used.

        Values that are present are not changed. The result has the form of X: a list, a dictionary, an AnnData, a
        MuData or one matrix, and DataFrames where X has DataFrames. Rows are in the order of `instance_ids(X)`; a
        view that is absent from X is filled in completely.

        Parameters
        ----------
        X : as in `fit`
            The instances.
        mask : as in `fit`
            Which instances are present in which views.
        return_error : bool, default=False
            Whether to also return an estimate of the error.

        Returns
        -------
        filled : of the form of X
            The views.
        error : dict of dict of float
            With `return_error`. For each view the root mean squared error of held-out `"rows"` and `"cells"`, in
            standard deviations of each feature (imputing the mean gives about 1, and more if values are
            heavy-tailed); NaN if nothing was missing or nothing could be held out.
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
        """The weight of each feature of a view for each cluster: an array of features × clusters."""
        check_is_fitted(self)
        return self._model.weights(view)

    def feature_names(self, view: str) -> list[str]:
        """The names of a view's features; their numbers if they have none."""
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
        self._with_map().save(path)

    def report(
        self, path: str | PathLike[str], X: Any = None, truth: Any = None, title: str | None = None, *, mask: Any = None
    ) -> None:
        """Writes the same report on the clusters as `daimc fit`: one self-contained HTML file.

        Parameters
        ----------
        path : path-like
            The file.
        X : views
            The data of the fit, which the model does not keep. Passing other data is an error.
        truth : array-like of shape (n_samples,) or Series, default=None
            Known classes, in the order of `labels_`, to compare the clusters with; those of a Series are matched by
            ID. `None` and NaN mean unknown.
        title : str, default=None
            The title of the page.
        mask : as in `fit`
            Which instances are present in which views.
        """
        check_is_fitted(self)
        page = page_of(self, X, truth, title, mask)
        Path(path).write_text(page, encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str], **params: Any) -> DAIMC:
        """Reads a model that `save`, `daimc fit` or `daimc update` wrote.

        The model of `daimc fit --online` has no instances: `labels_`, `embedding_` and `confidence_` are then empty,
        and the attributes of its fit (`objective_`, `n_iter_`, `converged_`) are meaningless.

        Parameters that are not options of the fit are not in the file: pass `view_slices`, `id_column`, `layer`,
        `use_rep`, `handle_unseen`, `n_jobs`, `device`, `precision` as `params`.
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

    # --- private ------------------------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, mask: Any, client: Any = None, comm: Any = None) -> Data | None:
        """What `fit` and its kin do, one call above it, where warnings point to. No data where others hold them."""
        # What an earlier fit or update has left, and not every fit sets.
        for name in ("contributions_", "update_"):
            self.__dict__.pop(name, None)
        device, precision = device_of(self.device, self.precision)
        if device != "cpu" and (comm is not None or (is_dask(X) and client_of(client) is not None)):
            raise ValueError(f"device = {device!r}: must be 'cpu' where others hold the rows, with Dask and MPI")
        if comm is not None:
            from daimc import _mpi

            _mpi.fit(self, X, mask, comm)
            if comm.Get_rank() == 0:
                warn_of_fit(self._model, stacklevel=4)
            return None
        if is_dask(X) and (client := client_of(client)) is not None:
            from daimc import _dask

            _dask.fit(self, X, mask, client)
            warn_of_fit(self._model, stacklevel=4)
            return None
        clusters, seed, threads = clusters_of(self.n_clusters), seed_of(self.random_state), threads_of(self.n_jobs)
        options, start = self._options()
        resolved = json.loads(_daimc.resolve(clusters, seed, options))
        data = data_of(self, X, mask, reset=True, device=device)
        refuse_mask_as_y(y, data.views)
        instances = int(np.count_nonzero(data.seen))
        if instances < clusters:
            raise ValueError(f"n_samples={instances} should be >= n_clusters={clusters}")
        if start is not None and len(start) == len(data.seen):
            start = start[data.seen]

        progress = Progress(bool(self.verbose), resolved["max_iterations"], resolved["runs"])
        each = progress if progress.wanted else None
        try:
            fitted = _daimc.fit(data.views, data.joined, clusters, seed, options, start, device, precision, threads, each)
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
        name, reason = model.device
        if device != "cpu":
            logger.info("device: %s%s", name, "" if reason is None else f" ({reason})")
        warn_of_fit(model, stacklevel=4)
        if is_mudata(X) or is_annotated(X):
            warn_of_counts(self, data, stacklevel=4)
            if self.key_added is not None:
                annotate(X, self, data)
        return data

    def _options(self) -> tuple[dict[str, Any], NDArray[np.float64] | None]:
        """The options that are not `None`, and the initial V if `init` is an array."""
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

    def _place_lazily(self, X: Any, mask: Any, client: Any, what: int) -> Any:
        """Dask collections of the rows of V of new instances, or of their clusters."""
        from daimc import _dask

        check_is_fitted(self)
        return _dask.place(self, X, mask, client, what)

    def _without_instances(self) -> DAIMC:
        """A copy for assigning new instances, without the results for the instances of the fit."""
        light = copy(self)
        for name in ("labels_", "embedding_", "map_", "confidence_", "contributions_", "ids_", "_rows"):
            light.__dict__.pop(name, None)
        light._model = self._model.without_instances()
        return light

    def _framed(self, rows: NDArray[np.float64], data: Data) -> NDArray[np.float64]:
        """Rows of V with the index of the tables if the output is pandas: scikit-learn sets it for one DataFrame only."""
        if data.names.index is None or _get_output_config("transform", self)["dense"] != "pandas":
            return rows
        import pandas

        frame: NDArray[np.float64] = pandas.DataFrame(rows, index=data.names.index)
        return frame

    def _adopt(self, model: _daimc.Model, data: Data | None) -> None:
        """Sets the fitted attributes from a model, with blanks for instances of `data` that are missing from every view."""

        def spread(found: NDArray[Any], blank: float) -> NDArray[Any]:
            return found if data is None else data.spread(found, blank)

        self._model = model
        self.__dict__.pop("map_", None)
        #: For each instance its row in the library's map; `None` if it is its number.
        self._rows: NDArray[np.intp] | None = None if data is None else data.spread(np.arange(len(model.labels)), -1)
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
        self.device_ = model.device[0]
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

    def _begin_stream(self) -> None:
        """Lets later batches revise the clusters."""
        self._model = self._model.of_stream()

    def _with_map(self) -> _daimc.Model:
        """The model with its map, which is computed by the first call."""
        self._model = self._model.with_map(threads_of(self.n_jobs)) or self._model
        return self._model

    @property
    def _n_features_out(self) -> int:
        return int(self.basis_[0].shape[1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # NaN in a dense matrix is a missing cell.
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags
