"""What the ready policy files promise, on the simulated scheduler."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from podtrail_scheduler import TracedSimulation, Workload

from podtrail.otlp import write_request
from podtrail.testing import replay
from podtrail.testing.attempts import MadeAttempt, no_room

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "policies"
SECOND = 1_000_000_000
BUDGET = 8

Arrivals = list[tuple[int, bytes]]


@pytest.fixture(scope="module")
def arrivals() -> Arrivals:
    """What the scheduler of pipeline.yaml sends, at the (simulated) time at which it sends it."""
    settings = yaml.safe_load((ROOT / "pipeline.yaml").read_text(encoding="utf-8"))["receivers"]["scheduler"]
    simulation = TracedSimulation(Workload.model_validate(settings["workload"]))
    return [(delivery.now, request) for delivery in simulation.run() for request in delivery.requests]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://backend.example:4317")
    monkeypatch.setenv("SPANS_PER_SECOND", str(BUDGET))
    monkeypatch.setenv("NAMESPACE", "payments")


def attempts(decisions: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    return (decision for decision in decisions if decision.get("podUid"))


def took(decision: Mapping[str, Any]) -> int:
    return int(decision["endTimeUnixNano"]) - int(decision["startTimeUnixNano"])


def is_kept(decision: Mapping[str, Any]) -> bool:
    return bool(decision["decision"] == "sampled")


def test_failed_and_slow_loses_no_failed_and_no_slow_attempt(arrivals: Arrivals) -> None:
    seen = list(attempts(replay(FILES / "failed-and-slow.yaml", arrivals).decisions))
    telling = [decision for decision in seen if decision["result"] != "Success" or took(decision) > SECOND]
    assert len(telling) > 100
    assert all(map(is_kept, telling))
    rest = [decision for decision in seen if decision not in telling]
    assert sum(map(is_kept, rest)) < len(rest) / 4


def test_cost_capped_keeps_to_its_budget_and_the_first_of_each_failure(arrivals: Arrivals) -> None:
    run = replay(FILES / "cost-capped.yaml", arrivals)
    seconds = (arrivals[-1][0] - arrivals[0][0]) / SECOND
    come = sum(decision["spans"] for decision in run.decisions)
    assert come / seconds > 2 * BUDGET  # or there is nothing to cap
    capped = sum(decision["spans"] for decision in run.decisions if decision["policy"] == "budget")
    assert 0.5 * BUDGET < capped / seconds < 1.3 * BUDGET
    assert {decision["result"] for decision in run.decisions if decision["policy"] == "first of its kind"} > {"Error"}
    counted = run.metrics["podtrail_scheduling_attempts_total"]
    assert sum(counted.values()) == len(list(attempts(run.decisions)))


def test_incident_keeps_all_of_the_namespace_with_what_is_linked(arrivals: Arrivals) -> None:
    affected = MadeAttempt(uid="a" * 36, namespace="payments", start=arrivals[0][0])
    retry = no_room(uid="a" * 36, namespace="payments", number=2, start=arrivals[5][0])
    others = [MadeAttempt(uid=f"{n:036}", namespace="shop", start=arrivals[5][0]) for n in range(40)]
    made = [(one.start + one.duration, write_request(one.groups())) for one in (affected, retry, *others)]
    seen = {(d["podUid"], d["traceId"]): d for d in attempts(replay(FILES / "incident.yaml", made).decisions)}
    assert seen[affected.uid, affected.trace_id.hex()]["policy"].startswith("the namespace")
    assert is_kept(seen[retry.uid, retry.trace_id.hex()])
    assert sum(is_kept(seen[one.uid, one.trace_id.hex()]) for one in others) < 5


def test_platform_default_tells_the_whole_story_of_pods_that_recovered(arrivals: Arrivals) -> None:
    seen = sorted(
        attempts(replay(FILES / "platform-default.yaml", arrivals).decisions), key=lambda d: d["startTimeUnixNano"]
    )
    by_pod: dict[str, list[dict[str, Any]]] = {}
    for decision in seen:
        by_pod.setdefault(decision["podUid"], []).append(decision)
    recovered = [pod for pod in by_pod.values() if len(pod) > 1 and pod[-1]["result"] == "Success"]
    assert len(recovered) > 3
    for pod in recovered:
        end = int(pod[-1]["endTimeUnixNano"])
        lately = [decision for decision in pod if end - int(decision["endTimeUnixNano"]) < 50 * SECOND]
        assert all(map(is_kept, lately)), [(d["result"], d["policy"]) for d in pod]
    assert all(is_kept(decision) for decision in seen if decision["result"] == "Error")
    assert sum(map(is_kept, seen)) < len(seen)
