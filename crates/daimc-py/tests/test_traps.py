"""Common pitfalls of clustering packages, and errors that name their location."""

import multiprocessing
import threading

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from daimc import DAIMC


def fit(views, mask=None, **options):
    return DAIMC(**{"n_clusters": 4, "random_state": 0, **options}).fit(views, mask=mask)


def refused(error, *words):
    """Asserts that the error contains all of these words."""

    class Refused:
        def __enter__(self):
            self.caught = pytest.raises(error)
            self.info = self.caught.__enter__()

        def __exit__(self, *exception):
            done = self.caught.__exit__(*exception)
            for word in words:
                assert word in str(self.info.value)
            return done

    return Refused()


def test_an_infinite_value_is_an_error_with_its_cell(easy):
    views, _ = easy
    views[1][17, 3] = np.inf
    with refused(ValueError, "view 'view1'", "row 17", "column 3", "inf"):
        fit(views)
    with refused(ValueError, "view 'view1'", "row 17", "column 3"):
        fit([views[0], np.asfortranarray(views[1])])
    frame = pd.DataFrame(views[1], columns=[f"gene{i}" for i in range(50)], index=[f"p{i}" for i in range(300)])
    with refused(ValueError, "view 'rna'", "instance 'p17'", "'gene3'"):
        fit({"rna": frame})
    for bad in (np.inf, np.nan):
        stored = sparse.csr_matrix(np.nan_to_num(views[1], posinf=7.0))
        stored[17, 3] = bad
        with refused(ValueError, "view 'view1'", "row 17", "column 3", str(bad).replace("nan", "NaN")):
            fit([views[0], stored])


def test_numpy_numbers_are_numbers(easy):
    views, _ = easy
    plain = fit(views, alpha=2.0, max_iter=50, runs=2, equal_weight=True)
    other = DAIMC(
        n_clusters=np.int64(4),
        alpha=np.float32(2.0),
        max_iter=np.int32(50),
        runs=np.uint8(2),
        equal_weight=np.bool_(True),
        random_state=np.int64(0),
        n_jobs=np.int64(1),
    ).fit(views)
    np.testing.assert_array_equal(plain.embedding_, other.embedding_)


def test_random_state_reaches_every_draw():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(200, 20)), rng.normal(size=(200, 30))]  # no clusters: every draw shows

    def labels(state):
        return DAIMC(6, random_state=state, runs=2).fit_predict(views)

    for make in (lambda: 7, lambda: np.random.RandomState(7), lambda: np.random.default_rng(7)):
        np.testing.assert_array_equal(labels(make()), labels(make()))
    assert (labels(7) != labels(8)).any()
    np.random.seed(3)
    one = labels(None)
    np.random.seed(3)
    np.testing.assert_array_equal(one, labels(None))
    assert (labels(None) != one).any()
    state = np.random.RandomState(7)
    assert (labels(state) != labels(state)).any()  # the generator advances, as in scikit-learn


def test_objects_are_numbers_or_refused_by_cell(easy):
    views, _ = easy
    np.testing.assert_array_equal(
        fit([views[0].astype(object), views[1]]).embedding_, fit([views[0], views[1]]).embedding_
    )
    broken = views[0].astype(object)
    broken[4, 2] = "high"
    with refused(TypeError, "view 'view0'", "row 4", "column 2", "'high'"):
        fit([broken, views[1]])
    with refused(TypeError, "view 'view0'", "not numeric"):
        fit([np.full((300, 2), "1.0"), views[1]])
    with refused(TypeError, "view 'a'", "column 'sex'"):
        fit({"a": pd.DataFrame({"x": views[0][:, 0], "sex": pd.Categorical(["f", "m"] * 150)})})
    with refused(TypeError, "view 'a'", "column 'day'"):
        fit({"a": pl.DataFrame({"x": [1.0, 2.0], "day": ["mon", "tue"]})}, n_clusters=1)
    with refused(ValueError, "Complex data not supported", "view 'view0'"):
        fit([views[0] * 1j, views[1]])


def test_masked_arrays_keep_their_mask(gaps):
    views, mask, with_nan, _ = gaps
    covered = [np.ma.array(view, mask=np.repeat(~mask[:, [v]], view.shape[1], axis=1)) for v, view in enumerate(views)]
    np.testing.assert_array_equal(fit(covered).embedding_, fit(with_nan).embedding_)


def test_zero_length_views_are_named(easy):
    views, _ = easy
    with refused(ValueError, "view 'view1' has no rows"):
        fit([views[0], np.empty((0, 3))])
    with refused(ValueError, "view 'view1' has no features"):
        fit([views[0], np.empty((300, 0))])
    with refused(ValueError, "view 'view1' has no rows"):
        fit([views[0], sparse.csr_matrix((0, 3))])
    with refused(ValueError, "X has no views"):
        fit([])
    with refused(ValueError, "X has no views"):
        fit({})
    with refused(ValueError, "view 'view1'", "every row is missing"):
        fit([views[0], np.full((300, 2), np.nan)])


