"""Arrays in GPU memory. Tests that need a GPU are skipped if there is none."""

import ctypes

import numpy as np
import pytest

from daimc import DAIMC, _gpu, datasets


@pytest.fixture
def views():
    made = datasets.make_views(300, 3, [16, 10], random_state=0).views
    return [np.asarray(rows) for rows in made.values()]


class FakeGpuArray:
    """An array in host memory with the interface of a GPU array."""

    def __init__(self, array, **more):
        self.array, self.ndim, self.shape = array, array.ndim, array.shape
        self.more = more

    def __len__(self):
        return len(self.array)

    @property
    def __cuda_array_interface__(self):
        own = self.array.__array_interface__
        return {**{key: own[key] for key in ("typestr", "shape", "strides", "data")}, "version": 3, **self.more}


class DlpackOnly:
    """An array that supports DLPack only."""

    def __init__(self, array):
        self.ndim, self.shape = array.ndim, array.shape

    def __dlpack_device__(self):
        return (2, 0)


def test_a_fit_on_the_cpu_says_how_to_copy_a_gpu_array(views):
    for X in ([FakeGpuArray(views[0]), views[1]], {"view0": FakeGpuArray(views[0])}):
        with pytest.raises(TypeError, match=r"view 'view0' is a \w+.FakeGpuArray on a GPU, .* device='cuda', or .* x.cpu\(\)"):
            DAIMC(3).fit(X)


@pytest.mark.parametrize("device", ["cuda", "auto"])
def test_an_address_outside_gpu_memory_is_an_error(views, device):
    with pytest.raises(RuntimeError, match=r"^cuda: \w"):
        DAIMC(3, device=device).fit([FakeGpuArray(rows) for rows in views])
    model = DAIMC(3, random_state=0).fit(views)
    with pytest.raises(RuntimeError, match=r"^cuda: \w"):
        model.predict([FakeGpuArray(rows) for rows in views])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: FakeGpuArray(x.astype(np.float16)), r"has dtype float16; on a GPU, .* x.float\(\)"),
        (lambda x: FakeGpuArray(x.astype(np.int64)), r"has dtype int64; on a GPU, .*: pass x.astype\('float32'\)"),
        (lambda x: FakeGpuArray(x.astype(">f4")), "has dtype >f4; on a GPU"),
        (lambda x: FakeGpuArray(np.asfortranarray(x)), r"values of a row are not contiguous .* x.contiguous\(\)"),
        (lambda x: FakeGpuArray(x[:, ::2]), "values of a row are not contiguous"),
        (lambda x: FakeGpuArray(x[::-1]), "values of a row are not contiguous"),
        (lambda x: FakeGpuArray(np.broadcast_to(x[0], x.shape)), "values of a row are not contiguous"),
        (lambda x: FakeGpuArray(x[0]), "expected a matrix, found an array with 1 dimension"),
        (lambda x: FakeGpuArray(x[:, :0]), "has no features"),
        (lambda x: FakeGpuArray(x[:0]), "has no rows"),
        (lambda x: FakeGpuArray(x, mask=FakeGpuArray(x)), "with a mask: set missing values to NaN"),
        (DlpackOnly, r"supports DLPack only: pass cupy.from_dlpack\(x\)"),
    ],
)
def test_unsupported_gpu_arrays_are_refused_with_advice(views, make, words):
    with pytest.raises((TypeError, ValueError), match=f"view 'a'.*{words}"):
        DAIMC(3, device="cuda").fit({"a": make(views[0]), "b": views[1]})


def test_one_gpu_array_is_no_list_of_views(views):
    model = DAIMC(3, random_state=0).fit([views[0]])
    for call in (DAIMC(3, device="cuda").fit, model.predict):
        with pytest.raises(TypeError, match="X is one array on a GPU: pass a list of views"):
            call(FakeGpuArray(views[0]))


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

    monkeypatch.setattr(_gpu, "fetch", fetched)
    model = DAIMC(3, random_state=0).fit(views)
    on_gpu = [FakeGpuArray(rows) for rows in turned]
    np.testing.assert_array_equal(model.transform(on_gpu), model.transform(turned))
    np.testing.assert_array_equal(model.predict([on_gpu[0], None]), model.predict([turned[0], None]))


