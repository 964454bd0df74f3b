"""Shards, whoever carries their requests: the same bits as one process, and none is ever missed."""

import pickle

import numpy as np
import pytest
from held import KINDS, TOTAL, accuracy, alone, estimator, planted, same

from daimc import shards


class Engine:
    """Shards in this process; before the request of some number one of them is lost."""

    def __init__(self, views, masks, parts, lost=None):
        self.ranges = shards.ranges(TOTAL, parts)
        self.shards = [self.make(views, masks, *own) for own in self.ranges]
        self.requests, self.lost = {}, lost

    def make(self, views, masks, start, stop):
        own = {name: view[start:stop] for name, view in views.items()}
        own_masks = {name: mask[start:stop] for name, mask in (masks or {}).items()}
        return shards.Shard(own, start, TOTAL, masks=own_masks)

    def before(self, setup):
        return [(number, self.requests[number]) for number in setup]

    def ask(self, number, request, setup):
        self.requests[number] = request
        if number == self.lost:
            self.shards[0] = pickle.loads(pickle.dumps(self.shards[0]))
        replies = [shard.answer(number, request, self.before(setup)) for shard in self.shards]
        # An answer that got lost is given again, and nothing else changes.
        assert self.shards[-1].answer(number, request, self.before(setup)) == replies[-1]
        return shards.merge(*reversed(replies))

    def fit(self, model):
        last, setup = shards.drive(model, TOTAL, self.ask)
        found = [shard.place(last, self.before(setup)) for shard in self.shards]
        model.embedding_, model.labels_, model.confidence_ = (np.concatenate(parts) for parts in zip(*found))
        return model


@pytest.mark.parametrize("kind", KINDS)
def test_shards_give_the_bits_of_one_process(kind):
    views, masks, _ = planted(kind)
    assess = kind == "gaps"
    one = estimator(assess=assess).fit(views, mask=masks)
    many = Engine(views, masks, 3).fit(estimator(assess=assess))
    same(one, many)
    assert (many.significance_, many.reproducibility_) == (one.significance_, one.reproducibility_)
    np.testing.assert_array_equal(many.predict(views, mask=masks), one.predict(views, mask=masks))


def test_a_shard_that_is_lost_comes_back_from_the_bases():
    views, _, target = planted("dense")
    undisturbed = Engine(views, None, 2).fit(estimator())
    for lost in (3, 12, 18 + undisturbed.n_iter_ // 2, 22 + undisturbed.n_iter_):
        found = Engine(views, None, 2, lost).fit(estimator())
        assert abs(accuracy(target, found.labels_) - accuracy(target, undisturbed.labels_)) < 0.01


def test_memory_maps_are_held_where_they_lie(tmp_path):
    views, _, _ = planted("dense")
    mapped = {}
    for name, view in views.items():
        np.save(tmp_path / f"{name}.npy", view)
        mapped[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    same(alone("dense"), Engine(mapped, None, 2).fit(estimator()))


def test_a_model_without_instances_is_saved_and_places_others(tmp_path):
    views, _, _ = planted("dense")
    model = Engine(views, None, 2).fit(estimator(tol=0.1))
    model.save(tmp_path / "model.safetensors")
    loaded = type(model).load(tmp_path / "model.safetensors")
    some = {name: view[:50] for name, view in views.items()}
    np.testing.assert_array_equal(loaded.predict(some), model.predict(some))
    assert len(loaded.labels_) == 0


def test_neighbourhoods_are_those_of_one_process_and_the_model_can_be_updated():
    views, _, target = planted("gaps")
    one = estimator(neighbours="refine", map=False).fit(views)
    many = Engine(views, None, 3).fit(estimator(neighbours="refine"))
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
    model = Engine(views, None, 2).fit(estimator(neighbours="auto", tol=0.1))
    used, reason = model.neighbours_
    assert used == "off" and reason.startswith("they would take ") and reason.endswith("and there are 10 MB")
    with pytest.raises(ValueError, match="neighbours = refine: it would take .* of memory in the process that drives"):
        Engine(views, None, 2).fit(estimator(neighbours="refine"))


def test_rows_of_parts_are_found_again():
    lengths = [5, 0, 3, 7]
    parts = [np.arange(start, start + length).reshape(-1, 1) for start, length in zip((0, 5, 5, 8), lengths)]
    for ranges in ([(0, 15)], [(0, 5), (5, 8), (8, 15)], [(0, 4), (4, 6), (6, 15)]):
        for (start, stop), own in zip(ranges, shards.pieces(lengths, ranges)):
            rows = shards.assemble([(parts[part], first, last) for part, first, last in own])
            assert rows.ravel().tolist() == list(range(start, stop))


def test_what_cannot_be_had_from_several_is_refused():
    def never(*_):
        raise AssertionError("nobody is asked")

    for params, words in [
        ({"runs": 3}, "runs = 3"),
        ({"penalty": "auto"}, "penalty"),
        ({"view_weights": "learned"}, "view_weights"),
        ({"init": np.ones((TOTAL, 3))}, "init = array: not where several hold the rows"),
    ]:
        with pytest.raises(ValueError, match=words):
            shards.drive(estimator(**params), TOTAL, never)
    with pytest.raises(ValueError, match="not whole leaves"):
        shards.Shard({"first": np.ones((10, 2))}, 3, TOTAL)
    with pytest.raises(KeyError):  # what an engine raises ends the fit, and is raised
        shards.drive(estimator(), TOTAL, lambda *_: {}["nobody"])
