"""The traces in memory: since when something is held, what is handed on, and headers that traces share."""

import pytest
from podtrail_processors.evidence.evidence import Header
from podtrail_processors.tail_sampling.holding.held_trace import FORGOTTEN, HeldTrace
from podtrail_processors.tail_sampling.holding.trace_memory import Headers, TraceMemory

HEADER, OTHER = Header(b"resource", b"scope"), Header(b"resource", b"other")


def _arrive(memory: TraceMemory, number: int, arrived: int, due: int) -> HeldTrace:
    """Have a trace of one span come in."""
    memory.note_arrival(arrived, due)
    trace = HeldTrace(bytes([number]) * 16, HEADER, arrived, due, arrived)
    trace.chunks.append(b"span")
    trace.span_count = 1
    memory.spans += 1
    return memory.open(trace)


def _leave(memory: TraceMemory, trace: HeldTrace) -> None:
    memory.let_go(trace)
    memory.forget(trace)


def test_something_is_held_since_the_oldest_arrived() -> None:
    memory = TraceMemory()
    assert memory.held_since() is None
    first, second = _arrive(memory, 1, 10, 20), _arrive(memory, 2, 12, 22)
    assert memory.held_since() == 10
    _leave(memory, first)
    assert memory.held_since() == 12
    _leave(memory, second)
    assert memory.held_since() is None


def test_a_straggler_counts_until_all_has_left_that_it_can_be_among() -> None:
    memory = TraceMemory()
    first = _arrive(memory, 1, 10, 20)
    straggler = _arrive(memory, 2, 5, 25)
    assert memory.held_since() == 5
    _leave(memory, first)
    assert memory.held_since() == 5
    _arrive(memory, 3, 11, 31)
    _leave(memory, straggler)
    assert memory.held_since() == 11


def test_a_straggler_may_join_a_trace_that_is_due_later() -> None:
    memory = TraceMemory()
    _arrive(memory, 1, 10, 30)
    memory.note_arrival(5, 25)
    assert memory.held_since() == 5


def test_the_oldest_is_who_came_first_decided_or_not_until_it_is_forgotten() -> None:
    memory = TraceMemory()
    traces = [_arrive(memory, number, number, 20) for number in (1, 2, 3)]
    _leave(memory, traces[1])
    assert memory.oldest() is traces[0]
    _leave(memory, traces[0])
    assert memory.oldest() is traces[2]
    _leave(memory, traces[2])
    with pytest.raises(IndexError):
        memory.oldest()


def test_who_inherits_holds_all_in_the_order_of_its_arrival() -> None:
    parts = [TraceMemory(), TraceMemory()]
    later, earlier = _arrive(parts[0], 1, 10, 20), _arrive(parts[1], 2, 8, 18)
    parts[0].note_arrival(7, 17)
    contents = [part.release() for part in parts]
    for part in parts:
        assert (part.held_since(), part.spans, part.bytes, part.traces) == (None, 0, 0, {})
        with pytest.raises(IndexError):
            part.oldest()
    heir = TraceMemory()
    heir.inherit(contents, [later, earlier])
    assert (heir.oldest(), heir.spans, heir.bytes) == (earlier, 2, earlier.weight + later.weight)
    assert heir.held_since() == 7
    _leave(heir, earlier)
    _leave(heir, later)
    _arrive(heir, 3, 30, 40)
    heir.note_arrival(9, 19)
    assert heir.held_since() == 9


def test_a_trace_comes_out_under_the_headers_that_it_came_in_with() -> None:
    memory = TraceMemory(weighs_headers=True)
    trace = _arrive(memory, 1, 10, 20)
    memory.turn(trace, OTHER)
    trace.chunks += [b"second", b"third"]
    trace.span_count += 3
    assert (trace.headers(), trace.counts()) == ([HEADER, OTHER], [1, 3])
    groups = trace.groups(b"".join(trace.chunks))
    assert [(group.scope, group.spans, group.span_count) for group in groups] == [
        (b"scope", b"span", 1),
        (b"other", b"secondthird", 3),
    ]
    _leave(memory, trace)
    assert (memory.bytes, trace.state) == (0, FORGOTTEN)


def test_equal_headers_are_one_object() -> None:
    headers = Headers()
    assert headers.intern(b"a", b"b") is headers.intern(b"a", b"b")
    assert headers.intern(b"a", b"c") is not headers.intern(b"a", b"b")


@pytest.mark.parametrize("others", [[b"%d" % number for number in range(5000)], [b"x" * (5 << 20), b"y"]])
def test_headers_are_not_known_for_ever(others: list[bytes]) -> None:
    headers = Headers()
    first = headers.intern(b"a", b"b")
    for other in others:
        headers.intern(other, b"")
    assert headers.intern(b"a", b"b") is not first
