"""A simulation with a tracer provider of its own, and its spans as OTLP requests: what a host runs in its process."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Sampler
from podtrail_instrumentation import Log, provider_around

from podtrail_scheduler.plugins.selection import Selection
from podtrail_scheduler.workload import Workload

from .collecting import CollectingSpanProcessor, encode
from .identifiers import SeededIdGenerator
from .simulation import DEFAULT_START, Simulation
from .summary import Summary

SPANS_A_DELIVERY = 64
"""From how many spans on a delivery is due: about three attempts, so that the host's event loop is soon back."""


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

    def _provider(self, service: str, seed: int, sampler: Sampler | None) -> TracerProvider:
        resource = Resource({"service.name": service, "service.instance.id": f"{service}-simulated"})
        ids = SeededIdGenerator(f"{seed}/{service}")
        return provider_around(self._collector, resource, sampler=sampler, id_generator=ids)
