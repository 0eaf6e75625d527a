"""A simulation with a tracer provider of its own, and its spans as OTLP requests: what a host runs in its process."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Sampler
from podtrail_instrumentation import Log, provider_around
from podtrail_instrumentation.encoding import encode as encode_part

from podtrail_scheduler.plugins.selection import Selection
from podtrail_scheduler.workload import Workload

from .identifiers import SeededIdGenerator
from .simulation import DEFAULT_START, Simulation
from .summary import Summary

SPANS_A_REQUEST = 512
SPANS_A_DELIVERY = 64
"""From how many spans on a delivery is due: about three attempts, so that the host's event loop is soon back."""


class CollectingSpanProcessor(SpanProcessor):
    """Keeps finished spans until they are fetched with `drain`: no thread, no queue that could overflow."""

    def __init__(self) -> None:
        self._finished: list[ReadableSpan] = []
        self.open = 0
        """How many recorded spans have begun and not ended."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        """Counts the span as open."""
        self.open += 1

    def on_end(self, span: ReadableSpan) -> None:
        """Keeps the span."""
        self.open -= 1
        self._finished.append(span)

    @property
    def waiting(self) -> int:
        """How many finished spans wait to be fetched."""
        return len(self._finished)

    def drain(self, until: int) -> list[ReadableSpan]:
        """Hands over the spans that ended by `until` (unix nanoseconds), in the order in which they ended."""
        over = [span for span in self._finished if (span.end_time or 0) <= until]
        if len(over) == len(self._finished):
            self._finished = []
        else:
            self._finished = [span for span in self._finished if (span.end_time or 0) > until]
        return sorted(over, key=_end)


def _end(span: ReadableSpan) -> int:
    assert span.end_time is not None
    return span.end_time


def encode(spans: Sequence[ReadableSpan]) -> list[bytes]:
    """The spans as serialized `ExportTraceServiceRequest` messages of at most 512 spans."""
    parts = (spans[start : start + SPANS_A_REQUEST] for start in range(0, len(spans), SPANS_A_REQUEST))
    return [encode_part(part) for part in parts]


class Delivery(NamedTuple):
    """What is to be passed on at a moment of virtual time."""

    now: int
    """Unix nanoseconds, never before the end of a span in `requests`."""
    requests: list[bytes]
    """Serialized `ExportTraceServiceRequest` messages."""
    spans: int


class TracedSimulation:
    """A simulation whose spans are fetched as OTLP requests; the same workload and start give the same bytes."""

    def __init__(
        self,
        workload: Workload,
        *,
        start: int = DEFAULT_START,
        sampler: Sampler | None = None,
        log: Log | None = None,
        selection: Selection | None = None,
        stopwatch: Callable[[], int] | None = None,
    ) -> None:
        """`start` is unix nanoseconds, `sampler` decides on the scheduler's roots (default: all).

        The others are `Simulation`'s.
        """
        self._collector = CollectingSpanProcessor()
        creator = None
        if workload.api_server.spans:
            creator = self._provider("apiserver", workload.seed, None)
        scheduler = self._provider("kube-scheduler", workload.seed, sampler)
        logging = {} if log is None else {"log": log}
        self._simulation = Simulation(
            workload,
            scheduler,
            creator_provider=creator,
            start=start,
            selection=selection,
            stopwatch=stopwatch,
            **logging,
        )

    def run(self) -> Iterator[Delivery]:
        """Yields every simulated second, sooner when many spans have ended, and at the end with all that is left.

        A host that awaits each delivery before asking for the next loses nothing and holds little; one that wants
        the simulation to last waits until its own clock has come to `now`.
        """
        for moment in self._simulation.run():
            if moment.attempt is None or self._collector.waiting >= SPANS_A_DELIVERY:
                spans = self._collector.drain(moment.now)
                yield Delivery(moment.now, encode(spans), len(spans))

    @property
    def open_spans(self) -> int:
        """How many spans have begun and not ended; none when the run is over."""
        return self._collector.open

    def summary(self) -> Summary:
        """What became of the workload, by the scheduler's own count."""
        return self._simulation.summary()

    def of_others(self) -> int:
        """How many Pods without a node ask for a scheduler that isn't there."""
        return self._simulation.of_others()

    def _provider(self, service: str, seed: int, sampler: Sampler | None) -> TracerProvider:
        resource = Resource({"service.name": service, "service.instance.id": f"{service}-simulated"})
        ids = SeededIdGenerator(f"{seed}/{service}")
        return provider_around(self._collector, resource, sampler=sampler, id_generator=ids)
