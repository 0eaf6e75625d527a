"""The spans that each processor of a replay was given, let out, dropped, and neither let out nor counted."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import Any, Literal, cast

from podtrail.component import ComponentError, Context, Ledger, Processor, Taken
from podtrail.component.failures import told
from podtrail.otlp import Batch
from podtrail.pipeline.chain import PROCESSOR_ERROR
from podtrail.pipeline.containment import ContainedProcessor, contained

Failures = Literal["contain", "name", "raise"]
"""When a processor raises: its batch is lost, as in a live pipeline; ComponentError names it; or it ends the replay."""
SAMPLED_OUT = "sampled_out"
REJECTED = "rejected"


@dataclass(slots=True)
class ProcessorFlow:
    """The spans of one processor in one pipeline."""

    pipeline: str
    processor: str
    held: Callable[[], int]
    """Returns the number of spans inside."""
    received: int = 0
    left: int = 0
    created: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """By reason, `sampled_out` and `rejected` among them."""

    def unaccounted(self) -> int:
        """Return how many spans are gone and not in the ledger; below 0, how many were made and are not in it."""
        return self.received + self.created - self.left - self.dropped.total() - self.held()


class Flows:
    """Counts the spans of the processors of a `Replayer`, whose parameter `around` is the method of this name."""

    def __init__(self, failures: Failures) -> None:
        self.flows: list[ProcessorFlow] = []
        self._failures = failures

    def around(self, processor: Processor, context: Context) -> Processor:
        """Return what takes the processor's place in its chain."""
        inner = contained(processor, context) if self._failures == "contain" else processor
        flow = ProcessorFlow(context.pipeline, context.id, inner.held)
        self.flows.append(flow)
        counted = _CountedProcessor(inner, context.ledger, flow)
        return cast("Processor", _NamedFailures(counted, context.id)) if self._failures == "name" else counted

    @property
    def failed(self) -> int:
        """Spans that were lost because a processor raised."""
        return sum(flow.dropped[PROCESSOR_ERROR] for flow in self.flows)

    def faults(self) -> list[str]:
        """Return a line for each processor whose spans don't add up."""
        return [line for flow in self.flows if (line := _fault(flow))]


def place_of(error: BaseException) -> str:
    """Return the file and line that raised an exception, in brackets behind a space; "" when unknown."""
    frames = extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _fault(flow: ProcessorFlow) -> str:
    unaccounted = flow.unaccounted()
    amount = abs(unaccounted)
    if not amount:
        return ""
    where = f"processors::{flow.processor} (pipeline {flow.pipeline})"
    spans = f"{amount:,} {'span' if amount == 1 else 'spans'}"
    if unaccounted > 0:
        return f"{where} lost {spans} without counting them: add them to context.ledger.sampled_out, or call its drop()"
    return f"{where} let out {spans} that it was not given: add them to context.ledger.created"


class _NamedFailures:
    """Passes every call on. What it raises becomes a ComponentError that names the processor."""

    def __init__(self, inner: Processor, id: str) -> None:
        self._inner = inner
        self._id = id

    def __getattr__(self, name: str) -> Any:
        """Return a method of the processor that names its failures."""
        method = getattr(self._inner, name)

        def call(*given: Any) -> Any:
            try:
                return method(*given)
            except Exception as error:
                raise ComponentError(
                    f"processors::{self._id} failed in {name}: {told(error)}{place_of(error)}"
                ) from error

        return call


class _CountedProcessor:
    """Passes every call on, and books the difference that it makes to the pipeline's ledger on its processor."""

    passes_on = False

    def __init__(self, inner: Processor, ledger: Ledger, flow: ProcessorFlow) -> None:
        self._inner = inner
        self._ledger = ledger
        self._flow = flow
        self._before = (0, 0, 0)
        self._dropped: dict[str, int] = {}

    def add(self, batch: Batch, now: int) -> Taken:
        """Pass a batch on."""
        self._begin()
        taken = self._inner.add(batch, now)
        self._flow.received += batch.span_count - (0 if taken.rest is None else taken.rest.span_count)
        self._end(taken.out)
        return taken

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        """Have it expire.

        Raises:
            ComponentError: it fails at that again and again; virtual time would pass for ever.
        """
        self._begin()
        out = self._inner.expire(now, limit)
        self._end(out)
        if isinstance(self._inner, ContainedProcessor) and self._inner.stuck:
            raise ComponentError(f"processors::{self._flow.processor} fails whenever its deadline has come")
        return out

    def drain(self, now: int) -> Sequence[Batch]:
        """Drain it."""
        self._begin()
        out = self._inner.drain(now)
        self._end(out)
        return out

    def take_over(self, predecessor: "_CountedProcessor", now: int) -> None:
        """Take over: a replay does not reload."""
        raise NotImplementedError

    def deadline(self) -> int | None:
        """Return when it has work to do."""
        return self._inner.deadline()

    def held(self) -> int:
        """Return the spans inside."""
        return self._inner.held()

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span inside."""
        return self._inner.held_since()

    def _begin(self) -> None:
        ledger = self._ledger
        self._before = ledger.sampled_out, ledger.rejected, ledger.created
        self._dropped = dict(ledger.dropped) if ledger.dropped else {}

    def _end(self, out: Sequence[Batch]) -> None:
        flow, ledger = self._flow, self._ledger
        for batch in out:
            flow.left += batch.span_count
        sampled_out, rejected, created = self._before
        flow.created += ledger.created - created
        if ledger.sampled_out != sampled_out:
            flow.dropped[SAMPLED_OUT] += ledger.sampled_out - sampled_out
        if ledger.rejected != rejected:
            flow.dropped[REJECTED] += ledger.rejected - rejected
        for reason, spans in ledger.dropped.items():
            if lost := spans - self._dropped.get(reason, 0):
                flow.dropped[reason] += lost