def test_views_that_do_not_fit_together_are_named(easy):
    views, _ = easy
    with refused(ValueError, "view 'view1' has 299 rows", "view 'view0' has 300"):
        fit([views[0], views[1][:-1]])
    with refused(ValueError, "view 'view1'", "1 dimension"):
        fit([views[0], views[1][:, 0]])
    with refused(ValueError, "view 'view1' is None"):
        fit([views[0], None])
    with refused(ValueError, "instance '9'", "missing in every view"):
        gone = [view.copy() for view in views]
        gone[0][9], gone[1][9] = np.nan, np.nan
        fit(gone)
    with refused(ValueError, "view 'b'", "no IDs"):
        fit({"a": pd.DataFrame(views[0]), "b": views[1]})
    with refused(ValueError, "view 'a'", "'p0'", "row 0", "row 1"):
        fit({"a": pd.DataFrame(views[0], index=["p0", "p0", *(f"p{i}" for i in range(2, 300))])})
    with refused(ValueError, "view 'a', row 5 has no ID"):
        index = [f"p{i}" for i in range(300)]
        index[5] = np.nan
        fit({"a": pd.DataFrame(views[0], index=index)})
    with refused(ValueError, "no column 'who'"):
        fit({"a": pl.DataFrame(views[0])}, id_column="who")
    with refused(TypeError, "view name 0: must be a string"):
        fit({0: views[0]})


def test_invalid_masks_are_refused(easy):
    views, _ = easy
    with refused(ValueError, "mask has shape (300, 3)", "(300, 2)"):
        fit(views, mask=np.ones((300, 3)))
    with refused(ValueError, "mask of view 'view0', row 2", "0.5"):
        mask = np.ones((300, 2))
        mask[2, 0] = 0.5
        fit(views, mask=mask)
    with refused(ValueError, "mask has an entry for 'view9'"):
        fit(views, mask={"view9": np.ones(300, bool)})
    frames = [pd.DataFrame(view) for view in views]
    with refused(ValueError, "need a mask by ID"):
        fit(frames, mask=np.ones((300, 2)))
    with refused(ValueError, "no row for instance '299'"):
        fit(frames, mask=pd.DataFrame(np.ones((299, 2)), columns=["view0", "view1"]))


def test_new_data_must_be_those_of_the_model(easy):
    views, _ = easy
    model = fit({"a": views[0], "b": pd.DataFrame(views[1]).to_numpy()})
    with refused(ValueError, "view 'a'", "features", "expected 30, found 29"):
        model.predict([views[0][:, :-1], None])
    with refused(ValueError, "view 'c' is not part of the model"):
        model.predict({"c": views[0]})
    with refused(ValueError, "X has 1 view(s)", "a, b"):
        model.predict([views[0]])
    with refused(ValueError, "every view is None"):
        model.predict([None, None])
    named = fit({"a": pd.DataFrame(views[0], columns=[f"f{i}" for i in range(30)])})
    with refused(ValueError, "view 'a' lacks column 'f0'"):
        named.predict({"a": pd.DataFrame(views[0], columns=[f"f{i}" for i in range(1, 31)])})
    with refused(ValueError, "column 'more'"):
        frame = pd.DataFrame(views[0], columns=[f"f{i}" for i in range(30)])
        named.predict({"a": frame.assign(more=1.0)})


def test_invalid_slices_are_refused(easy):
    x = np.hstack(easy[0])
    for slices, error, words in [
        ("ab", TypeError, "view_slices = 'ab'"),
        ([], ValueError, "view_slices is empty"),
        ([slice(80, 90)], ValueError, "view 'view0' has no columns"),
        ([[0, 99]], ValueError, "no column 99"),
        ([["name"]], ValueError, "columns of X have no names"),
        ([[0.5]], TypeError, "numbers or names"),
    ]:
        with refused(error, words):
            fit(x, view_slices=slices)


def test_input_is_not_changed(gaps):
    _, mask, views, _ = gaps
    before = [view.copy() for view in views]
    fit(views)
    fit(views, mask=mask)
    for view, old in zip(views, before):
        np.testing.assert_array_equal(view, old)


def test_concurrent_fits_do_not_interfere(gaps):
    _, _, views, _ = gaps
    alone = [fit(views, random_state=seed).embedding_ for seed in range(4)]
    together = [None] * 4

    def work(seed):
        together[seed] = fit(views, random_state=seed).embedding_

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together):
        np.testing.assert_array_equal(one, other)


def _in_a_child(views, queue):
    queue.put(fit(views).labels_)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_can_fit_after_its_parent_did(gaps):
    _, _, views, _ = gaps
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("there is no fork here")
    labels = fit(views).labels_
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_a_child, args=(views, queue))
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=60), labels)
    child.join(timeout=60)
    assert child.exitcode == 0
