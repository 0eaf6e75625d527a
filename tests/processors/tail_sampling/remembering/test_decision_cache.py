"""The decision cache: the least recently used are forgotten first, with all that was known of them."""

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st
from podtrail_processors.probability import ALWAYS
from podtrail_processors.tail_sampling.config.sampler import Config
from podtrail_processors.tail_sampling.remembering.decisions import DecisionCache, Remembered

from podtrail.component import Context

STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "get", "discard", "move"]), st.integers(1, 6), st.sampled_from([0, 7]))
)


def _id(number: int) -> bytes:
    return number.to_bytes(16, "big")


@given(STEPS, st.integers(1, 4))
def test_as_many_as_fit_are_remembered_the_last_used(steps: list[tuple[str, int, int]], size: int) -> None:
    cache, model = DecisionCache(size), OrderedDict[int, int]()
    for step, number, threshold in steps:
        known = number in model
        if step == "put" and not known:
            assert cache.put(_id(number), f"policy {number}", threshold)
            model[number] = threshold
            if len(model) > size:
                model.popitem(last=False)
        elif step == "get":
            assert cache.get(_id(number)) == (f"policy {number}" if known else None)
            if known:
                model.move_to_end(number)
        elif step == "discard":
            assert cache.discard(_id(number)) is known
            model.pop(number, None)
        elif step == "move":
            cache, before = DecisionCache(size), cache
            cache.take_over(before)
        assert {number: cache.threshold_of(_id(number)) for number in model} == model
        assert all(cache.threshold_of(_id(number)) == ALWAYS for number in range(1, 7) if number not in model)
        assert {number for number in range(1, 7) if _id(number)[8:] in cache.tails} == set(model)


def test_a_cache_without_room_remembers_nothing() -> None:
    cache = DecisionCache(0)
    assert not cache
    assert not cache.put(_id(1), "p")
    assert cache.get(_id(1)) is None
    assert DecisionCache(1)


def _remembered(**caches: int) -> Remembered:
    about = {"policies": [{"name": "all", "type": "always_sample"}], "decision_cache": caches}
    return Remembered(Config.model_validate(about), Context(id="tail_sampling"))


def test_each_kind_of_decision_has_its_cache_and_both_are_taken_over() -> None:
    first = _remembered(sampled_cache_size=2, non_sampled_cache_size=2)
    assert first.put(_id(1), "sampled", "p", 7)
    assert first.put(_id(2), "not_sampled", "")
    second = _remembered(sampled_cache_size=2, non_sampled_cache_size=2)
    second.take_over(first)
    for remembered in (first, second):
        assert [remembered.recalls(_id(number)) for number in (1, 2, 3)] == [True, True, False]
        assert (remembered.kept.get(_id(1)), remembered.kept.threshold_of(_id(1))) == ("p", 7)
        assert remembered.others.get(_id(2)) == ""


def test_what_has_no_cache_of_its_kind_is_not_remembered() -> None:
    kept = _remembered(sampled_cache_size=2)
    assert (kept.put(_id(1), "sampled", "p"), kept.put(_id(2), "not_sampled", "")) == (True, False)
    others = _remembered(non_sampled_cache_size=2)
    assert (others.put(_id(1), "sampled", "p"), others.put(_id(2), "not_sampled", "")) == (False, True)
    assert all((kept, others))
    assert not _remembered()
