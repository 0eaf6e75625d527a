"""Contains exceptions of components: each costs the batch at hand, is booked and logged, and the pipeline goes on."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import index
from typing import Any, Final, NamedTuple, TypeVar

from podtrail.component import (
    AdmitsBatches,
    AdmitsRequests,
    BatchObserver,
    ComponentError,
    Context,
    Fact,
    FactListener,
    Lost,
    PassesOn,
    Processor,
    Refused,
    Taken,
)
from podtrail.component.failures import FailureReporter
from podtrail.otlp import Batch
from podtrail.pipeline.chain import PROCESSOR_ERROR
from podtrail.state import KeepsState, StateError, StateShape, known_version

_FIRST_PAUSE: Final = 1_000_000_000
_LONGEST_PAUSE: Final = 60_000_000_000
_TRACES_SHOWN: Final = 3

T = TypeVar("T")


def contained(processor: Processor, context: Context) -> Processor:
    """Return the processor with its failures contained."""
    around = ContainedKeeper if isinstance(processor, KeepsState) else ContainedProcessor
    return around(processor, context)


class ContainedProcessor:
    """Passes every call on to a processor.

    What a failure has cost is reckoned from what the processor held and had entered in the ledger before and after, so
    that the ledger is right whatever it did by half.
    """

    def __init__(self, inner: Processor, context: Context) -> None:
        self.inner = inner
        self._admits_batches = inner if isinstance(inner, AdmitsBatches) else None
        self._admits_requests = inner if isinstance(inner, AdmitsRequests) else None
        self._ledger = context.ledger
        self._failures = FailureReporter(context.id, context.metrics, context.log, context.pipeline)
        self._pause = 0
        self._resting_until = 0
        self._is_over = False

    def add(self, batch: Batch, now: int) -> Taken:
        """Pass a batch on. What a failure costs is dropped as `processor_error`; so is what comes after the end."""
        if self._is_over:
            self._ledger.drop(PROCESSOR_ERROR, batch.span_count)
            return Taken()

        before = self._accounted_for() + batch.span_count
        try:  # without a function around it: this is done for every batch
            taken = self.inner.add(batch, now)
            if not isinstance(taken, Taken):
                raise TypeError(f"add returned a {type(taken).__name__}, which is not Taken")
            out = _batches(taken.out)
            if taken.rest is not None:
                _batches((taken.rest,))
                if self.inner.deadline() is None:
                    raise RuntimeError("add had no room, and there is no deadline after which there will be")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            self._failures.report("add", error, self._enter(before) + _described(batch))
            return Taken()
        return Taken(out, taken.rest)

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        """Have it expire. One that fails and gets no further is asked again after 1 s, then 2 s, up to a minute."""
        before = self.held(), self.deadline()

        def let_go() -> Sequence[Batch]:
            out = _batches(self.inner.expire(now, limit))
            if not out and (self.held(), self.deadline()) == before and before[1] is not None and before[1] <= now:
                raise RuntimeError(f"it has work due at {before[1]} and does none")
            return out

        out = self._reckon("expire", let_go, None)
        if out is not None:
            self._pause = 0
        elif (self.held(), self.deadline()) == before:
            self._pause = min(2 * self._pause or _FIRST_PAUSE, _LONGEST_PAUSE)
            self._resting_until = now + self._pause
        return out or ()

    @property
    def stuck(self) -> bool:
        """Whether it has failed so often in a row, and got no further, that it pauses for the longest time."""
        return self._pause >= _LONGEST_PAUSE

    def drain(self, now: int) -> Sequence[Batch]:
        """Drain it. One that fails is asked again as long as less is inside each time; then the rest is dropped."""
        out: Sequence[Batch] | None = None
        while out is None and not self._is_over:
            before = self.held()
            out = self._reckon("drain", lambda: _batches(self.inner.drain(now)), None)
            if out is None and self.held() >= before:
                self._ledger.drop(PROCESSOR_ERROR, self.held())
                self._is_over = True
        return out or ()

    def take_over(self, predecessor: "ContainedProcessor", now: int) -> None:
        """Take over. What a failure leaves with the predecessor leaves when that is drained."""
        left = predecessor.held()

        def take() -> None:
            self.inner.take_over(predecessor.inner, now)

        self._reckon("take_over", take, None, lambda: left - predecessor.held())

    def admit(self, batch: Batch, now: int) -> None:
        """Ask whether it admits a batch.

        Raises:
            Refused: it does not.
            Lost: it failed on it; the batch is taken by nobody, and dropped as `processor_error`.
        """
        if self._admits_batches is None:
            return

        def cost() -> str:
            self._ledger.received += batch.span_count
            self._ledger.drop(PROCESSOR_ERROR, batch.span_count)
            return f"{batch.span_count} spans dropped ({PROCESSOR_ERROR}){_described(batch)}"

        ask = partial(self._admits_batches.admit, batch, now)
        self._pass_refusal("admit", ask, Lost(batch.span_count), cost)

    def ask(self, now: int) -> None:
        """Ask whether it admits anything; one that fails to say is asked again when the batch is there.

        Raises:
            Refused: it does not.
        """
        if self._admits_requests is not None:
            self._pass_refusal("ask", partial(self._admits_requests.ask, now), None)

    @property
    def passes_on(self) -> bool:
        """Whether it holds nothing; one that fails to say holds something."""

        def says() -> bool:
            return isinstance(self.inner, PassesOn) and self.inner.passes_on

        return self._failures.attempt("passes_on", says, False)

    def deadline(self) -> int | None:
        """Return when it has work to do, while it pauses when the pause is over: Unix nanoseconds."""
        if self._is_over:
            return None
        try:  # without a function around it: this is asked more often than anything is done
            due = _time(self.inner.deadline())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            self._failures.report("deadline", error)
            return None
        return due if due is None or due > self._resting_until else self._resting_until

    def held(self) -> int:
        """Return the spans inside; 0 when it fails to say."""
        if self._is_over:
            return 0
        try:  # as in `deadline`
            return index(self.inner.held())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
            self._failures.report("held", error)
            return 0

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span inside, Unix nanoseconds."""
        if self._is_over:
            return None
        return self._failures.attempt("held_since", lambda: _time(self.inner.held_since()), None)

    def _pass_refusal(
        self, method: str, ask: Callable[[], None], otherwise: ComponentError | None, cost: Callable[[], str] = str
    ) -> None:
        def answer() -> ComponentError | None:
            try:
                ask()
            except Refused as refused:
                return refused
            return None

        error = self._failures.attempt(method, answer, otherwise, cost)
        if error is not None:
            raise error

    def _reckon(self, method: str, call: Callable[[], T], otherwise: T, came: Callable[[], int] = int) -> T:
        """Return what the call does, `otherwise` when it fails; then drop what is neither inside nor in the ledger.

        `came`: how many spans the call was given, asked after it.
        """
        before = self._accounted_for()
        return self._failures.attempt(method, call, otherwise, lambda: self._enter(before + came()))

    def _accounted_for(self) -> int:
        ledger = self._ledger
        entered = ledger.sampled_out + ledger.rejected - ledger.created
        return entered + self.held() + (sum(ledger.dropped.values()) if ledger.dropped else 0)

    def _enter(self, before: int) -> str:
        """Drop what was accounted for and no longer is; what is so twice was made."""
        lost = before - self._accounted_for()
        self._ledger.drop(PROCESSOR_ERROR, max(0, lost))
        self._ledger.created += max(0, -lost)
        return f"{max(0, lost)} spans dropped ({PROCESSOR_ERROR})"


