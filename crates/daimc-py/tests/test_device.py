"""The device of a fit, on machines with or without a GPU."""

import numpy as np
import pytest

from daimc import DAIMC, datasets


@pytest.fixture
def views():
    return datasets.make_views(300, 3, [10, 20], random_state=0).views


def test_the_cpu_is_the_default(views):
    model = DAIMC(3, random_state=0).fit(views)
    assert model.device_ == "cpu"


def test_auto_runs_quick_fits_on_the_cpu(views):
    plain = DAIMC(3, random_state=0).fit(views)
    auto = DAIMC(3, random_state=0, device="auto", precision="tf32").fit(views)
    assert auto.device_ == "cpu"
    assert np.array_equal(auto.labels_, plain.labels_)
    assert np.array_equal(auto.embedding_, plain.embedding_)


def test_a_missing_gpu_is_an_error(views):
    # No machine has a thousand GPUs.
    with pytest.raises(RuntimeError, match=r"^cuda:1000: \w"):
        DAIMC(3, device="cuda:1000").fit(views)


@pytest.mark.parametrize("wrong", ["gpu", "cuda:", "cuda:one", ""])
def test_other_names_are_refused(views, wrong):
    with pytest.raises(ValueError, match=f"device = {wrong}.*: must be cpu, cuda, cuda:1"):
        DAIMC(3, device=wrong).fit(views)


def test_other_types_and_precisions_are_refused(views):
    with pytest.raises(TypeError, match="device = None: must be a str"):
        DAIMC(3, device=None).fit(views)
    with pytest.raises(ValueError, match="precision = half: must be single or tf32"):
        DAIMC(3, device="auto", precision="half").fit(views)


def test_the_device_is_known_after_loading(views, tmp_path):
    DAIMC(3, random_state=0).fit(views).save(tmp_path / "model.safetensors")
    assert DAIMC.load(tmp_path / "model.safetensors").device_ == "cpu"
