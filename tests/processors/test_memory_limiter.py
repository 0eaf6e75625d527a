"""`memory_limiter` refuses at the door, with an error that says when to try again."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.memory_limiter import FACTORY, Config, MemoryLimiter, total_memory
from pydantic import ValidationError

from podtrail.component import Context, Refused
from podtrail.component.container import container_limit
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large

MIB = 1 << 20
START = 1_790_000_000_000_000_000
SPAN = encode_span(trace_id=b"t" * 16, span_id=b"spanspan", name="span", start=1, end=2)
BATCH = Batch([Group(resource_header({}), scope_header("test"), b"t" * 16, frame([SPAN]), 1)], START)


class Memory:
    """What the process says it uses, of which some was freed and is kept, some is garbage."""

    def __init__(self, mib: int, *, kept: int = 0, garbage: int = 0) -> None:
        self.mib = mib
        self.kept = kept
        self.garbage = garbage
        self.asked = 0
        self.collected = 0

    def __call__(self) -> int:
        self.asked += 1
        return self.mib * MIB

    def reclaim(self, *, collect: bool) -> int:
        if collect:
            self.collected += 1
            self.kept += self.garbage
            self.garbage = 0
        self.mib -= self.kept
        self.kept = 0
        return self.mib * MIB


def limiter(memory: Memory, **config: int) -> tuple[MemoryLimiter, Context]:
    context = Context(id="memory_limiter", memory_used=memory, reclaim_memory=memory.reclaim)
    made = FACTORY.create(Config.model_validate({"check_interval": SECOND, "limit_mib": 100} | config), context)
    assert isinstance(made, MemoryLimiter)
    return made, context


def test_what_fits_passes_untouched() -> None:
    made, context = limiter(Memory(80))
    made.admit(BATCH, START)
    assert made.add(BATCH, START).out == [BATCH]
    assert context.metrics.snapshot()["otelcol_processor_accepted_spans"] == {"processor=memory_limiter": 1}


def test_spans_are_refused_above_the_limit_less_a_fifth() -> None:
    made, context = limiter(Memory(81))
    with pytest.raises(Refused, match="81 MiB of memory in use, 80 MiB allowed"):
        made.admit(BATCH, START)
    refused = context.metrics.snapshot()["otelcol_processor_refused_spans"]
    assert refused == {"processor=memory_limiter": 1}


def test_the_refusal_says_when_memory_is_measured_again() -> None:
    made, _ = limiter(Memory(90))
    with pytest.raises(Refused) as first:
        made.admit(BATCH, START)
    with pytest.raises(Refused) as second:
        made.admit(BATCH, START + SECOND // 4)
    assert (first.value.after, second.value.after) == (1.0, 0.75)


def test_memory_is_measured_once_in_an_interval_and_spans_pass_when_it_has_fallen() -> None:
    memory = Memory(90)
    made, _ = limiter(memory)
    with pytest.raises(Refused):
        made.admit(BATCH, START)
    memory.mib = 10
    with pytest.raises(Refused):
        made.admit(BATCH, START + SECOND - 1)
    made.admit(BATCH, START + SECOND)
    assert memory.asked == 2


def test_the_spike_limit_moves_the_soft_limit() -> None:
    made, _ = limiter(Memory(51), spike_limit_mib=50)
    with pytest.raises(Refused):
        made.admit(BATCH, START)


def test_percentages_are_of_the_memory_there_is() -> None:
    assert Config(check_interval=1, limit_percentage=50).soft_limit(1000 * MIB) == 400 * MIB
    assert Config(check_interval=1, limit_percentage=50, spike_limit_percentage=20).soft_limit(1000) == 300
    assert Config(check_interval=1, limit_mib=10, limit_percentage=50).soft_limit(1000 * MIB) == 8 * MIB


def test_a_percentage_of_this_machine_can_be_used() -> None:
    made, _ = limiter(Memory(1), limit_mib=0, limit_percentage=90)
    made.admit(BATCH, START)


def test_a_container_has_the_memory_that_its_control_group_allows(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    machine = total_memory(container_limit([]))
    limit.write_text("max\n")
    assert total_memory(container_limit([str(limit), str(tmp_path / "missing")])) == machine
    limit.write_text("1048576\n")
    assert total_memory(container_limit([str(limit)])) == MIB


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({}, "check_interval must be greater than zero"),
        ({"check_interval": "1s"}, "limit_mib or limit_percentage must be greater than zero"),
        ({"check_interval": "1s", "limit_mib": 10, "spike_limit_mib": 10}, "spike_limit_mib must be smaller"),
        (
            {"check_interval": "1s", "limit_percentage": 10, "spike_limit_percentage": 11},
            "spike_limit_percentage must be smaller",
        ),
        ({"check_interval": "1s", "limit_percentage": 101}, "less than or equal to 100"),
        (
            {"check_interval": "1s", "limit_mib": 10, "min_gc_interval_when_hard_limited": "11s"},
            "min_gc_interval_when_soft_limited must not be shorter",
        ),
        (
            {"check_interval": "1s", "limit_mib": 10, "max_gc_interval_when_hard_limited": "31s"},
            "max_gc_interval_when_soft_limited must not be shorter",
        ),
        (
            {"check_interval": "1s", "limit_mib": 10, "min_gc_interval_when_soft_limited": "31s"},
            "must not be shorter than its min_gc_interval",
        ),
    ],
)
def test_a_configuration_that_limits_nothing_is_an_error(config: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Config.model_validate(config)


def test_a_successor_goes_on_from_the_last_measurement() -> None:
    memory = Memory(90)
    old, _ = limiter(memory)
    with pytest.raises(Refused):
        old.admit(BATCH, START)
    new, _ = limiter(memory)
    new.take_over(old, START + 1)
    with pytest.raises(Refused):
        new.admit(BATCH, START + 1)
    assert memory.asked == 1


def test_memory_that_was_freed_is_given_back_before_anything_is_refused() -> None:
    memory = Memory(500, kept=450)
    made, _ = limiter(memory)
    made.admit(BATCH, START)
    assert (memory.mib, memory.collected) == (50, 0)


def test_garbage_is_collected_before_anything_is_refused() -> None:
    memory = Memory(90, garbage=60)
    made, _ = limiter(memory)
    made.admit(BATCH, START)
    assert (memory.mib, memory.collected) == (30, 1)


def _collections(memory: Memory, seconds: int, **config: int) -> list[int]:
    """Return the seconds at which garbage is collected, a batch coming every second."""
    made, _ = limiter(memory, **config)
    found = []
    for second in range(seconds):
        before = memory.collected
        with pytest.raises(Refused):
            made.admit(BATCH, START + second * SECOND)
        found += [second] * (memory.collected - before)
    return found


def test_collections_that_free_little_become_rarer() -> None:
    assert _collections(Memory(90), 90) == [0, 20, 50, 80]
    assert _collections(Memory(110), 90) == [0, 2, 6, 14, 30, 60]


def test_collections_come_at_their_least_interval_when_that_may_not_grow() -> None:
    assert _collections(Memory(90), 30, max_gc_interval_when_soft_limited=0, max_gc_interval_when_hard_limited=0) == [
        0,
        10,
        20,
    ]
    assert _collections(Memory(110), 4, max_gc_interval_when_hard_limited=0) == [0, 1, 2, 3]


def test_memory_is_measured_before_what_is_arriving_could_exceed_the_limit() -> None:
    memory = Memory(60)
    made, context = limiter(memory)
    context.arriving.ever = 10 * MIB
    made.ask(START)  # measured with these
    context.arriving.ever += 10 * MIB  # of which each may take two
    made.ask(START + 1)
    assert memory.asked == 1
    context.arriving.ever += 1
    made.ask(START + 2)
    assert memory.asked == 2
    context.arriving.ever += 20 * MIB
    memory.mib = 81
    with pytest.raises(Refused, match="81 MiB of memory in use"):
        made.ask(START + 3)


def test_memory_is_measured_before_what_was_taken_could_exceed_the_limit() -> None:
    memory = Memory(80)
    made, _ = limiter(memory)
    made.admit(BATCH, START)
    made.add(BATCH, START)
    memory.mib = 81
    with pytest.raises(Refused):
        made.admit(BATCH, START + 1)


@settings(max_examples=large(15, 100))
@given(st.lists(st.integers(0, 5), max_size=10))
def test_any_arrivals_keep_the_contract_of_processors(pauses: list[int]) -> None:
    arrivals = [Arrival(START + sum(pauses[:at]) * SECOND, BATCH) for at in range(len(pauses))]
    config = Config(check_interval=SECOND, limit_mib=1)
    check_processor(lambda context: MemoryLimiter(config, 0, context), arrivals)


@given(st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 200)), max_size=20))
def test_it_refuses_exactly_while_the_last_measurement_is_above_the_limit(steps: list[tuple[int, int]]) -> None:
    memory = Memory(0)
    made, _ = limiter(memory)
    now, measured_at, measured = START, START - SECOND, 0
    for pause, memory.mib in steps:
        now += pause
        if now >= measured_at + SECOND:
            measured_at, measured = now, memory.mib
        if measured <= 80:
            made.admit(BATCH, now)
            continue
        with pytest.raises(Refused) as refused:
            made.admit(BATCH, now)
        assert refused.value.after == (measured_at + SECOND - now) / SECOND


class Pages:
    """A memory that only enriches, of so many MiB."""

    def __init__(self, memory: Memory, mib: int) -> None:
        self.memory, self.mib = memory, mib
        memory.mib += mib

    def memory_size(self) -> int:
        return self.mib * MIB

    def shrink(self) -> None:
        forgotten = self.mib - self.mib // 2
        self.mib -= forgotten
        self.memory.kept += forgotten


@pytest.mark.parametrize(("others", "left", "refused"), [(50, 20, False), (79, 1, False), (85, 1, True)])
def test_memories_that_only_enrich_shrink_before_a_span_is_refused(others: int, left: int, refused: bool) -> None:
    memory = Memory(others)
    pages = Pages(memory, 40)
    made, context = limiter(memory)
    context.enriching.register(pages)
    if refused:
        with pytest.raises(Refused):
            made.admit(BATCH, START)
    else:
        made.admit(BATCH, START)
    assert pages.mib == left
    forgotten = context.metrics.snapshot()["otelcol_processor_memory_limiter_forgotten_bytes"]
    assert forgotten == {"processor=memory_limiter": (40 - left) * MIB}
