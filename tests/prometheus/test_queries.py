"""Every query of dashboards and alerts names what a running podtrail shows, and gets an answer of a real Prometheus."""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from podtrail.otlp import write_request
from podtrail.testing.attempts import MadeAttempt
from tests.free_ports import free_ports
from tests.prometheus.conftest import MONITORING
from tests.prometheus.server import Prometheus
from tests.service.conftest import PODTRAIL, Process
from tools.docs import dashboards
from tools.docs.instruments import described

pytestmark = pytest.mark.prometheus

WORKLOAD = {
    "length": "2h",
    "arrival_rate": 1,
    "nodes": [{"name": "node", "count": 3}],
    "pods": [
        {"name": "web", "weight": 8, "lifetime": "50s"},
        {"name": "huge", "weight": 1, "requests": {"cpu": 90}},
        {"name": "frozen", "weight": 1},
    ],
    "faults": {"bind_refused": [{"kinds": ["frozen"], "every": 2}]},
}
PANELS = [*dashboards.SCHEDULING, *dashboards.PODTRAIL]
QUERIES = [pytest.param(query, id=f"{panel.title}: {legend}") for panel in PANELS for query, legend in panel.queries]
ALERTS = re.findall(r"- alert: (\w+)", (MONITORING / "prometheusrule.yaml").read_text("utf-8"))
ROOT = MONITORING.parents[1]


def in_trouble(page: int) -> Mapping[str, Any]:
    """A configuration that shows what there is: a sampler without room, a backend that is down, a queue that fills."""
    return {
        "receivers": {"scheduler": {"speed": 20, "workload": WORKLOAD}},
        "processors": {
            "memory_limiter": {"check_interval": "1s", "limit_mib": 512},
            "scheduling_metrics": {},
            "tail_sampling": {
                "decision_wait": "5s",
                "decision_wait_after_root_received": "1s",
                "num_traces": 400,
                "maximum_held_mib": 1,
                "policies": [
                    {
                        "name": "failed",
                        "type": "scheduling_result",
                        "scheduling_result": {"results": ["Unschedulable", "Error"]},
                    }
                ],
            },
        },
        "exporters": {
            "file": {"path": "kept.jsonl"},
            "otlp_grpc/down": {
                "endpoint": "http://127.0.0.1:9",
                "sending_queue": {"queue_size": 2, "num_consumers": 1},
                "retry_on_failure": {"initial_interval": "100ms", "max_interval": "500ms", "max_elapsed_time": "1s"},
            },
        },
        "service": {
            "telemetry": {"metrics": {"address": f"127.0.0.1:{page}"}},
            "pipelines": {
                "traces": {
                    "receivers": ["scheduler"],
                    "processors": ["memory_limiter", "scheduling_metrics", "tail_sampling"],
                    "exporters": ["file", "otlp_grpc/down"],
                }
            },
        },
    }


def full(page: int, otlp: int) -> Mapping[str, Any]:
    """A configuration that takes nothing: it may not use as much memory as it has from the start."""
    return {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{otlp}"}}}},
        "processors": {"memory_limiter": {"check_interval": "1s", "limit_mib": 1}},
        "exporters": {"debug": {}},
        "service": {
            "telemetry": {"metrics": {"address": f"127.0.0.1:{page}"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["memory_limiter"], "exporters": ["debug"]}},
        },
    }


