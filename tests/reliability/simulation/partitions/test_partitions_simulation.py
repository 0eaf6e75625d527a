"""A set of the seeds of consumers and partitions; that they go the same way again, and can fail."""

import pytest

from tests.reliability.simulation.hash_seeds import words_by_hash_seed
from tests.reliability.simulation.partitions.fleet import simulated
from tests.reliability.simulation.partitions.fleet_setup import FleetSetup, drawn
from tests.reliability.simulation.partitions.judging import wrong_with
from tests.reliability.simulation.partitions.planted_faults import first_found
from tests.reliability.simulation.partitions.telling import told
from tests.sizes import large

_DIGEST = """
from tests.reliability.simulation.partitions.fleet import simulated
from tests.reliability.simulation.partitions.fleet_setup import drawn
print(simulated(drawn(0)).digest, simulated(drawn(1)).digest)
"""


@pytest.mark.parametrize("seed", range(large(8, 100)))
def test_whoever_has_a_partition_no_decision_changes(seed: int) -> None:
    assert not told(drawn(seed)).wrong, f"see ./dev simulate --partitions --seed {seed}"


def test_a_fleet_on_many_partitions_decides_as_one_consumer() -> None:
    setup = FleetSetup(7, consumers=10, partitions=40, records=12, events=6, poll=2.0)
    outcome = simulated(setup)
    assert outcome.happened["partitions moved"] > 40
    assert not wrong_with(setup, outcome)


def test_a_seed_goes_the_same_way_whatever_strings_hash_to() -> None:
    runs = words_by_hash_seed(_DIGEST)
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 2


@pytest.mark.parametrize(
    ("fault", "seed"),
    [
        ("delivers again what it repeats", 0),
        ("goes on one record later", 1),
        ("drops without telling the ledger", 1),
        ("lets the clock in while it lags", 0),
        ("goes on at an earlier time", 2),
        ("compares steps wrong", 2),
        ("overwrites the checkpoint that is committed", 8),
        ("says delivered what is under way", 18),
        ("needs one record less", 13),
    ],
)
def test_a_fault_that_is_planted_in_partitions_is_found(fault: str, seed: int) -> None:
    assert first_found(fault, range(seed, seed + 1))
