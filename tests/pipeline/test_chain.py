"""The one place that drives processors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.component import Ledger, Refused, Taken
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.pipeline.chain import ProcessorChain

SECOND = 1_000_000_000
_IDS = count(1)


def batch_of(spans: int = 1) -> Batch:
    trace_id = next(_IDS).to_bytes(16, "big")
    raw = [
        encode_span(trace_id=trace_id, span_id=n.to_bytes(8, "big"), name="work", start=1, end=2)
        for n in range(1, spans + 1)
    ]
    group = Group(resource_header({"service.name": "test"}), scope_header("test"), trace_id, frame(raw), spans)
    return Batch([group], arrived=1)


@dataclass
class Delay:
    """Holds each batch for `wait` nanoseconds, at most `room` spans; notes when it was asked to let go."""

    wait: int
    room: int = 1_000_000
    waiting: list[tuple[int, Batch]] = field(default_factory=list)
    expired_at: list[int] = field(default_factory=list)

    def add(self, batch: Batch, now: int) -> Taken:
        if self.held() + batch.span_count > self.room:
            return Taken(rest=batch)
        self.waiting.append((now + self.wait, batch))
        return Taken()

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        out: list[Batch] = []
        while self.waiting and self.waiting[0][0] <= now and sum(b.span_count for b in out) < limit:
            out.append(self.waiting.pop(0)[1])
        self.expired_at += [now] if out else []
        return out

    def deadline(self) -> int | None:
        return self.waiting[0][0] if self.waiting else None

    def held(self) -> int:
        return sum(batch.span_count for _, batch in self.waiting)

    def held_since(self) -> int | None:
        return self.waiting[0][1].arrived if self.waiting else None

    def take_over(self, predecessor: "Delay", now: int) -> None:
        self.waiting, predecessor.waiting = predecessor.waiting, []

    def drain(self, now: int) -> Sequence[Batch]:
        out = [batch for _, batch in self.waiting]
        self.waiting = []
        return out


class Gate(Delay):
    """Lets everything pass, or refuses."""

    shut = False

    def admit(self, batch: Batch, now: int) -> None:
        if self.shut:
            raise Refused("the gate is shut", after=1.0)

    def add(self, batch: Batch, now: int) -> Taken:
        return Taken([batch])


def advance(chain: ProcessorChain, now: int, limit: int = 10_000) -> None:
    while chain.advance(now, limit):
        pass


def test_serves_every_deadline_at_its_own_time_and_in_order() -> None:
    first, second = Delay(3 * SECOND), Delay(2 * SECOND)
    chain = ProcessorChain([first, second], Ledger())
    chain.add(batch_of(), 0)
    advance(chain, 1 * SECOND)
    chain.add(batch_of(), 1 * SECOND)

    advance(chain, 60 * SECOND)

    assert first.expired_at == [3 * SECOND, 4 * SECOND]
    assert second.expired_at == [5 * SECOND, 6 * SECOND]
    assert len(chain.outbox) == 2


def test_what_falls_due_within_a_tick_is_done_at_its_end_at_once() -> None:
    first, second = Delay(3), Delay(20)
    chain = ProcessorChain([first, second], Ledger(), tick=10)
    for now in (0, 4, 7, 8):
        chain.add(batch_of(), now)

    assert chain.deadline() == 10
    assert chain.advance(9, 10_000) is False
    advance(chain, 60)

    assert first.expired_at == [10, 20]
    assert second.expired_at == [30, 40]
    assert len(chain.outbox) == 4


def test_does_nothing_before_a_deadline() -> None:
    chain = ProcessorChain([Delay(3 * SECOND)], Ledger())
    chain.add(batch_of(), 0)

    assert chain.advance(3 * SECOND - 1, 10) is False
    assert not chain.outbox
    assert chain.deadline() == 3 * SECOND


def test_slices_a_long_expiry_by_the_limit() -> None:
    chain = ProcessorChain([Delay(SECOND)], Ledger())
    for _ in range(10):
        chain.add(batch_of(5), 0)

    slices = [len(chain.outbox)]
    while chain.advance(SECOND, 10):
        slices.append(len(chain.outbox))

    assert slices == [0, 2, 4, 6, 8]
    assert len(chain.outbox) == 10


def test_a_gatekeeper_is_asked_before_anything_is_taken() -> None:
    gate = Gate(0)
    gate.shut = True
    chain = ProcessorChain([Delay(SECOND), gate], Ledger())

    with pytest.raises(Refused, match="the gate is shut"):
        chain.admit(batch_of(), 0)

    assert chain.ledger.received == 0


def test_what_has_no_room_waits_in_order_and_blocks_the_pipeline() -> None:
    narrow = Delay(2 * SECOND, room=2)
    chain = ProcessorChain([narrow], Ledger())
    batches = [batch_of(2), batch_of(2)]
    chain.add(batches[0], 0)
    chain.add(batches[1], 0)
    assert chain.blocked

    advance(chain, 2 * SECOND)

    assert not chain.blocked
    advance(chain, 4 * SECOND)
    assert list(chain.outbox) == batches


def test_a_processor_that_breaks_the_law_of_deadlines_is_named() -> None:
    class Liar(Delay):
        def expire(self, now: int, limit: int) -> Sequence[Batch]:
            return []

    chain = ProcessorChain([Liar(SECOND)], Ledger())
    chain.add(batch_of(), 0)

    with pytest.raises(RuntimeError, match="Liar says it has work due"):
        chain.advance(SECOND, 10)


@given(
    waits=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    steps=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 6)), max_size=20),
    limit=st.integers(1, 10),
    room=st.integers(6, 12),
)
def test_every_span_comes_out_once_and_is_accounted_for_at_every_moment(
    waits: list[int], steps: list[tuple[int, int]], limit: int, room: int
) -> None:
    chain = ProcessorChain([Delay(wait * SECOND, room) for wait in waits], Ledger())
    now, came = 0, []
    for gap, spans in steps:
        now += gap * SECOND
        advance(chain, now, limit)
        while chain.blocked:
            now = max(now, chain.deadline() or 0)
            advance(chain, now, limit)
        batch = batch_of(spans)
        came.append(batch.groups[0].trace_id)
        chain.add(batch, now)
        assert chain.ledger.received == chain.held()

    chain.drain(now)

    assert sorted(batch.groups[0].trace_id for batch in chain.outbox) == sorted(came)
    assert chain.ledger.received == chain.held() == sum(batch.span_count for batch in chain.outbox)