# --- on a GPU ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["torch", "cupy"])
def put(request):
    """Copies an array to the GPU."""
    library = pytest.importorskip(request.param)
    if request.param == "torch":
        if not library.cuda.is_available():
            pytest.skip("no GPU")
        return lambda x: library.from_numpy(np.array(x)).cuda()
    try:
        gpus = library.cuda.runtime.getDeviceCount()
    except library.cuda.runtime.CUDARuntimeError:
        gpus = 0
    return library.asarray if gpus else pytest.skip("no GPU")


def fit_on_gpu(views, mask=None, **options):
    """A fit on a GPU, without the assessment, which is not computed from the rows on the GPU."""
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
    same(fit_on_gpu([put(rows) for rows in views], scale=scale), fit_on_gpu(views, scale=scale))


@pytest.mark.parametrize("scale", ["auto", "none", "z-score"])
@pytest.mark.parametrize("missing", ["rows", "cells", "mask", "both"])
def test_missing_values_are_missing_on_a_gpu(views, put, scale, missing):
    views = [rows.astype(np.float32) for rows in views]
    mask = np.ones((300, 2), dtype=bool)
    if missing in ("rows", "both"):
        views[0][::5], views[1][1::5] = np.nan, np.nan
    if missing in ("cells", "both"):
        views[0][2::6, 3] = np.nan
    if missing in ("mask", "both"):
        mask[2::10, 0], mask[3::20, 1] = False, False
    same(fit_on_gpu([put(rows) for rows in views], mask, scale=scale), fit_on_gpu(views, mask, scale=scale))


def test_instances_missing_from_every_view_are_kept(views, put):
    views = [rows.astype(np.float32) for rows in views]
    for rows in views:
        rows[7:9] = np.nan
    with pytest.raises(ValueError, match="instance '7' is missing in every view; 2 such"):
        DAIMC(3, device="cuda").fit([put(rows) for rows in views])
    same(fit_on_gpu([put(rows) for rows in views], handle_unseen="keep"), fit_on_gpu(views, handle_unseen="keep"))


def test_columns_of_one_gpu_array_together_with_host_arrays(views, put):
    whole = np.concatenate([views[0], views[1], views[0]], axis=1).astype(np.float32)
    on_gpu = put(whole)
    one, other = ([x[:, :16], x[:, 16:26], views[1]] for x in (on_gpu, whole))
    same(fit_on_gpu(one, scale="z-score"), fit_on_gpu(other, scale="z-score"))


def test_infinite_values_are_the_same_error_as_in_host_memory(views, put):
    views[0][12, 3] = np.inf
    with pytest.raises(ValueError, match="view0.*12.*3.*inf") as on_host:
        DAIMC(3, device="cuda").fit(views)
    with pytest.raises(ValueError, match="view0.*12.*3.*inf") as on_gpu:
        DAIMC(3, device="cuda").fit([put(rows) for rows in views])
    assert str(on_gpu.value) == str(on_host.value)


def test_new_instances_may_be_gpu_arrays(views, put):
    model = DAIMC(3, random_state=0).fit(views)
    on_gpu = [put(rows) for rows in views]
    np.testing.assert_array_equal(model.transform(on_gpu), model.transform(views))
    np.testing.assert_array_equal(model.predict([on_gpu[0], None]), model.predict([views[0], None]))
    np.testing.assert_array_equal(model.contributions(on_gpu), model.contributions(views))


def test_the_device_has_to_be_that_of_the_arrays(views, put):
    on_gpu = [put(rows) for rows in views]
    with pytest.raises(ValueError, match=r"device = cuda:1: view 'view0' is on GPU 0: use device='cuda', or"):
        DAIMC(3, device="cuda:1").fit(on_gpu)
    auto = DAIMC(3, random_state=0, device="auto", assess=False, neighbours="off").fit(on_gpu)
    plain = DAIMC(3, random_state=0, assess=False, neighbours="off").fit(views)
    assert auto.device_ == "cpu"  # it takes less than two seconds
    np.testing.assert_array_equal(auto.labels_, plain.labels_)
