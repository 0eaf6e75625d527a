"""Gateways that are killed under load decide each trace once, as one alone does; more: `./dev crashes --kafka`."""

from pathlib import Path

import pytest

from tests.kafka.cluster import Kafka
from tests.kafka.kills import Plan, run
from tests.sizes import large

pytestmark = pytest.mark.kafka

SHORT = Plan(kills=2, seed=3, exactly_once=False, rate=60, pause=2.0, goes_on=3.0)
STALL = 15.0
"""Seconds without an answer of the broker: longer than a transaction may last, so that it is done again."""
PLANS = {
    "join-and-leave": SHORT,
    "transactions-names-stall": SHORT._replace(seed=5, exactly_once=True, named=True, stall=STALL),
}
MORE = {
    "transactions": Plan(kills=3, seed=3, exactly_once=True, rate=60),
    "transactions-names": Plan(kills=3, seed=6, exactly_once=True, rate=60, named=True),
    "transactions-stall": Plan(kills=2, seed=5, exactly_once=True, rate=60, stall=STALL),
}


@pytest.mark.parametrize("name", [*PLANS, *list(MORE)[: large(0, len(MORE))]])
def test_gateways_that_are_killed_decide_as_one_alone(kafka: Kafka, tmp_path: Path, name: str) -> None:
    plan = (PLANS | MORE)[name]

    verdict = run(kafka, plan, tmp_path)

    assert verdict.is_right(exactly_once=plan.exactly_once), str(verdict)