@pytest.fixture(scope="module")
def prometheus(
    programs: Path, rules: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    """Prometheus beside two podtrails: one in trouble, one that refuses."""
    folder = tmp_path_factory.mktemp("prometheus")
    *pages, otlp = free_ports(3)
    processes = []
    for name, config in (("trouble", in_trouble(pages[0])), ("full", full(pages[1], otlp))):
        (folder / f"{name}.yaml").write_text(json.dumps(config), encoding="utf-8")
        processes.append(Process([str(PODTRAIL)], ["run", "--config", f"{name}.yaml"], folder, {}))
    asked = Prometheus(programs / "prometheus", folder, pages, rules)
    try:
        for process in processes:
            process.ready()
        asked.ready()
        stop = threading.Event()
        sender = threading.Thread(target=keep_sending, args=(otlp, stop))
        sender.start()
        yield asked
        stop.set()
        sender.join()
    finally:
        asked.stop()
        for process in processes:
            process.close()


def keep_sending(port: int, stop: threading.Event) -> None:
    """Send an attempt again and again, whatever is answered."""
    body = write_request(MadeAttempt().groups())
    headers = {"Content-Type": "application/x-protobuf"}
    while not stop.wait(0.2):
        with suppress(OSError), urlopen(Request(f"http://127.0.0.1:{port}/v1/traces", body, headers), timeout=5):
            pass


def as_grafana_asks(query: str) -> str:
    """Return a query with Grafana's variables filled in."""
    return query.replace("$__rate_interval", "5s").replace("$instance", ".*")


def parts(node: Any, *kinds: str) -> Iterator[Mapping[str, Any]]:
    """Yield the nodes of some kinds in a parsed query."""
    if isinstance(node, dict):
        if node.get("type") in kinds:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from parts(each, *kinds)


def selector(node: Mapping[str, Any]) -> str:
    """Return the text of a selector."""
    matchers = [f"{one['name']}{one['type']}{json.dumps(one['value'])}" for one in node["matchers"]]
    return "{" + ",".join(matchers) + "}"


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_of_a_dashboard_has_an_answer(prometheus: Prometheus, query: str) -> None:
    asked = as_grafana_asks(query)
    prometheus.until(lambda: prometheus.query(asked), f"an answer to {asked}")
    parsed = prometheus.ask("parse_query", query=asked)
    labels = {label for node in parts(parsed, "aggregation") if not node["without"] for label in node["grouping"]}
    for series in prometheus.query(asked):
        assert labels - {"le"} <= series["metric"].keys()


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_asks_only_for_what_podtrail_shows(
    prometheus: Prometheus, rules: Mapping[str, Any], name: str
) -> None:
    (rule,) = [rule for group in rules["groups"] for rule in group["rules"] if rule["alert"] == name]
    parsed = prometheus.ask("parse_query", query=rule["expr"])
    asked = {selector(node) for node in parts(parsed, "vectorSelector", "matrixSelector")}
    assert asked
    for one in asked:
        prometheus.until(lambda one=one: prometheus.ask("series", **{"match[]": one}), f"a series {one}")  # type: ignore[misc]


def test_prometheus_evaluates_every_alert_and_finds_what_is_wrong_here(prometheus: Prometheus) -> None:
    def states() -> Mapping[str, str]:
        groups = prometheus.ask("rules")["groups"]
        return {rule["name"]: rule["state"] for group in groups for rule in group["rules"]}

    trouble = {"PodtrailLosingSpans", "PodtrailRefusing", "PodtrailQueueFilling", "PodtrailEvictingUndecided"}
    prometheus.until(lambda: trouble <= {name for name, state in states().items() if state != "inactive"}, "trouble")
    assert {rule["health"] for group in prometheus.ask("rules")["groups"] for rule in group["rules"]} == {"ok"}
    prometheus.until(lambda: states()["PodtrailDown"] == "inactive", "both podtrails are there")
    assert states()["PodtrailLedgerUnbalanced"] == "inactive"


def test_exemplars_of_attempts_are_taken(prometheus: Prometheus) -> None:
    query = "podtrail_scheduling_attempt_duration_seconds_bucket"
    whole = {"query": query, "start": "0", "end": "4000000000"}
    prometheus.until(lambda: prometheus.ask("query_exemplars", **whole), "exemplars")
    found = prometheus.ask("query_exemplars", **whole)
    assert {len(one["labels"]["trace_id"]) for series in found for one in series["exemplars"]} == {32}


def test_metrics_are_scraped_in_openmetrics_with_the_types_that_they_have(prometheus: Prometheus) -> None:
    prometheus.until(lambda: "podtrail_scheduling_attempts" in prometheus.ask("metadata"), "metadata")
    told = {name: one[0]["type"] for name, one in prometheus.ask("metadata").items()}
    assert told["podtrail_scheduling_attempts"] == "counter"
    assert told["otelcol_receiver_accepted_spans"] == "unknown"
    known = {metric.name.removesuffix("_total").replace(".", "_") for metric in described(ROOT)}
    assert {name for name in told if name.startswith(("podtrail_", "otelcol_"))} <= known
