"""`decision_memory`: millions of decisions in a few bytes each, wrong in no other direction than is said."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.tail_sampling.config.sampler import DecisionMemoryConfig as Settings
from podtrail_processors.tail_sampling.remembering.decision_memory import DecisionMemory

from podtrail.component import Metrics
from podtrail.otlp import Status

Make = Callable[..., Any]
ERROR = Status(2, "")
KEY = bytes(range(16))


def _id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def _memory(kept: int = 0, not_kept: int = 0) -> DecisionMemory:
    return DecisionMemory(Settings(kept=kept, not_kept=not_kept), KEY, Metrics())


@pytest.mark.parametrize(("decision", "about"), [("sampled", "kept"), ("not_sampled", "not_kept")])
def test_as_many_as_promised_are_remembered_but_for_one_in_a_thousand(decision: Any, about: str) -> None:
    memory = _memory(**{about: 20_000})
    for number in range(1, 50_001):
        memory.put(_id(number), decision)
    promised = [memory.get(_id(number)) for number in range(30_001, 50_001)]
    assert promised.count(None) <= 20
    assert set(promised) <= {decision, None}


def test_what_is_forgotten_is_counted() -> None:
    metrics = Metrics()
    memory = DecisionMemory(Settings(kept=94, not_kept=94), KEY, metrics)
    for number in range(1, 201):
        memory.put(_id(number), "sampled" if number % 2 else "dropped")
    assert "otelcol_processor_tail_sampling_decisions_forgotten" not in {
        name for name, values in metrics.snapshot().items() if any(values.values())
    }
    for number in range(201, 401):
        memory.put(_id(number), "sampled" if number % 2 else "dropped")
    forgotten = metrics.snapshot()["otelcol_processor_tail_sampling_decisions_forgotten"]
    assert forgotten == {"decision=sampled": 72, "decision=not_sampled": 72}


@pytest.mark.parametrize(("about", "each"), [("kept", 5.6), ("not_kept", 8.3)])
def test_a_decision_takes_few_bytes(about: str, each: float) -> None:
    assert _memory(**{about: 100_000}).size <= 100_000 * each


def test_hardly_a_trace_is_let_go_for_the_decision_on_another() -> None:
    memory = _memory(kept=0, not_kept=5_000)
    for number in range(1, 10_001):
        memory.put(_id(number), "not_sampled")
    strangers = [_id(number + (1 << 100)) for number in range(10_000)] + [_id(number << 64) for number in range(1, 9)]
    assert {memory.get(stranger) for stranger in strangers} == {None}


@pytest.mark.parametrize(("decision", "one", "other"), [("sampled", 2783, 3328), ("not_sampled", 16383, 122941)])
def test_fingerprints_that_differ_in_their_first_byte_are_two(decision: Any, one: int, other: int) -> None:
    """In one bucket; of all but that byte the two ids have the same."""
    memory = _memory(94, 94)
    memory.put(_id(one), decision)
    assert (memory.get(_id(one)), memory.get(_id(other))) == (decision, None)


@pytest.mark.parametrize("decision", ["sampled", "not_sampled", "dropped"])
def test_what_is_remembered_already_takes_no_second_place(decision: Any) -> None:
    metrics = Metrics()
    memory = DecisionMemory(Settings(kept=94, not_kept=94), KEY, metrics)
    for number in range(1, 129):
        memory.put(_id(number), decision)
        memory.put(_id(number), decision)
    assert [memory.get(_id(number)) for number in range(1, 129)] == [decision] * 128
    assert not any(metrics.snapshot()["otelcol_processor_tail_sampling_decisions_forgotten"].values())


def test_no_more_than_the_last_four_sizes_are_asked() -> None:
    memory = _memory(100, 100)
    memory.put(_id(1), "sampled")
    found = []
    for more in range(1, 6):
        successor = _memory(100 + more, 100)
        successor.take_over(memory)
        memory = successor
        found.append(memory.get(_id(1)))
    assert found == ["sampled"] * 4 + [None]


@given(st.lists(st.tuples(st.sampled_from(["put", "change", "reload", "resize"]), st.integers(1, 40)), max_size=60))
@settings(deadline=None)
def test_what_is_remembered_is_what_was_decided_last(steps: list[tuple[str, int]]) -> None:
    kinds = ("sampled", "not_sampled", "dropped")
    memory, size, known = _memory(100, 100), 100, dict[int, str]()
    for at, (step, number) in enumerate(steps):
        if step == "put" and number not in known:
            memory.put(_id(number), kinds[at % 3])  # type: ignore[arg-type] # one of the three
            known[number] = kinds[at % 3]
        elif step == "change" and known.get(number) == "not_sampled":
            memory.change(_id(number))
            known[number] = "sampled"
        elif step in ("reload", "resize"):
            size += step == "resize" and size < 104
            successor = _memory(size, size)
            successor.take_over(memory)
            memory = successor
    assert {number: memory.get(_id(number)) for number in range(1, 41)} == dict.fromkeys(range(1, 41)) | known


def test_of_another_size_a_predecessor_is_asked_until_as_much_has_come_in() -> None:
    before = _memory(5, 5)
    before.put(_id(1), "sampled")
    memory = _memory(100, 100)
    memory.take_over(before)
    assert memory.size > _memory(100, 100).size
    for number in range(2, 11):
        memory.put(_id(number), "sampled")
    assert memory.get(_id(1)) == "sampled"
    memory.put(_id(11), "sampled")
    assert memory.get(_id(1)) is None
    assert memory.size == _memory(100, 100).size


@pytest.mark.parametrize(("kept", "not_kept", "expected"), [(9, 0, [True, False]), (0, 9, [False, True])])
def test_a_decision_without_a_table_is_not_remembered(kept: int, not_kept: int, expected: list[bool]) -> None:
    memory = _memory(kept, not_kept)
    assert [memory.put(_id(1), "sampled"), memory.put(_id(2), "dropped")] == expected
    assert [memory.get(_id(1)), memory.get(_id(2))] == [
        decision if is_kept else None for decision, is_kept in zip(("sampled", "dropped"), expected, strict=True)
    ]


def test_two_successors_of_one_memory_write_over_none_of_each_others() -> None:
    before = _memory(94, 94)
    before.put(_id(1), "sampled")
    first, second = _memory(94, 94), _memory(94, 94)
    for successor in (first, second):
        successor.take_over(before)
    second.put(_id(2), "dropped")
    assert (first.get(_id(1)), second.get(_id(1))) == ("sampled", "sampled")
    assert (first.get(_id(2)), second.get(_id(2))) == (None, "dropped")


def test_late_spans_follow_what_is_only_remembered_here(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("status_code", status_codes=["ERROR"]), num_traces=1, decision_memory={"kept": 9})
    made.send(0, span(1, 1, status=ERROR))
    made.send(3, span(2, 1))
    made.send(6, span(1, 2))
    made.stop(9)
    assert made.kept == [(1, 1), (1, 2)]
    assert made.counted("early_releases_from_cache_decision") == {"sampled=true": 1}
    assert not made.context.ledger.dropped


def test_traces_that_are_remembered_take_no_place_in_memory(sampler: Make, span: Make, policy: Make) -> None:
    made = sampler(policy("always_sample"), decision_memory={"kept": 9, "not_kept": 9})
    made.send(0, span(1), span(2))
    made.pass_time(3)
    assert made.counted("sampling_traces_on_memory") == {"": 0}


def test_the_memory_survives_a_reload_that_makes_it_larger(sampler: Make, span: Make, policy: Make) -> None:
    errors = policy("status_code", status_codes=["ERROR"])
    before = sampler(errors, decision_memory={"kept": 9, "not_kept": 9})
    before.send(0, span(1, 1, status=ERROR), span(2, 1))
    before.pass_time(3)
    after = sampler(errors, decision_memory={"kept": 99, "not_kept": 99}, num_shards=2)
    after.under_test.take_over(before.under_test, before.verdicts[-1].decided_at)
    after.send(4, span(1, 2), span(2, 2, status=ERROR))
    after.stop(9)
    assert after.kept == [(1, 2)]
    assert not after.verdicts


def test_more_than_fits_into_any_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="must not exceed 1000000000"):
        Settings(kept=10**12)
