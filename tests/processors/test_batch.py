"""`batch` gathers spans by size and by time, and splits what is too large."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.batch import FACTORY, BatchProcessor, Config
from pydantic import ValidationError

from podtrail.component import Context
from podtrail.config.types import MILLISECOND
from podtrail.otlp import Batch, Group, Verdict, encode_span, frame, resource_header, scope_header, split
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large

START = 1_790_000_000_000_000_000
RESOURCE, SCOPE = resource_header({"service.name": "test"}), scope_header("test")


def group(first: int, count: int) -> Group:
    trace_id = bytes(15) + b"\x01"
    spans = [
        encode_span(trace_id=trace_id, span_id=number.to_bytes(8, "big"), name=f"span {number}", start=1, end=2)
        for number in range(first, first + count)
    ]
    return Group(RESOURCE, SCOPE, trace_id, frame(spans), count)


def verdict() -> Verdict:
    return Verdict(bytes(15) + b"\x02", "not_sampled", "", "no policy said yes", START, START, 1)


def processor(config: Config) -> BatchProcessor:
    made = FACTORY.create(config, Context(id="batch"))
    assert isinstance(made, BatchProcessor)
    return made


def sizes(batches: Sequence[Batch]) -> list[int]:
    return [batch.span_count for batch in batches]


def spans(batches: Sequence[Batch]) -> list[bytes]:
    return [raw for batch in batches for group in batch.groups for raw in split(group.spans)]


def test_the_defaults_are_the_collectors() -> None:
    assert Config() == Config(timeout=200 * MILLISECOND, send_batch_size=8192, send_batch_max_size=0)


def test_a_batch_leaves_when_it_is_full() -> None:
    batch = processor(Config(send_batch_size=5))
    assert batch.add(Batch([group(1, 3)], START), START).out == ()
    out = batch.add(Batch([group(4, 3)], START + 1), START + 1).out
    assert sizes(out) == [6]
    assert (batch.deadline(), batch.held(), batch.held_since()) == (None, 0, None)


def test_verdicts_alone_start_no_timeout() -> None:
    batch = processor(Config())
    batch.add(Batch([], START, [verdict()]), START + 1)
    assert (batch.deadline(), batch.held(), batch.held_since()) == (None, 0, None)


def test_the_first_span_inside_waits_no_longer_than_the_timeout() -> None:
    batch = processor(Config())
    batch.add(Batch([group(1, 1)], START), START)
    batch.add(Batch([group(2, 1)], START), START + 150 * MILLISECOND)
    assert batch.deadline() == START + 200 * MILLISECOND
    (out,) = batch.expire(START + 200 * MILLISECOND, 1)
    assert spans([out]) == spans([Batch([group(1, 2)], START)])


def test_a_group_larger_than_the_maximum_is_split() -> None:
    batch = processor(Config(send_batch_size=4, send_batch_max_size=4))
    whole = Batch([group(1, 3), group(4, 10)], START, [verdict()])
    out = batch.add(whole, START).out
    assert sizes(out) == [0, 4, 4, 4]
    assert batch.held() == 1
    assert batch.deadline() == START + 200 * MILLISECOND
    out = [*out, *batch.drain(START)]
    assert spans(out) == spans([whole])
    assert [len(one.verdicts) for one in out] == [1, 0, 0, 0, 0]


def test_without_timeout_spans_leave_at_once_in_pieces_of_the_maximum() -> None:
    batch = processor(Config(timeout=0, send_batch_size=4, send_batch_max_size=4))
    assert sizes(batch.add(Batch([group(1, 2)], START), START).out) == [2]
    assert sizes(batch.add(Batch([group(1, 9)], START), START).out) == [4, 4, 1]
    assert batch.deadline() is None


def test_without_a_size_spans_leave_at_once() -> None:
    batch = processor(Config(send_batch_size=0))
    assert sizes(batch.add(Batch([group(1, 2)], START), START).out) == [2]


def test_the_arrival_of_a_batch_is_the_first_of_its_parts() -> None:
    batch = processor(Config())
    batch.add(Batch([group(1, 1)], START + 5), START + 5)
    batch.add(Batch([group(2, 1)], START), START + 6)
    assert batch.held_since() == START
    assert batch.drain(START + 7)[0].arrived == START


def test_verdicts_wait_for_no_spans_and_leave_ahead_of_theirs() -> None:
    batch = processor(Config(send_batch_size=3))
    first, second = verdict(), verdict()
    (told,) = batch.add(Batch([group(1, 1)], START, [first]), START + 1).out
    assert (told.verdicts, told.groups, told.arrived) == ([first], (), START)
    told, full = batch.add(Batch([group(2, 2)], START, [second]), START + 2).out
    assert (told.verdicts, full.verdicts, full.span_count) == ([second], [], 3)


def test_a_successor_with_a_smaller_size_lets_go_soon() -> None:
    old, new = processor(Config()), processor(Config(send_batch_size=2))
    old.add(Batch([group(1, 3)], START), START)
    new.take_over(old, START + 1)
    assert (old.held(), new.deadline()) == (0, START + 1)
    assert sizes(new.expire(START + 1, 1)) == [3]


def test_what_was_sent_is_counted_by_its_trigger() -> None:
    context = Context(id="batch")
    batch = BatchProcessor(Config(send_batch_size=2), context)
    batch.add(Batch([group(1, 2)], START), START)
    batch.add(Batch([group(1, 1)], START), START)
    batch.expire(START + 200 * MILLISECOND, 1)
    assert context.metrics.snapshot() == {
        "otelcol_processor_batch_batch_size_trigger_send": {"processor=batch": 1},
        "otelcol_processor_batch_timeout_trigger_send": {"processor=batch": 1},
        "otelcol_processor_batch_batch_send_size_count": {"processor=batch": 2},
        "otelcol_processor_batch_batch_send_size_sum": {"processor=batch": 3},
    }


def test_a_maximum_below_the_size_is_an_error() -> None:
    with pytest.raises(ValidationError, match="send_batch_max_size must be greater or equal to send_batch_size"):
        Config(send_batch_size=10, send_batch_max_size=9)


batches = st.builds(
    lambda counts, verdicts: (counts, [verdict() for _ in range(verdicts)]),
    st.lists(st.integers(1, 9), max_size=3),
    st.integers(0, 2),
)


@settings(max_examples=large(25, 100))
@given(
    st.sampled_from([0, 1, 3, 8]),
    st.sampled_from([0, 8, 11]),
    st.sampled_from([0, 200 * MILLISECOND]),
    st.lists(st.tuples(st.integers(0, 300), batches), max_size=8),
)
def test_any_arrivals_keep_the_contract_of_processors(
    size: int, most: int, timeout: int, coming: list[tuple[int, tuple[list[int], list[Verdict]]]]
) -> None:
    config = Config(send_batch_size=size, send_batch_max_size=most, timeout=timeout)
    arrivals, now, first = [], START, 1
    for pause, (counts, verdicts) in coming:
        now += pause * MILLISECOND
        groups = []
        for count in counts:
            groups.append(group(first, count))
            first += count
        arrivals.append(Arrival(now, Batch(groups, now, verdicts)))
    check_processor(lambda context: BatchProcessor(config, context), arrivals)
    made = processor(config)
    out = [batch for now, one in arrivals for batch in made.add(one, now).out] + list(made.drain(now))
    assert spans(out) == spans([arrival.batch for arrival in arrivals])
    assert all(batch.span_count <= most for batch in out if most)
