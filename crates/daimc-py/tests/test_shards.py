"""Shards: the bits of one process with every option, also if a shard is lost."""

import pickle

import numpy as np
import pytest
from held import KINDS, TOTAL, accuracy, alone, estimator, planted, same

from daimc import shards


class Shards:
    """Shards in this process; before the task of some number one of them is lost."""

    def __init__(self, views, masks, parts, lost=None):
        self.ranges = shards.ranges(TOTAL, parts)
        self.shards = [self.make(views, masks, *own) for own in self.ranges]
        self.requests, self.lost, self.last = {}, lost, 0

    def make(self, views, masks, start, stop):
        own = {name: view[start:stop] for name, view in views.items()}
        own_masks = {name: mask[start:stop] for name, mask in (masks or {}).items()}
        return shards.Shard(own, start, TOTAL, masks=own_masks)

    def ask(self, number, request, setup):
        self.last = number
        self.requests = {old: self.requests[old] for old in setup} | {number: request}
        if number == self.lost:
            self.shards[0] = pickle.loads(pickle.dumps(self.shards[0]))
        answers = [shard.answer(number, request) for shard in self.shards]
        if number == self.lost and number > 1:
            assert answers[0] is None and shards.merge(*answers) is None
            answers[0] = self.shards[0].answer(number, request, [self.requests[old] for old in setup])
        # An answer that got lost is given again, and nothing else changes.
        assert self.shards[-1].answer(number, request) == answers[-1]
        return shards.merge(*reversed(answers))

    def fit(self, model):
        tasks, setup = shards.drive(model, TOTAL, self.ask)
        labels = model.labels_
        if self.lost == "at the end":
            self.shards[0] = pickle.loads(pickle.dumps(self.shards[0]))
            assert self.shards[0].place(model, tasks) is None
        found = [shard.place(model, tasks, [self.requests[old] for old in setup]) for shard in self.shards]
        model.embedding_, model.labels_, model.confidence_, model.contributions_ = map(np.concatenate, zip(*found))
        np.testing.assert_array_equal(model.labels_, labels)
        return model


@pytest.mark.parametrize("kind", KINDS)
def test_shards_give_the_bits_of_one_process(kind):
    views, masks, _ = planted(kind)
    assess = kind == "gaps"
    one = estimator(assess=assess).fit(views, mask=masks)
    many = Shards(views, masks, 3).fit(estimator(assess=assess))
    same(one, many)
    assert (many.significance_, many.reproducibility_) == (one.significance_, one.reproducibility_)
    np.testing.assert_array_equal(many.predict(views, mask=masks), one.predict(views, mask=masks))


OPTIONS = {
    "runs": {"runs": 2},
    "learned weights": {"view_weights": "learned"},
    "automatic penalty": {"penalty": "auto", "max_iter": 3},
    "start": {"init": np.tile([[1.0, 0.2, 0.1], [0.1, 1.0, 0.3]], (TOTAL // 2, 1))},
    "map": {"map": True},
}


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_gives_the_bits_of_one_process(option):
    views, _, _ = planted("dense")
    one = estimator(**{"max_iter": 6, **OPTIONS[option]}).fit(views)
    many = Shards(views, None, 3).fit(estimator(**{"max_iter": 6, **OPTIONS[option]}))
    same(one, many)
    np.testing.assert_array_equal(many.run_agreement_, one.run_agreement_)
    if one.map_ is not None:
        np.testing.assert_array_equal(many.map_, one.map_)


def test_a_shard_that_is_lost_is_replaced_without_a_trace():
    views, _, _ = planted("dense")
    engine = Shards(views, None, 2)
    undisturbed = engine.fit(estimator())
    for lost in (1, 3, 12, engine.last // 2, engine.last, "at the end"):
        same(undisturbed, Shards(views, None, 2, lost).fit(estimator()))


def test_memory_maps_are_held_where_they_lie(tmp_path):
    views, _, _ = planted("dense")
    mapped = {}
    for name, view in views.items():
        np.save(tmp_path / f"{name}.npy", view)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    same(alone("dense"), Shards(mapped, None, 2).fit(estimator()))


def test_a_model_is_saved_with_its_instances_and_places_others(tmp_path):
    views, _, _ = planted("dense")
    model = Shards(views, None, 2).fit(estimator(tol=0.1))
    model.save(tmp_path / "model.safetensors")
    loaded = type(model).load(tmp_path / "model.safetensors")
    some = {name: view[:50] for name, view in views.items()}
    np.testing.assert_array_equal(loaded.predict(some), model.predict(some))
    np.testing.assert_array_equal(loaded.labels_, model.labels_)
    model.report(tmp_path / "report.html", views)
    assert "51" in (tmp_path / "report.html").read_text()


def test_results_that_do_not_fit_into_memory_stay_in_the_shards(monkeypatch, tmp_path):
    views, _, _ = planted("dense")
    monkeypatch.setattr(shards._daimc, "available_memory", lambda: 100_000)
    engine, model = Shards(views, None, 2), estimator(tol=0.1)
    tasks, _ = shards.drive(model, TOTAL, engine.ask)
    assert len(model.labels_) == 0
    assert sum(len(shard.place(model, tasks).labels) for shard in engine.shards) == TOTAL
    with pytest.raises(ValueError, match="the model has no instances"):
        model.report(tmp_path / "report.html", views)


def test_neighbourhoods_are_those_of_one_process_and_the_model_can_be_updated():
    views, _, target = planted("gaps")
    one = estimator(neighbours="refine", map=False).fit(views)
    many = Shards(views, None, 3).fit(estimator(neighbours="refine"))
    assert one.neighbours_[0] == "refine" and many.neighbours_ == one.neighbours_
    same(one, many)
    some = {name: view[1000:3000] for name, view in views.items()}
    np.testing.assert_array_equal(many.predict(some), one.predict(some))
    many.partial_fit(some)
    one.partial_fit(some)
    np.testing.assert_array_equal(many.labels_, one.labels_)
    assert accuracy(target[1000:3000], many.labels_) > 0.9


def test_without_the_memory_neighbourhoods_are_off_and_say_so(monkeypatch):
    views, _, _ = planted("dense")
    monkeypatch.setattr(shards._daimc, "available_memory", lambda: 10_000_000)
    model = Shards(views, None, 2).fit(estimator(neighbours="auto", tol=0.1))
    used, reason = model.neighbours_
    assert used == "off" and reason.startswith("neighbourhoods would take ") and reason.endswith("available 10 MB")
    with pytest.raises(ValueError, match="neighbours = refine: it would take .* of memory in the driving process"):
        Shards(views, None, 2).fit(estimator(neighbours="refine"))


def test_rows_of_parts_are_found_again():
    lengths = [5, 0, 3, 7]
    parts = [np.arange(start, start + length).reshape(-1, 1) for start, length in zip((0, 5, 5, 8), lengths)]
    for ranges in ([(0, 15)], [(0, 5), (5, 8), (8, 15)], [(0, 4), (4, 6), (6, 15)]):
        for (start, stop), own in zip(ranges, shards.pieces(lengths, ranges)):
            rows = shards.assemble([(parts[part], first, last) for part, first, last in own])
            assert rows.ravel().tolist() == list(range(start, stop))


def test_errors_of_the_engine_and_of_ranges_are_raised():
    with pytest.raises(ValueError, match="not whole leaves"):
        shards.Shard({"first": np.ones((10, 2))}, 3, TOTAL)
    with pytest.raises(KeyError):  # what an engine raises ends the fit, and is raised
        shards.drive(estimator(), TOTAL, lambda *_: {}["missing"])
