"""What is told of a simulation of consumers and partitions."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from tests.reliability.simulation.partitions.fleet import simulated
from tests.reliability.simulation.partitions.fleet_setup import FleetSetup
from tests.reliability.simulation.partitions.judging import repeats, wrong_with
from tests.reliability.simulation.quiet import without_logs


class Told(NamedTuple):
    """What is told of a simulation."""

    seed: int
    wrong: Sequence[str]
    happened: Counter[str]


def told(setup: FleetSetup) -> Told:
    """Run one, and say what is to be said of it."""
    with without_logs():
        outcome = simulated(setup)
    counts = outcome.happened + Counter(
        {
            "seeds": 1,
            "partitions": len(outcome.logs),
            "records": sum(len(log.records) for log in outcome.logs),
            "marks": sum(len(log.marks) for log in outcome.logs),
            "deliveries": sum(len(log.deliveries) for log in outcome.logs),
            "repeated": repeats(outcome),
            "owners": sum(log.epoch for log in outcome.logs),
        }
    )
    return Told(setup.seed, wrong_with(setup, outcome), counts)
