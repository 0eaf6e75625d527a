from collections.abc import Callable, Iterator, Mapping

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from podtrail_instrumentation import provider_around
from podtrail_scheduler import AttemptRecord, Simulation, Workload
from podtrail_scheduler.cluster.simulated.identifiers import SeededIdGenerator
from podtrail_scheduler.cluster.simulated.traced_simulation import CollectingSpanProcessor

from tests.scheduler.bench import Bench

Outcome = tuple[Simulation, list[AttemptRecord], list[ReadableSpan]]


@pytest.fixture
def simulate() -> Callable[[Mapping[str, object]], Outcome]:
    """Runs a workload (faults and Pods only as given) with everything sampled, and sees no span left open."""

    def run(workload: Mapping[str, object]) -> Outcome:
        collector = CollectingSpanProcessor()
        provider = provider_around(collector, Resource({}), id_generator=SeededIdGenerator("test"))
        simulation = Simulation(Workload.model_validate({"faults": {}, **workload}), provider)
        records = [moment.attempt for moment in simulation.run() if moment.attempt is not None]
        assert collector.open == 0
        return simulation, records, collector.drain(2**63)

    return run


@pytest.fixture(autouse=True)
def _benches_are_closed() -> Iterator[None]:
    yield
    Bench.close_all()
