"""`podtrail capacity` as a user calls it."""

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main


def capacity(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["capacity", *arguments])


def as_json(*arguments: str) -> Any:
    done = capacity(*arguments, "-o", "json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_it_says_what_arrives_which_layouts_carry_it_and_what_the_least_of_them_takes() -> None:
    done = capacity("--pods-per-second=10", "--clusters=50")

    lines = done.stdout.splitlines()
    assert lines[0] == (
        "50 clusters, 10 Pods/s each: 17,500 spans/s, 2.8 MiB/s; 5 % of it kept; 525,000 spans held at a time"
    )
    assert lines[5].split() == ["LAYOUT", "CARRIES", "IT", "PROCESSES", "CORES", "MEMORY", "DISK"]
    assert [line.split()[0] for line in lines[6:10]] == ["sidecar", "gateway", "load_balancing", "kafka"]
    assert lines[10] == "advised: gateway, for what several schedulers send meets in it, and one process carries it"
    assert "gateway: agents forward to one gateway, which decides" in lines
    assert [line.split()[:2] for line in lines[14:16]] == [["agents", "150"], ["gateways", "1"]]


def test_it_says_what_it_took_for_granted() -> None:
    lines = capacity("--pods-per-second=10", "--other-spans=500", "--gateways=3", "--outage=2h").stdout.splitlines()
    assert lines[1] == (
        "assumed: 3 schedulers a cluster, attempts for each Pod: 1, of 35 spans of 168 B and 500 other spans/s a "
        "cluster; traces held for 30s; no linked_traces, with which those not kept rest for its grace_period "
        "(--grace-period)"
    )
    assert lines[2] == "planned: 3 gateways, 1 of them to spare; 2h of outage; Kafka keeps 24h, replication 3"
    assert lines[3].startswith("cores: 60% of each, as fast as on ")
    plan = as_json("--pods-per-second=10", "--other-spans=500")
    assert plan["assumptions"]["other_spans"] == 500
    assert plan["assumptions"]["machine"]


def test_what_linked_traces_let_rest_takes_memory_and_a_bound_that_is_told() -> None:
    arguments = ("--pods-per-second=30", "--schedulers=1", "--decision-wait=5m")
    with_rest = capacity(*arguments, "--grace-period=5m").stdout
    assert "traces held for 5m; those not kept rest for 5m (linked_traces)" in with_rest
    assert "linked_traces: grace_max_bytes of 65.9 MiB each, by default 64 MiB; " in with_rest
    without, plan = as_json(*arguments, "--grace-period=0s"), as_json(*arguments, "--grace-period=5m")
    assert plan["layouts"]["sidecar"]["restingBytesEach"] == pytest.approx(1050 * 0.95 * 300 * (168 + 2200 / 35))
    assert without["layouts"]["sidecar"]["restingBytesEach"] == 0
    assert plan["layouts"]["sidecar"]["memoryBytes"] > without["layouts"]["sidecar"]["memoryBytes"]


def test_why_a_layout_is_advised_is_said_and_so_for_each_other_why_it_does_not_do() -> None:
    lines = capacity("--pods-per-second=100", "--clusters=100").stdout.splitlines()
    assert any(line.startswith("not gateway: one gateway would need ") for line in lines)
    assert any(line.startswith("advised: kafka, for one gateway would need ") for line in lines)
    alone = as_json("--pods-per-second=10", "--schedulers=1")
    assert (alone["advised"], alone["reason"]) == (
        "sidecar",
        "there is one scheduler, and one process carries what it sends",
    )


def test_what_nothing_carries_is_not_advised() -> None:
    done = capacity("--pods-per-second=100000")
    assert "advised: none carries this. Are these the Pods of one cluster, and its busiest minute?" in done.stdout
    assert " *" not in done.stdout
    plan = as_json("--pods-per-second=100000")
    assert plan["advised"] is None
    assert plan["reason"].startswith("an agent would need ")


def test_kafka_has_brokers_and_a_topic() -> None:
    done = capacity("--pods-per-second=10", "--layout=kafka", "--retention=6h", "--growth=5")
    assert "topic: 10 partitions, replication 3, retention 6h" in done.stdout
    assert "kafka: agents produce into Kafka, gateways decide; none of them is missed when it is gone" in done.stdout


def test_why_the_layout_that_was_asked_for_does_not_carry_it_is_said() -> None:
    done = capacity("--pods-per-second=100", "--clusters=1000", "--layout=gateway")
    assert done.exit_code == 0
    assert "not gateway: one gateway would need" in done.stdout


def test_json_has_the_same_plan_with_units_in_its_names() -> None:
    plan = as_json("--pods-per-second=10", "--clusters=50", "--price-core-hour=0.04")
    assert (plan["spansPerSecond"], plan["heldSpans"], plan["chosen"]) == (17_500, 525_000, "gateway")
    assert list(plan["layouts"]) == ["sidecar", "gateway", "load_balancing", "kafka"]
    gateway = plan["layouts"]["gateway"]
    assert gateway["carries"]
    assert gateway["tiers"]["agents"]["replicas"] == 150
    assert gateway["costPerMonth"] == pytest.approx(gateway["cores"] * 730 * 0.04)
    assert plan["layouts"]["kafka"]["partitions"] == 8


def test_without_prices_nothing_is_said_to_cost_anything() -> None:
    assert "COST" not in capacity("--pods-per-second=1").stdout
    assert "cost: give --price-core-hour" in capacity("--pods-per-second=1").stdout
    priced = capacity("--pods-per-second=1", "--price-disk-gib-month=0.1").stdout
    assert "COST/MONTH" in priced
    assert "cost: give" not in priced


def test_this_machine_can_be_measured_and_planned_for() -> None:
    (told,) = [
        line for line in capacity("--pods-per-second=10", "--calibrate").stdout.splitlines() if "cores: " in line
    ]
    speed = re.search(r" times ([\d.]+), measured here", told)
    assert speed
    assert float(speed[1]) > 0


@pytest.mark.parametrize("layout", ["sidecar", "gateway", "load_balancing", "kafka"])
def test_the_least_that_can_be_asked_for_has_a_plan(layout: str) -> None:
    amounts = ("pods-per-second", "attempts-per-pod", "spans-per-attempt", "bytes-per-span", "broker-cores")
    done = capacity(*(f"--{each}=0.0001" for each in amounts), f"--layout={layout}")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing option '--pods-per-second'"),
        (["--pods-per-second=0"], "0: must be at least 0.0001 and at most 1,000,000,000"),
        (["--pods-per-second=1e-320"], "1e-320: must be at least 0.0001 and at most 1,000,000,000"),
        (["--pods-per-second=1", "--spans-per-attempt=1e-320"], "1e-320: must be at least 0.0001"),
        (["--pods-per-second=1", "--broker-cores=1e-320"], "1e-320: must be at least 0.0001"),
        (["--pods-per-second=many"], "'many' is no number: write for example 10"),
        (["--pods-per-second=1", "--kept=150%"], "must be above 0 % and at most 100 %"),
        (["--pods-per-second=1", "--kept=0.05"], "'0.05' is no percentage: write for example 5%"),
        (["--pods-per-second=1", "--decision-wait=soon"], "Invalid value for '--decision-wait'"),
        (["--pods-per-second=1", "--clusters=0"], "Invalid value for '--clusters'"),
        (["--pods-per-second=1", "--layout=mesh"], "'mesh' is not one of 'sidecar', 'gateway'"),
        (["--pods-per-second=1", "--price-core-hour=-1"], "Invalid value for '--price-core-hour'"),
        (["--pods-per-second=nan"], "nan: must be at least 0.0001"),
        (["--pods-per-second=1", "--clusters=2.5"], "'2.5' is no whole number"),
        (["--pods-per-second=1", "--replication=0"], "0: must be at least 1 and at most 100"),
    ],
)
def test_a_bad_value_is_refused_with_what_would_be_right(arguments: list[str], said: str) -> None:
    done = capacity(*arguments)
    assert done.exit_code == 2
    assert said in done.stderr
