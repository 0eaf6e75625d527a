"""Processors that fail, in every method and by half: what they cost is in the ledger, and the pipeline goes on."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.component import Context, Ledger, Lost, Metrics, Processor, Refused, Taken
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.containment import contained

SECOND = 1_000_000_000
_IDS = count(1)


def batch_of(spans: int = 1, now: int = 1) -> Batch:
    trace_id = next(_IDS).to_bytes(16, "big")
    raw = [
        encode_span(trace_id=trace_id, span_id=n.to_bytes(8, "big"), name="work", start=1, end=2)
        for n in range(1, spans + 1)
    ]
    group = Group(resource_header({"service.name": "test"}), scope_header("test"), trace_id, frame(raw), spans)
    return Batch([group], arrived=now)


class Poisoned(Exception):
    pass


@dataclass
class Moody:
    """Holds every batch a second; fails in the methods named, before (`early`), amid or after what it had to do."""

    ledger: Ledger
    fails: set[str] = field(default_factory=set)
    when: str = "early"
    inside: list[Batch] = field(default_factory=list)
    asked: int = 0

    @contextmanager
    def _failing(self, method: str) -> Iterator[None]:
        if method in self.fails and self.when == "early":
            raise Poisoned(method)
        yield
        if method in self.fails:
            raise Poisoned(method)

    def admit(self, batch: Batch, now: int) -> None:
        with self._failing("admit"):
            pass

    def add(self, batch: Batch, now: int) -> Taken:
        with self._failing("add"):
            if self.when == "booked" and "add" in self.fails:
                self.ledger.sampled_out += batch.span_count
            if self.when == "made" and "add" in self.fails:
                self.inside.append(batch)
                self.ledger.created += 3
            self.inside.append(batch)
        return Taken()

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        self.asked += 1
        with self._failing("expire"):
            out = [batch for batch in self.inside if batch.arrived + SECOND <= now]
            if out:
                self.inside.remove(out[0])
        return out[:1]

    def deadline(self) -> int | None:
        with self._failing("deadline"):
            return min((batch.arrived + SECOND for batch in self.inside), default=None)

    def held(self) -> int:
        return sum(batch.span_count for batch in self.inside)

    def held_since(self) -> int | None:
        return min((batch.arrived for batch in self.inside), default=None)

    def take_over(self, predecessor: "Moody", now: int) -> None:
        with self._failing("take_over"):
            self.inside += predecessor.inside[::2]
            if self.when == "amid":
                predecessor.inside.clear()
            else:
                del predecessor.inside[::2]

    def drain(self, now: int) -> Sequence[Batch]:
        with self._failing("drain"):
            out, self.inside = self.inside[:1], self.inside[1:]
            if "drain" not in self.fails:
                out, self.inside = out + self.inside, []
        return out


@dataclass
class Setting:
    """Moody processors in a chain, with their ledger."""

    moody: list[Moody]
    chain: ProcessorChain
    metrics: Metrics
    left: int = 0

    @property
    def ledger(self) -> Ledger:
        return self.chain.ledger

    def advance(self, now: int) -> None:
        for _ in range(1000):
            if not self.chain.advance(now, 10_000):
                break
        else:
            raise AssertionError("it spins")
        self.left += sum(batch.span_count for batch in self.chain.outbox)
        self.chain.outbox.clear()

    def balances(self) -> bool:
        ledger = self.ledger
        booked = ledger.sampled_out + ledger.rejected + sum(ledger.dropped.values())
        return ledger.received + ledger.created == booked + self.chain.held() + self.left


Make = Callable[..., Setting]


@pytest.fixture
def make() -> Make:
    """Return a function that puts so many moody processors in a chain."""
    return made


def made(several: int = 1, ledger: Ledger | None = None) -> Setting:
    ledger, metrics = ledger or Ledger(), Metrics()
    context = Context(id="moody", pipeline="traces", ledger=ledger, metrics=metrics)
    moody = [Moody(ledger) for _ in range(several)]
    processors: list[Processor] = [contained(one, context) for one in moody]
    return Setting(moody, ProcessorChain(processors, ledger), metrics)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_a_batch_that_a_processor_fails_on_is_dropped_counted_and_told_of_with_its_trace(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    setting = make()
    setting.moody[0].fails = {"add"}
    batch = batch_of(3)

    assert setting.chain.add(batch, 1) == 3

    assert setting.ledger.dropped == {"processor_error": 3}
    assert setting.balances()
    (line,) = lines(caplog)
    assert line == (
        "failed in add: Poisoned: add; 3 spans dropped (processor_error) of a batch of 3, "
        f"traces {batch.groups[0].trace_id.hex()}"
    )
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[0] is Poisoned
    setting.moody[0].fails = set()
    assert setting.chain.add(batch_of(2), 1) == 0
    assert setting.chain.held() == 2


def test_an_exception_that_can_not_be_told_is_contained_as_well(caplog: pytest.LogCaptureFixture) -> None:
    class Unspeakable(Moody):
        def add(self, batch: Batch, now: int) -> Taken:
            class NamelessError(Exception):
                def __str__(self) -> str:
                    raise AttributeError("no words")

            raise NamelessError

    ledger = Ledger()
    chain = ProcessorChain([contained(Unspeakable(ledger), Context(id="moody", ledger=ledger))], ledger)
    assert chain.add(batch_of(3), 1) == 3
    assert ledger.dropped == {"processor_error": 3}
    assert lines(caplog)[0].startswith("failed in add: NamelessError: <exception str() failed>; 3 spans dropped")


def test_the_same_failure_is_told_of_once_a_minute_and_counted_each_time(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    setting = make()
    setting.moody[0].fails = {"add"}
    for _ in range(500):
        setting.chain.add(batch_of(), 1)

    assert len(lines(caplog)) == 1
    assert setting.metrics.snapshot()["podtrail_component_failures_total"] == {"component=moody,pipeline=traces": 500}
    assert setting.ledger.dropped == {"processor_error": 500}


def test_who_fails_at_every_expiry_is_asked_ever_more_rarely_and_keeps_what_it_holds(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    setting = make()
    setting.moody[0].fails = {"expire"}
    setting.chain.add(batch_of(2), 1)
    for now in range(0, 600 * SECOND, SECOND // 2):
        setting.advance(now)

    assert setting.moody[0].asked == 6 + (600 - 64) // 60 + 1
    assert setting.chain.held() == 2
    assert len(lines(caplog)) == 1
    setting.moody[0].fails = set()
    setting.advance(700 * SECOND)
    assert setting.left == 2
    assert setting.balances()


def test_a_failing_expiry_that_gets_further_each_time_is_not_held_up(make: Make) -> None:
    setting = make()
    setting.moody[0].fails, setting.moody[0].when = {"expire"}, "late"
    for _ in range(10):
        setting.chain.add(batch_of(), 1)

    setting.advance(2 * SECOND)

    assert setting.ledger.dropped == {"processor_error": 10}
    assert setting.balances()


def test_nothing_is_inside_after_a_drain_that_fails(make: Make) -> None:
    for when, lost in (("early", 5), ("late", 5)):
        setting = make()
        for _ in range(5):
            setting.chain.add(batch_of(), 1)
        setting.moody[0].fails, setting.moody[0].when = {"drain"}, when

        setting.chain.drain(2)

        assert setting.ledger.dropped == {"processor_error": lost}
        assert setting.chain.held() == 0
        assert setting.balances()


def test_a_request_that_a_gatekeeper_fails_on_is_lost_and_a_refusal_is_none(make: Make) -> None:
    setting = make()
    setting.moody[0].fails = {"admit"}

    with pytest.raises(Lost, match="2 spans are lost"):
        setting.chain.admit(batch_of(2), 1)

    assert setting.ledger.received == setting.ledger.dropped["processor_error"] == 2

    class Shut(Moody):
        def admit(self, batch: Batch, now: int) -> None:
            raise Refused("shut")

    chain = ProcessorChain([contained(Shut(Ledger()), Context(id="shut"))], Ledger())
    with pytest.raises(Refused, match="shut"):
        chain.admit(batch_of(), 1)


def test_what_a_failing_take_over_has_not_lost_stays_with_the_predecessor() -> None:
    for when, dropped in (("late", 0), ("amid", 2)):
        ledger = Ledger()
        old, new = made(ledger=ledger), made(ledger=ledger)
        for _ in range(5):
            old.chain.add(batch_of(), 1)
        new.moody[0].fails, new.moody[0].when = {"take_over"}, when

        new.chain.take_over(old.chain, [(0, 0)], 1)

        assert new.chain.held() == 3
        assert old.chain.held() == 2 - dropped
        assert ledger.dropped["processor_error"] == dropped


def test_answers_that_break_the_contract_are_failures(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    class Careless(Moody):
        def add(self, batch: Batch, now: int) -> Taken:
            return [batch]  # type: ignore[return-value]

        def expire(self, now: int, limit: int) -> Sequence[Batch]:
            return None  # type: ignore[return-value]

    class Narrow(Moody):
        def add(self, batch: Batch, now: int) -> Taken:
            return Taken(rest=batch)

    class Idle(Moody):
        def expire(self, now: int, limit: int) -> Sequence[Batch]:
            return []

    for kind, dropped in ((Careless, 1), (Narrow, 1), (Idle, 0)):
        ledger = Ledger()
        chain = ProcessorChain([contained(kind(ledger), Context(id="moody", ledger=ledger))], ledger)
        chain.add(batch_of(), 1)
        assert not chain.advance(2 * SECOND, 10)
        assert ledger.dropped["processor_error"] == dropped
        assert ledger.received == dropped + chain.held()
    assert [line.partition(";")[0] for line in lines(caplog)] == [
        "failed in add: TypeError: add returned a list, which is not Taken",
        "failed in add: RuntimeError: add had no room, and there is no deadline after which there will be",
        f"failed in expire: RuntimeError: it has work due at {SECOND + 1} and does none",
    ]


def test_what_is_no_batch_and_no_number_gets_no_further_than_who_said_it(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    class LetsGoOfNothing(Moody):
        def add(self, batch: Batch, now: int) -> Taken:
            return Taken([batch, None])  # type: ignore[list-item]

    class KeepsNothing(Moody):
        def add(self, batch: Batch, now: int) -> Taken:
            return Taken(rest="later")  # type: ignore[arg-type]

    class FailsLater(Moody):
        def add(self, batch: Batch, now: int) -> Taken:
            return Taken(1 / 0 for _ in [batch])  # type: ignore[arg-type]

    class ExpiresToNothing(Moody):
        def expire(self, now: int, limit: int) -> Sequence[Batch]:
            self.inside.clear()
            return [None]  # type: ignore[list-item]

    class Uncounted(Moody):
        def held(self) -> int:
            return None  # type: ignore[return-value]

        def deadline(self) -> int | None:
            return "soon"  # type: ignore[return-value]

        def add(self, batch: Batch, now: int) -> Taken:
            return Taken([batch])

    for kind, passed in (
        (LetsGoOfNothing, 0),
        (KeepsNothing, 0),
        (FailsLater, 0),
        (ExpiresToNothing, 0),
        (Uncounted, 1),
    ):
        ledger = Ledger()
        context = Context(id="moody", ledger=ledger)
        chain = ProcessorChain([contained(one, context) for one in (kind(ledger), Moody(ledger))], ledger)
        chain.add(batch_of(), 1)
        chain.advance(2 * SECOND, 10)
        assert chain.held() == passed
        assert ledger.dropped["processor_error"] == 1 - passed
        chain.drain(2 * SECOND)
        assert sum(batch.span_count for batch in chain.outbox) == passed
    assert {line.partition(";")[0] for line in lines(caplog)} == {
        "failed in add: TypeError: it let go of a NoneType, which is no Batch",
        "failed in add: TypeError: it let go of a str, which is no Batch",
        "failed in add: ZeroDivisionError: division by zero",
        "failed in expire: TypeError: it let go of a NoneType, which is no Batch",
        "failed in held: TypeError: 'NoneType' object cannot be interpreted as an integer",
        "failed in deadline: TypeError: 'str' object cannot be interpreted as an integer",
    }


METHODS = st.sets(st.sampled_from(["admit", "add", "expire", "drain", "deadline"]))
WHEN = st.sampled_from(["early", "late", "booked", "made"])


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 4), st.integers(1, 6), st.integers(0, 2), METHODS, WHEN), min_size=1, max_size=20
    )
)
def test_the_books_balance_whatever_fails_and_whatever_half_of_it_was_done(
    steps: list[tuple[int, int, int, set[str], str]],
) -> None:
    setting = made(3)
    now = 0
    for gap, spans, at, fails, when in steps:
        now += gap * SECOND
        setting.moody[at].fails, setting.moody[at].when = fails, when
        setting.advance(now)
        assert setting.balances()
        batch = batch_of(spans, now)
        try:
            setting.chain.admit(batch, now)
        except Lost:
            assert setting.balances()
            continue
        setting.chain.add(batch, now)
        assert setting.balances()
    setting.chain.drain(now)
    setting.advance(now)
    assert setting.balances()
    assert setting.chain.held() == 0
