"""Arrays that lie on a graphics card. What needs one is skipped where there is none."""

import ctypes

import numpy as np
import pytest

from daimc import DAIMC, _card, datasets


@pytest.fixture
def views():
    made = datasets.make_views(300, 3, [16, 10], random_state=0).views
    return [np.asarray(rows) for rows in made.values()]


class Told:
    """An array that says that it lies on a card, though it does not."""

    def __init__(self, array, **more):
        self.array, self.ndim, self.shape = array, array.ndim, array.shape
        self.more = more

    def __len__(self):
        return len(self.array)

    @property
    def __cuda_array_interface__(self):
        own = self.array.__array_interface__
        return {**{key: own[key] for key in ("typestr", "shape", "strides", "data")}, "version": 3, **self.more}


class Packed:
    """An array that says so by DLPack alone."""

    def __init__(self, array):
        self.ndim, self.shape = array.ndim, array.shape

    def __dlpack_device__(self):
        return (2, 0)


def test_a_fit_on_the_processor_says_what_to_give(views):
    for X in ([Told(views[0]), views[1]], {"view0": Told(views[0])}):
        with pytest.raises(TypeError, match=r"view 'view0' is a \w+.Told on a graphics card, .* device='cuda', or .* x.cpu\(\)"):
            DAIMC(3).fit(X)


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_memory_that_is_none_of_a_card_is_told(views, device):
    with pytest.raises(RuntimeError, match=r"^cuda: \w"):
        DAIMC(3, device=device).fit([Told(rows) for rows in views])
    model = DAIMC(3, random_state=0).fit(views)
    with pytest.raises(RuntimeError, match=r"^cuda: \w"):
        model.predict([Told(rows) for rows in views])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: Told(x.astype(np.float16)), r"has dtype float16 on a graphics card, .* x.float\(\)"),
        (lambda x: Told(x.astype(np.int64)), r"has dtype int64 on a graphics card, .*: give x.astype\('float32'\)"),
        (lambda x: Told(x.astype(">f4")), "has dtype >f4 on a graphics card"),
        (lambda x: Told(np.asfortranarray(x)), r"values of a row do not stand one after another .* x.contiguous\(\)"),
        (lambda x: Told(x[:, ::2]), "values of a row do not stand one after another"),
        (lambda x: Told(x[::-1]), "values of a row do not stand one after another"),
        (lambda x: Told(np.broadcast_to(x[0], x.shape)), "values of a row do not stand one after another"),
        (lambda x: Told(x[0]), "expected a matrix, found an array with 1 dimension"),
        (lambda x: Told(x[:, :0]), "has no features"),
        (lambda x: Told(x[:0]), "has no rows"),
        (lambda x: Told(x, mask=Told(x)), "with a mask: write NaN"),
        (Packed, r"by DLPack alone .*: give cupy.from_dlpack\(x\)"),
    ],
)
def test_what_cannot_be_read_on_a_card_is_told(views, make, words):
    with pytest.raises((TypeError, ValueError), match=f"view 'a'.*{words}"):
        DAIMC(3, device="cuda").fit({"a": make(views[0]), "b": views[1]})


def test_one_array_on_a_card_is_no_list(views):
    model = DAIMC(3, random_state=0).fit([views[0]])
    for call in (DAIMC(3, device="cuda").fit, model.predict):
        with pytest.raises(TypeError, match="X is one array on a graphics card: give a list of views"):
            call(Told(views[0]))


@pytest.mark.parametrize(
    "turn",
    [
        lambda x: x,
        np.asfortranarray,
        lambda x: x[::-1, ::-1],
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x.astype(np.float16),
        lambda x: x.astype(np.float32)[:, None][:, 0],
        lambda x: np.broadcast_to(x[0], x.shape),
    ],
)
def test_new_instances_are_copied_whatever_their_order_and_type(views, turn, monkeypatch):
    turned = [turn(rows) for rows in views]

    def fetched(address, length):
        return np.frombuffer(ctypes.string_at(address, length), dtype=np.uint8)

    monkeypatch.setattr(_card, "fetch", fetched)
    model = DAIMC(3, random_state=0).fit(views)
    told = [Told(rows) for rows in turned]
    np.testing.assert_array_equal(model.transform(told), model.transform(turned))
    np.testing.assert_array_equal(model.predict([told[0], None]), model.predict([turned[0], None]))


