"""A scheduler among faults: nothing is bound twice, nothing is stuck, and what it believes comes right again."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from podtrail_scheduler import AttemptRecord, Simulation, TracedSimulation, Workload
from podtrail_scheduler.cluster.simulated.disruptions import UNREACHABLE
from pydantic import ValidationError

SMALL: dict[str, Any] = {
    "length": "5m",
    "arrival_rate": 2,
    "nodes": [{"name": "node", "count": 6, "zones": ["a", "b"]}],
    "pods": [{"name": "web", "lifetime": "20s"}, {"name": "big", "requests": {"cpu": 3}, "lifetime": "10s"}],
}
FAULTS: dict[str, Mapping[str, Any]] = {
    "conflicts": {"api": [{"answer": "conflict", "calls": ["bind"], "share": 0.3, "lasts": "4m"}]},
    "throttled": {"api": [{"answer": "throttled", "share": 0.3, "takes": "2s", "lasts": "4m"}]},
    "unavailable": {"api": [{"answer": "unavailable", "begins": "1m", "lasts": "30s", "takes": "10ms"}]},
    "lost answers": {"api": [{"answer": "lost", "share": 0.3, "takes": "3s", "lasts": "4m"}]},
    "nodes unreachable": {"node_loss": [{"nodes": "node", "at": "20s", "every": "30s", "lasts": "20s", "count": 2}]},
    "nodes removed": {"node_loss": [{"nodes": "node", "at": "20s", "every": "40s", "lasts": "15s", "removed": True}]},
    "nodes cordoned": {"node_churn": [{"nodes": "node", "every": "7s", "cordoned_for": "10s"}]},
    "Pods deleted": {"pods_deleted": [{"every": 3, "after": "4ms"}, {"every": 5, "after": "3s"}]},
    "another scheduler": {"bound_by_another": [{"every": 4, "after": "2ms"}, {"every": 7, "after": "1ms"}]},
    "watch broken": {"watch_breaks": [{"at": "30s", "every": "50s", "lasts": "8s"}]},
}
EVERYTHING = {
    kind: [each for fault in FAULTS.values() for each in fault.get(kind, [])]
    for kind in {kind for fault in FAULTS.values() for kind in fault}
}


def run(faults: Mapping[str, Any], **changes: Any) -> tuple[Simulation, list[AttemptRecord]]:
    simulation = Simulation(Workload.model_validate({**SMALL, **changes, "faults": faults}))
    return simulation, [moment.attempt for moment in simulation.run() if moment.attempt is not None]


def believed(simulation: Simulation) -> dict[str, set[str]]:
    """The Pods on each node as the scheduler has them."""
    return {node.name: {pod.name for pod in node.pods.values()} for node in simulation.scheduler.cache.nodes()}


def true(simulation: Simulation) -> dict[str, set[str]]:
    nodes: dict[str, set[str]] = {node.name: set() for node in simulation.api_server.nodes()}
    for pod in simulation.api_server.pods.values():
        if pod.node_name:
            nodes[pod.node_name].add(pod.name)
    return nodes


@pytest.mark.parametrize("faults", [*FAULTS.values(), EVERYTHING], ids=[*FAULTS, "everything"])
def test_what_the_scheduler_believes_comes_right_and_nobody_is_stuck(faults: Mapping[str, Any]) -> None:
    # Nobody comes in the last minute: what a fault has upset has time to settle.
    simulation, records = run(faults, arrival_rate=0.4)
    assert believed(simulation) == true(simulation)
    waiting = Counter(pod.uid for pod in simulation.summary().pending)
    without_node = {pod.uid for pod in simulation.api_server.pods.values() if not pod.node_name}
    assert waiting == Counter(without_node)
    assert simulation.scheduler.under_way == 0
    bound = Counter(record.pod.uid for record in records if record.result == "Success")
    assert set(bound.values()) == {1}


def test_faults_are_the_same_for_a_seed() -> None:
    workload = {**SMALL, "length": "1m", "faults": EVERYTHING}
    first, again = (list(TracedSimulation(Workload.model_validate(workload)).run()) for _ in range(2))
    assert first == again


def test_a_lost_answer_is_an_error_though_the_pod_was_bound() -> None:
    simulation, records = run({"api": [{"answer": "lost", "calls": ["bind"], "takes": "1s"}]}, length="30s")
    assert {record.result for record in records} == {"Error", "Unschedulable"}  # small nodes fill up
    failed = [record for record in records if record.result == "Error"]
    assert all("context deadline exceeded" in record.message for record in failed)
    assert simulation.api_server.bound == len({record.pod.uid for record in failed})


def test_no_pod_is_put_on_a_node_that_is_unreachable() -> None:
    _, records = run({"node_loss": [{"nodes": "node", "count": 5, "at": "10s"}]}, length="1m", arrival_rate=1)
    late = [record for record in records if record.started > records[0].started + 12 * 10**9]
    assert {record.node for record in late if record.node} == {"node-5"}
    refused = [record.message for record in late if record.result == "Unschedulable"]
    assert refused
    assert all(UNREACHABLE in message or "untolerated taint" in message for message in refused)


def test_conflicts_end_attempts_with_the_servers_words() -> None:
    _, records = run({"api": [{"answer": "conflict", "calls": ["bind"]}]}, length="30s")
    failed = [record for record in records if record.result == "Error"]
    assert failed
    assert all("Operation cannot be fulfilled" in record.message for record in failed)
    assert "Success" not in {record.result for record in records}


@pytest.mark.parametrize(
    ("faults", "complaint"),
    [
        ({"node_loss": [{"nodes": "nobody", "at": "1s"}]}, "groups that nodes does not have: nobody"),
        ({"pods_deleted": [{"kinds": ["nobody"], "after": "1s"}]}, "kinds that pods does not have: nobody"),
        ({"api": [{"answer": "shrug"}]}, "'conflict', 'throttled', 'unavailable' or 'lost'"),
    ],
)
def test_a_fault_that_can_happen_to_nobody_is_refused(faults: Mapping[str, Any], complaint: str) -> None:
    with pytest.raises(ValidationError, match=complaint):
        Workload.model_validate({**SMALL, "faults": faults})
