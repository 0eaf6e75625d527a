"""Gateways that are killed under load decide each trace once, as one alone does; more: `./dev crashes --kafka`."""

from pathlib import Path

import pytest

from tests.kafka.cluster import Kafka
from tests.kafka.kills import Plan, run

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("exactly_once", [False, True])
def test_gateways_that_are_killed_join_and_leave_decide_as_one_alone(
    kafka: Kafka, tmp_path: Path, exactly_once: bool
) -> None:
    plan = Plan(kills=3, seed=3, exactly_once=exactly_once, rate=60)

    verdict = run(kafka, plan, tmp_path)

    assert verdict.is_right(exactly_once=plan.exactly_once), str(verdict)


def test_gateways_that_are_killed_and_come_back_by_their_names_decide_as_one_alone(
    kafka: Kafka, tmp_path: Path
) -> None:
    plan = Plan(kills=3, seed=6, exactly_once=True, rate=60, named=True)

    verdict = run(kafka, plan, tmp_path)

    assert verdict.is_right(exactly_once=plan.exactly_once), str(verdict)


def test_with_one_of_three_brokers_killed_each_kept_span_is_there_once(kafka_of_three: Kafka, tmp_path: Path) -> None:
    plan = Plan(kills=2, seed=4, exactly_once=True, rate=60, kill_broker=True)

    verdict = run(kafka_of_three, plan, tmp_path)

    assert verdict.is_right(exactly_once=plan.exactly_once), str(verdict)


def test_a_transaction_that_a_broker_does_not_answer_is_done_again(kafka: Kafka, tmp_path: Path) -> None:
    plan = Plan(kills=2, seed=5, exactly_once=True, rate=60, stall=15.0)

    verdict = run(kafka, plan, tmp_path)

    assert verdict.is_right(exactly_once=plan.exactly_once), str(verdict)