# --- on a card --------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["torch", "cupy"])
def put(request):
    """Puts an array on a card."""
    library = pytest.importorskip(request.param)
    if request.param == "torch":
        if not library.cuda.is_available():
            pytest.skip("there is no card")
        return lambda x: library.from_numpy(np.array(x)).cuda()
    try:
        there = library.cuda.runtime.getDeviceCount()
    except library.cuda.runtime.CUDARuntimeError:
        there = 0
    return library.asarray if there else pytest.skip("there is no card")


def on_card(views, mask=None, **options):
    """A fit on a card, without what is not made of the rows there."""
    return DAIMC(3, random_state=0, device="cuda", assess=False, **options).fit(views, mask=mask)


def same(one, other):
    assert one.device_ == other.device_ != "cpu"
    assert one.neighbours_ == other.neighbours_
    assert one.objective_ == other.objective_
    for name in ("labels_", "embedding_", "confidence_", "contributions_", "map_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for own, others in zip(one.missing_cells_, other.missing_cells_, strict=True):
        np.testing.assert_array_equal(own, others)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", ["auto", "none", "min-max", "z-score", "unit", "log"])
def test_a_fit_is_that_of_arrays_in_memory(views, put, dtype, scale):
    views = [np.abs(rows).astype(dtype) for rows in views]
    same(on_card([put(rows) for rows in views], scale=scale), on_card(views, scale=scale))


@pytest.mark.parametrize("scale", ["auto", "none", "z-score"])
@pytest.mark.parametrize("missing", ["rows", "cells", "mask", "both"])
def test_what_is_missing_is_missing_on_a_card(views, put, scale, missing):
    views = [rows.astype(np.float32) for rows in views]
    mask = np.ones((300, 2), dtype=bool)
    if missing in ("rows", "both"):
        views[0][::5], views[1][1::5] = np.nan, np.nan
    if missing in ("cells", "both"):
        views[0][2::6, 3] = np.nan
    if missing in ("mask", "both"):
        mask[2::10, 0], mask[3::20, 1] = False, False
    same(on_card([put(rows) for rows in views], mask, scale=scale), on_card(views, mask, scale=scale))


def test_instances_that_no_view_shows_are_kept(views, put):
    views = [rows.astype(np.float32) for rows in views]
    for rows in views:
        rows[7:9] = np.nan
    with pytest.raises(ValueError, match="instance '7' is missing in every view; 2 such"):
        DAIMC(3, device="cuda").fit([put(rows) for rows in views])
    same(on_card([put(rows) for rows in views], handle_unseen="keep"), on_card(views, handle_unseen="keep"))


def test_columns_of_one_array_and_arrays_in_memory_beside_it(views, put):
    whole = np.concatenate([views[0], views[1], views[0]], axis=1).astype(np.float32)
    there = put(whole)
    one, other = ([x[:, :16], x[:, 16:26], views[1]] for x in (there, whole))
    same(on_card(one, scale="z-score"), on_card(other, scale="z-score"))


def test_values_that_are_infinite_are_told_as_in_memory(views, put):
    views[0][12, 3] = np.inf
    with pytest.raises(ValueError, match="view0.*12.*3.*inf") as here:
        DAIMC(3, device="cuda").fit(views)
    with pytest.raises(ValueError, match="view0.*12.*3.*inf") as there:
        DAIMC(3, device="cuda").fit([put(rows) for rows in views])
    assert str(there.value) == str(here.value)


def test_new_instances_may_lie_on_a_card(views, put):
    model = DAIMC(3, random_state=0).fit(views)
    there = [put(rows) for rows in views]
    np.testing.assert_array_equal(model.transform(there), model.transform(views))
    np.testing.assert_array_equal(model.predict([there[0], None]), model.predict([views[0], None]))
    np.testing.assert_array_equal(model.contributions(there), model.contributions(views))


def test_the_card_has_to_be_that_of_the_arrays(views, put):
    there = [put(rows) for rows in views]
    with pytest.raises(ValueError, match=r"device = cuda:1: view 'view0' lies on card 0: give device='cuda', or"):
        DAIMC(3, device="cuda:1").fit(there)
    auto = DAIMC(3, random_state=0, device="auto", assess=False, neighbours="off").fit(there)
    plain = DAIMC(3, random_state=0, assess=False, neighbours="off").fit(views)
    assert auto.device_ == "cpu"  # it takes less than two seconds
    np.testing.assert_array_equal(auto.labels_, plain.labels_)