class ContainedKeeper(ContainedProcessor):
    """One whose processor keeps its state."""

    state_version = 1

    def save_state(self) -> Any:
        """Return the state of the processor, and whether it pauses.

        Raises:
            StateError: the processor failed to save it.
        """
        keeper: Any = self.inner
        try:
            state = keeper.state_version, keeper.save_state()
        except StateError:
            raise
        except Exception as error:
            self._failures.report("save_state", error)
            raise StateError(f"save_state failed: {type(error).__name__}: {error}") from error
        return _SavedContained(self._pause, self._resting_until, self._is_over, state)

    def restore_state(self, version: int, state: Any) -> None:
        """Take a saved state.

        Raises:
            StateError: it is damaged, or of an unknown version.
        """
        known_version(version, 1)
        saved = _SHAPE.read(state)
        keeper: Any = self.inner
        self._pause, self._resting_until, self._is_over = saved.pause, saved.resting_until, saved.is_over
        keeper.restore_state(*saved.state)


class _SavedContained(NamedTuple):
    pause: int
    resting_until: int
    is_over: bool
    state: tuple[int, Any]


_SHAPE: Final = StateShape[_SavedContained](_SavedContained)


class ContainedObserver:
    """Passes batches and facts on to who wants them; that it fails at one is reported, and no concern of a pipeline."""

    def __init__(self, component: Any, failures: FailureReporter) -> None:
        self._component = component
        self._failures = failures
        self.observes = isinstance(component, BatchObserver)
        self.listens = isinstance(component, FactListener)

    def observe(self, pipeline: str, batch: Batch) -> None:
        """Show a batch that leaves a pipeline."""
        self._failures.attempt("observe", lambda: self._component.observe(pipeline, batch), None)

    def note(self, fact: Fact) -> None:
        """Tell a fact."""
        self._failures.attempt("note", lambda: self._component.note(fact), None)


def _batches(out: Iterable[Batch]) -> Sequence[Batch]:
    """Return what a processor lets go of. What is no batch must not get to the next, whom it would fail for ever."""
    batches = list(out)
    for batch in batches:
        if not isinstance(batch, Batch):
            raise TypeError(f"it let go of a {type(batch).__name__}, which is no Batch")
    return batches


def _time(moment: int | None) -> int | None:
    return None if moment is None else index(moment)


def _described(batch: Batch) -> str:
    traces = list(dict.fromkeys(group.trace_id.hex() for group in batch.groups))
    more = f" and {len(traces) - _TRACES_SHOWN} more" if len(traces) > _TRACES_SHOWN else ""
    return f" of a batch of {batch.span_count}, traces {', '.join(traces[:_TRACES_SHOWN])}{more}"
