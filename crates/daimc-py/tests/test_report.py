"""The report about a fit."""

import os
import re
import subprocess

import numpy as np
import pandas as pd
import pytest

from daimc import DAIMC


@pytest.fixture
def fitted(gaps):
    return DAIMC(4, random_state=0, assess=False).fit(gaps[2]), gaps[2], gaps[3]


def text_of(path):
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    return page


def test_the_page_is_written(fitted, tmp_path):
    model, views, target = fitted
    assert model.report(tmp_path / "plain.html", views) is None
    plain = text_of(tmp_path / "plain.html")
    model.report(str(tmp_path / "full.html"), views, truth=target, title="Four <clusters>")
    full = text_of(tmp_path / "full.html")
    assert "<title>Four &lt;clusters&gt;</title>" in full and len(full) > len(plain)


def test_a_loaded_model_writes_the_same_page(fitted, tmp_path):
    model, views, _ = fitted
    model.save(tmp_path / "model.safetensors")
    model.report(tmp_path / "one.html", views)
    DAIMC.load(tmp_path / "model.safetensors").report(tmp_path / "two.html", views)
    assert text_of(tmp_path / "one.html") == text_of(tmp_path / "two.html")


@pytest.mark.skipif("DAIMC_CLI" not in os.environ, reason="DAIMC_CLI names the program")
def test_the_page_is_that_of_the_command_line(tmp_path):
    from daimc import datasets

    data = datasets.make_views(80, 3, [6, 9], random_state=0)
    options = []
    for name, view in data.views.items():
        np.save(tmp_path / f"{name}.npy", view)
        options += ["--view", f"{name}={tmp_path / name}.npy"]
    command = [os.environ["DAIMC_CLI"], "fit", *options, "-k", "3", "--seed", "0", "--no-assess", "--output", tmp_path / "out"]
    subprocess.run(command, check=True, capture_output=True)
    DAIMC(3, random_state=0, assess=False).fit(data.views).report(tmp_path / "page.html", data.views)
    titles = [re.findall("<h2[^>]*>(.*?)</h2>", text_of(path)) for path in (tmp_path / "out/report.html", tmp_path / "page.html")]
    assert titles[0] == titles[1] and len(titles[0]) > 3


def test_other_data_are_an_error(fitted, tmp_path):
    model, views, target = fitted
    path = tmp_path / "page.html"
    order = np.roll(np.arange(300), 1)
    for other, words in [
        (None, r"X is needed: pass the data of the fit, report\(path, X\)"),
        ([views[0][:250], np.nan_to_num(views[1][:250])], "X has 250 instances, but the model was fitted to 300"),
        ([view[order] for view in views], "X differs from the data of the fit: its loss is .* pass the data of the fit"),
        ([views[0], views[1] + 1.0], "X differs from the data of the fit"),
        ([np.nan_to_num(views[0]), None], "X lacks the view 'view1'"),
        ([views[0][:, 1:], views[1]], "features"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            model.report(path, other)
    with pytest.raises(ValueError, match="truth has 3 entries for 300 instances"):
        model.report(path, views, truth=target[:3])
    assert not path.exists()


def test_the_mask_of_the_fit_is_needed(gaps, tmp_path):
    views, mask, _, _ = gaps
    model = DAIMC(4, random_state=0, assess=False).fit(views, mask=mask)
    model.report(tmp_path / "page.html", views, mask=mask)
    with pytest.raises(ValueError, match="with its mask"):
        model.report(tmp_path / "page.html", views)


def test_classes_are_matched_by_id(gaps, tmp_path):
    _, mask, views, target = gaps
    ids = np.array([f"p{i:03}" for i in range(300)])
    tables = {name: pd.DataFrame(views[v], index=ids)[mask[:, v]] for v, name in enumerate("ab")}
    kinds = pd.Series(np.array(["w", "x", "y", "z"])[target], index=ids)
    model = DAIMC(4, random_state=0, assess=False).fit(tables)
    model.report(tmp_path / "one.html", tables, truth=kinds.sample(frac=1, random_state=0))
    model.report(tmp_path / "two.html", tables, truth=kinds[model.ids_].to_numpy())
    assert text_of(tmp_path / "one.html") == text_of(tmp_path / "two.html")
    model.report(tmp_path / "some.html", tables, truth=kinds.iloc[:100])
    with pytest.raises(ValueError, match="truth has no ID in common with X"):
        model.report(tmp_path / "none.html", tables, truth=kinds.set_axis(range(300)))


def test_instances_missing_from_every_view_are_omitted(easy, tmp_path):
    views, target = easy
    for view in views:
        view[[3, 200]] = np.nan
    model = DAIMC(4, random_state=0, assess=False, handle_unseen="keep").fit(views)
    model.report(tmp_path / "page.html", views, truth=target)
    text_of(tmp_path / "page.html")


def test_an_anndata_is_reported(easy, tmp_path):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(easy[0][0])
    model = DAIMC(4, random_state=0, assess=False).fit(adata)
    model.report(tmp_path / "page.html", adata, truth=adata.obs["daimc"])
    text_of(tmp_path / "page.html")
