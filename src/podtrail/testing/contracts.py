"""What every processor promises, as checks that any processor can be put through: ours and third parties'.

Each check makes processors with `create` and drives them through `arrivals` in virtual time, as the pipeline does. A
promise that is not kept raises `ContractBroken`, which says which. Use them in a test:

    def test_keeps_the_contract() -> None:
        check_processor(lambda context: MyProcessor(Config(), context), arrivals)
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from podtrail.component import Context, Ledger, PassesOn, Processor, Taken
from podtrail.otlp import Batch, raw_span_reader
from podtrail.pipeline.chain import ProcessorChain
from podtrail.pipeline.checkpoint import Checkpointer, CheckpointError

Create = Callable[[Context], Any]
"""Makes a processor that counts in `context.ledger`; called more than once."""

_MANY = 1 << 62
_MOST_CALLS = 100_000

_read_ids = raw_span_reader(("trace_id", "span_id"))


class ContractBroken(AssertionError):
    """A processor does not do what `podtrail.component.Processor` promises."""


class Arrival(NamedTuple):
    """A batch and when it is handed over."""

    now: int
    """Unix nanoseconds, never before the arrival ahead of it."""
    batch: Batch


def check_processor(create: Create, arrivals: Sequence[Arrival]) -> None:
    """Put a processor through all checks."""
    check_deadline_law(create, arrivals)
    check_early_expire_changes_nothing(create, arrivals)
    check_nothing_lost_nothing_twice(create, arrivals)
    check_verdicts_pass_in_order(create, arrivals)
    check_drain_lets_go_of_everything(create, arrivals)
    check_take_over_keeps_what_is_held(create, arrivals)
    check_same_calls_same_answers(create, arrivals)
    check_checkpoints_keep_everything(create, arrivals)


def check_deadline_law(create: Create, arrivals: Sequence[Arrival]) -> None:
    """`deadline()` covers everything inside, and `expire(d)` called until it returns nothing moves it past `d`.

    What says that it passes everything on (`PassesOn`) holds nothing.

    Raises:
        ContractBroken: it does not hold.
    """
    for limit in (1, _MANY):
        run = _Run(create)
        for arrival in arrivals:
            run.advance(arrival.now, limit)
            run.add(arrival)
            if run.processor.held() and isinstance(run.processor, PassesOn) and run.processor.passes_on:
                raise ContractBroken(f"{run.processor.held()} spans are held by what says it passes everything on")
            if run.processor.held() and run.processor.deadline() is None:
                raise ContractBroken(f"{run.processor.held()} spans are held and there is no deadline")
        run.advance(_MANY, limit)
        if run.processor.held():
            raise ContractBroken(f"{run.processor.held()} spans are still held after the last deadline")


def check_early_expire_changes_nothing(create: Create, arrivals: Sequence[Arrival]) -> None:
    """An `expire` before the deadline returns nothing and changes nothing.

    Raises:
        ContractBroken: it does.
    """
    run = _Run(create)
    for arrival in arrivals:
        run.advance(arrival.now, _MANY)
        run.add(arrival)
        due, before = run.processor.deadline(), run.state()
        if due is None or due > arrival.now:
            out = run.processor.expire(arrival.now, _MANY)
            if out or run.state() != before:
                raise ContractBroken(f"expire at {arrival.now}, before the deadline {due}, changed something")


def check_nothing_lost_nothing_twice(create: Create, arrivals: Sequence[Arrival]) -> None:
    """At every step each span is inside, has left once, or is in the ledger as sampled out or dropped.

    Raises:
        ContractBroken: a span is none of these, or two of them.
    """
    for end in (_MANY, arrivals[-1].now if arrivals else 0):
        run = _Run(create)
        for arrival in arrivals:
            run.advance(arrival.now, _MANY)
            run.balance()
            run.add(arrival)
            run.balance()
        run.advance(end, _MANY)
        run.drain(end)
        run.balance()
        surplus = (run.spans_out - run.spans_in).total()
        if surplus != run.ledger.created:
            raise ContractBroken(f"{surplus} spans came out that did not go in, {run.ledger.created} are booked")


def check_verdicts_pass_in_order(create: Create, arrivals: Sequence[Arrival]) -> None:
    """A sampler's verdicts come out at the other end, all of them, once, in their order; a sampler adds its own.

    Raises:
        ContractBroken: some are missing, or in another order.
    """
    run = _Run(create)
    for arrival in arrivals:
        run.advance(arrival.now, _MANY)
        run.add(arrival)
    run.drain(arrivals[-1].now if arrivals else 0)
    came = [id(verdict) for arrival in arrivals for verdict in arrival.batch.verdicts]
    ours = set(came)
    left = [id(verdict) for batch in run.out for verdict in batch.verdicts if id(verdict) in ours]
    if came != left:
        raise ContractBroken(f"{len(came)} verdicts went in, {len(left)} came out or came in another order")


def check_drain_lets_go_of_everything(create: Create, arrivals: Sequence[Arrival]) -> None:
    """After `drain` nothing is held and nothing was lost; all that may be due is that something is forgotten.

    Raises:
        ContractBroken: something is.
    """
    run = _Run(create)
    for arrival in arrivals:
        run.advance(arrival.now, _MANY)
        run.add(arrival)
    run.drain(arrivals[-1].now if arrivals else 0)
    run.balance()
    left = len(run.out)
    held, since, due = run.state()
    if held or since is not None:
        raise ContractBroken(f"after drain: {held} spans held since {since}, due at {due}")
    run.advance(_MANY, _MANY)
    if run.processor.deadline() is not None or any(batch.span_count for batch in run.out[left:]):
        raise ContractBroken(f"after drain: spans or deadlines were left, due at {due}")


def check_take_over_keeps_what_is_held(create: Create, arrivals: Sequence[Arrival]) -> None:
    """A successor of the same configuration holds what its predecessor held, with its arrivals and its deadline."""
    for handover in range(len(arrivals) + 1):
        run = _Run(create)
        for position, arrival in enumerate(arrivals):
            if position == handover:
                run.hand_over(create, arrival.now)
            run.advance(arrival.now, _MANY)
            run.add(arrival)
        if handover == len(arrivals):
            run.hand_over(create, arrivals[-1].now if arrivals else 0)
        run.advance(_MANY, _MANY)
        run.drain(arrivals[-1].now if arrivals else 0)
        run.balance()


def check_same_calls_same_answers(create: Create, arrivals: Sequence[Arrival]) -> None:
    """The same calls give the same spans, in the same order.

    Raises:
        ContractBroken: they don't.
    """
    first, second = _Run(create), _Run(create)
    for run in (first, second):
        for arrival in arrivals:
            run.advance(arrival.now, _MANY)
            run.add(arrival)
        run.advance(_MANY, _MANY)
    if [batch.groups for batch in first.out] != [batch.groups for batch in second.out]:
        raise ContractBroken("the same calls gave different answers")


def check_checkpoints_keep_everything(create: Create, arrivals: Sequence[Arrival]) -> None:
    """Kept in a checkpoint and restored in another instance before every arrival, it goes on as if nothing had been.

    Raises:
        ContractBroken: it doesn't, or has something that can't be kept.
    """
    through, parted = _Run(create), _Run(create)
    try:
        keeper = Checkpointer(ProcessorChain([parted.processor], parted.ledger))
        for arrival in arrivals:
            before, state = parted.state(), keeper.take()
            parted.processor = create(Context(id="contract", pipeline="traces", ledger=parted.ledger))
            keeper = Checkpointer(ProcessorChain([parted.processor], parted.ledger))
            keeper.restore(b"".join(state.pieces()))
            if parted.state() != before:
                raise ContractBroken(f"restored: held, held_since and deadline were {before} and are {parted.state()}")
            for run in (through, parted):
                run.advance(arrival.now, _MANY)
                run.add(arrival)
    except CheckpointError as error:
        raise ContractBroken(f"a checkpoint: {error}") from error
    for run in (through, parted):
        run.advance(_MANY, _MANY)
    if [batch.groups for batch in through.out] != [batch.groups for batch in parted.out]:
        raise ContractBroken("restored from checkpoints it gave different answers")


class _Run:
    """A processor that is driven as the pipeline does, with a list of what went in and came out."""

    def __init__(self, create: Create) -> None:
        self.ledger = Ledger()
        self.processor: Processor = create(Context(id="contract", pipeline="traces", ledger=self.ledger))
        self.out: list[Batch] = []
        self.spans_in: Counter[bytes] = Counter()
        self.spans_out: Counter[bytes] = Counter()
        self._waiting: list[Batch] = []

    def state(self) -> tuple[int, int | None, int | None]:
        return self.processor.held(), self.processor.held_since(), self.processor.deadline()

    def _left(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            self.out.append(batch)
            self.spans_out.update(_spans_of(batch))

    def add(self, arrival: Arrival) -> None:
        self.spans_in.update(_spans_of(arrival.batch))
        self._waiting.append(arrival.batch)
        self._offer(arrival.now)

    def _offer(self, now: int) -> None:
        while self._waiting:
            offered = self._waiting.pop(0)
            taken = self.processor.add(offered, now)
            if not isinstance(taken, Taken):
                raise ContractBroken(f"add returned a {type(taken).__name__}, which is not Taken")
            self._left(taken.out)
            if taken.rest is not None:
                self._waiting.insert(0, taken.rest)
                if taken.rest.span_count >= offered.span_count:
                    return

    def advance(self, now: int, limit: int) -> None:
        """Do what is due by `now`, each thing at its own time."""
        while (due := self.processor.deadline()) is not None and due <= now:
            for _ in range(_MOST_CALLS):
                if not (out := self.processor.expire(due, limit)):
                    break
                self._left(out)
            else:
                raise ContractBroken(f"expire at {due} never comes to an end")
            after = self.processor.deadline()
            if after is not None and after <= due:
                raise ContractBroken(f"expire at {due} returned nothing and left the deadline at {after}")
            self._offer(due)

    def drain(self, now: int) -> None:
        self._left(self.processor.drain(now))
        while self._waiting:
            before = sum(batch.span_count for batch in self._waiting)
            self._offer(now)
            self._left(self.processor.drain(now))
            if self._waiting and sum(batch.span_count for batch in self._waiting) >= before:
                raise ContractBroken(f"after drain there is no room for {before} spans")

    def hand_over(self, create: Create, now: int) -> None:
        """Go on with a successor, as on reload."""
        before = self.state()
        successor = create(Context(id="contract", pipeline="traces", ledger=self.ledger))
        successor.take_over(self.processor, now)
        self.processor = successor
        if self.state() != before:
            raise ContractBroken(f"taken over: held, held_since and deadline were {before} and are {self.state()}")

    def balance(self) -> None:
        """Hold the list against the processor's own word."""
        came = self.spans_in.total() + self.ledger.created
        gone = self.spans_out.total() + self.ledger.sampled_out + self.ledger.dropped.total()
        inside = self.processor.held() + sum(batch.span_count for batch in self._waiting)
        if came != gone + inside:
            raise ContractBroken(f"{came} spans came or were made, {gone} left or are booked, {inside} are inside")


def _spans_of(batch: Batch) -> Iterable[bytes]:
    spans = [span.trace_id + span.span_id for group in batch.groups for span in _read_ids(group.spans)]
    if len(spans) != batch.span_count:
        raise ContractBroken(f"groups say they have {batch.span_count} spans and have {len(spans)}")
    return spans
