"""podtrail-kube-scheduler (kube-scheduler with the instrumentation in Go) on a real API server, for each minor built.

The KEP's integration and e2e tests by its words, as tests/scheduler has them for podtrail-scheduler; and whether spans
say the same as the scheduler's log, its metrics and the API server.
"""

import json
import re
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podtrail.cli import main
from podtrail.otlp import SpanView, read_request, split
from podtrail.reconstruction import Session
from podtrail.reconstruction.configz import configz_generation
from podtrail.recording import RecordingWriter
from tests.instrumentation.go.harness import ALL, Cluster, counted, roots, told, until
from tests.scheduler.collector import Collector, assert_tree_of_a_bound_pod, attributes
from tests.sizes import large

pytestmark = pytest.mark.control_plane

KEY, STATE = "tracing.k8s.io/traceparent", "tracing.k8s.io/tracestate"
CREATION = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PODS = large(150, 2_000)


def test_a_scheduled_pod_leaves_the_spans_of_the_kep_at_the_collector_and_their_context_on_the_pod(
    control_plane: Any, cluster: Cluster, start: Callable[..., Path], collector: Collector, binary: str
) -> None:
    cluster.nodes(2)
    start({"endpoint": collector.endpoint, "samplingRatePerMillion": ALL})
    generation = configz_generation(json.dumps(control_plane.scheduler_get("/configz")).encode())
    cluster.create("web", annotations={KEY: CREATION, STATE: "a=1"})
    pod = cluster.bound("web")
    until(lambda: roots(collector))
    assert_tree_of_a_bound_pod(collector)

    root, node = collector.named("SchedulePod"), pod["spec"]["nodeName"]
    [link] = root.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (CREATION[3:35], CREATION[36:52])
    assert (root.parent_span_id, root.kind, root.status.code) == (b"", Span.SPAN_KIND_CONSUMER, 0)
    annotations = pod["metadata"]["annotations"]
    assert annotations[KEY] == f"00-{root.trace_id.hex()}-{root.span_id.hex()}-01"
    assert annotations[STATE] == ""  # the creator's does not stay beside another traceparent
    told = attributes(root)
    assert isinstance(told.pop("scheduler.queue_wait_ms"), int)
    made_with = told.pop("scheduler.config.generation")
    assert re.fullmatch("[0-9a-f]{12}", str(made_with))
    assert made_with == generation or "-1.35/" in binary  # whose /configz has another form
    assert told == {
        "k8s.pod.name": "web",
        "k8s.pod.namespace": cluster.namespace,
        "k8s.namespace.name": cluster.namespace,
        "k8s.pod.uid": pod["metadata"]["uid"],
        "scheduler.profile": cluster.namespace,
        "scheduler.attempts": 1,
        "scheduler.result": "Success",
        "scheduler.selected_node": node,
    }
    resource = collector.resources[0]
    minor = binary.rpartition("/")[0].rpartition("-")[2]
    assert resource["service.version"].startswith(f"v{minor}.")
    assert (resource["service.name"], resource["host.name"]) == ("kube-scheduler", socket.gethostname())


@pytest.mark.parametrize("tracing", [None, {"samplingRatePerMillion": 0}, {}], ids=["passthrough", "rate 0", "no rate"])
def test_without_sampled_attempts_nothing_is_exported_and_the_context_is_passed_on(
    cluster: Cluster, start: Callable[..., Path], collector: Collector, tracing: Any
) -> None:
    cluster.nodes(1)
    start(tracing if tracing is None else {"endpoint": collector.endpoint, **tracing})
    cluster.create("web", annotations={KEY: CREATION})
    written = cluster.bound("web")["metadata"]["annotations"][KEY]
    if tracing is None:
        assert written == CREATION
    else:
        assert written.endswith("-00")
        assert written[3:35] != CREATION[3:35]
    assert collector.spans == []


def test_with_the_gate_off_there_are_no_spans(
    cluster: Cluster, start: Callable[..., Path], collector: Collector
) -> None:
    cluster.nodes(1)
    start({"endpoint": collector.endpoint, "samplingRatePerMillion": ALL}, gates=())
    cluster.create("web", annotations={KEY: CREATION})
    assert cluster.bound("web")["metadata"]["annotations"][KEY] == CREATION
    assert collector.spans == []


def test_an_endpoint_that_hangs_or_is_absent_does_not_touch_scheduling_nor_the_end(
    control_plane: Any, cluster: Cluster, start: Callable[..., Path]
) -> None:
    cluster.nodes(2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start({"endpoint": f"127.0.0.1:{silent.getsockname()[1]}", "samplingRatePerMillion": ALL})
        for number in range(20):
            cluster.create(f"web-{number}")
        for number in range(20):
            cluster.bound(f"web-{number}")


def test_spans_say_the_same_as_the_log_the_metrics_and_the_api_server(
    control_plane: Any, cluster: Cluster, start: Callable[..., Path], collector: Collector
) -> None:
    cluster.nodes(6, cpu=str(PODS // 20))
    log = start(
        {"endpoint": collector.endpoint, "samplingRatePerMillion": ALL},
        "-v=10",
        clientConnection={"qps": 5000, "burst": 5000},
    )
    for number in range(PODS):  # more than fit
        cluster.create(f"pod-{number}", cpu="500m" if number % 5 else "100")

    def counts() -> Counter[str]:
        return counted(control_plane.scheduler_get("/metrics"))

    until(counts, lambda found: found.total() >= PODS)
    until(lambda: (told(roots(collector)), counts()), lambda both: both[0] == both[1])
    successes = [root for root in roots(collector) if attributes(root)["scheduler.result"] == "Success"]
    bound = {pod["metadata"]["uid"]: pod["spec"].get("nodeName") for pod in cluster.api.get(cluster.pods)["items"]}
    chosen = {attributes(root)["k8s.pod.uid"]: attributes(root)["scheduler.selected_node"] for root in successes}
    assert len(chosen) == len(successes)
    assert chosen == {uid: node for uid, node in bound.items() if node}
    ids = Counter(
        (attributes(root)["k8s.pod.uid"], attributes(root)["scheduler.attempts"]) for root in roots(collector)
    )
    assert set(ids.values()) == {1}
    lines = [line for line in log.read_text().splitlines() if f'pod="{cluster.namespace}/' in line]
    _agrees_with_the_log("\n".join(lines), collector)  # the log of the scheduler before it is in the same file


@pytest.mark.parametrize("rate", [ALL // 2, ALL])
@pytest.mark.parametrize("verbosity", [0, 2])
def test_an_attempt_with_spans_is_not_rebuilt_from_the_log_as_well(
    control_plane: Any,
    cluster: Cluster,
    start: Callable[..., Path],
    collector: Collector,
    rate: int,
    verbosity: int,
) -> None:
    cluster.nodes(2)
    log = start({"endpoint": collector.endpoint, "samplingRatePerMillion": rate}, f"-v={verbosity}")
    begins = log.stat().st_size
    names = [f"web-{number}" for number in range(12)]
    for name in names:
        cluster.create(name)
    for name in names:
        cluster.bound(name)
    cluster.create("big", "100")
    until(lambda: cluster.api.get(f"{cluster.pods}/big")["status"].get("conditions"))
    control_plane.stop_one("kube-scheduler")  # the last spans have left
    control_plane.start_scheduler({"profiles": [{"schedulerName": cluster.namespace}]})
    session = Session(time.time_ns(), with_spans=False)
    starts = log.read_bytes().rfind(b"Scheduling attempts are traced", 0, begins)
    session.log("log", log.read_bytes()[log.read_bytes().rfind(b"\n", 0, starts) + 1 :], time.time_ns())
    rebuilt = [SpanView(raw) for group in session.drain(time.time_ns()) for raw in split(group.spans)]
    of_spans = [str(attributes(root)["k8s.pod.name"]) for root in roots(collector)]
    of_log = [
        str(root.attributes["k8s.pod.name"])
        for root in rebuilt
        if root.name == "SchedulePod" and root.attributes["k8s.pod.namespace"] == cluster.namespace
    ]
    assert rate < ALL or set(of_spans) >= {*names, "big"}
    assert set(of_spans).isdisjoint(of_log)
    if verbosity >= 2:
        assert sorted({*of_spans, *of_log}) == sorted([*names, "big"])


def _agrees_with_the_log(log: str, collector: Collector) -> None:
    """Totals of scores, evaluated and feasible nodes as klog has them at -v=10."""
    uids = {
        str(attributes(root)["k8s.pod.name"]): root
        for root in roots(collector)
        if attributes(root)["scheduler.result"] == "Success"
    }
    final = re.compile(r'"Calculated node\'s final score for pod" pod="[^/]*/([^"]*)" node="([^"]*)" score=(\d+)')
    scores: dict[str, dict[str, int]] = {}
    for found in final.finditer(log):
        scores.setdefault(found[1], {})[found[2]] = int(found[3])
    of_trace = {span.trace_id: span for span in collector.spans if span.name == "score"}
    compared = 0
    for name, root in uids.items():
        span = of_trace.get(root.trace_id)
        if span is None:
            continue
        values = {each.key: each.value for each in span.attributes}
        nodes = [each.string_value for each in values["scheduler.score.nodes"].array_value.values]
        totals = [each.int_value for each in values["scheduler.score.totals"].array_value.values]
        assert dict(zip(nodes, totals, strict=True)).items() <= scores[name].items()
        assert totals[0] == max(scores[name].values())
        compared += 1
    assert compared > PODS // 8  # the others had one node left to choose from
    end = re.compile(
        r'"Successfully bound pod to node" pod="[^/]*/([^"]*)" node="[^"]*" evaluatedNodes=(\d+) feasibleNodes=(\d+)'
    )
    filters = {span.trace_id: attributes(span) for span in collector.spans if span.name == "filter"}
    lines = list(end.finditer(log))
    assert len(lines) == len(uids)
    for found in lines:
        numbers = filters[uids[found[1]].trace_id]
        assert (numbers["scheduler.nodes.evaluated"], numbers["scheduler.nodes.feasible"]) == (
            int(found[2]),
            int(found[3]),
        )


def test_preemption_and_the_nominated_node(cluster: Cluster, start: Callable[..., Path], collector: Collector) -> None:
    cluster.nodes(1, cpu="2")
    start({"endpoint": collector.endpoint, "samplingRatePerMillion": ALL})
    cluster.create("victim", "2", terminationGracePeriodSeconds=0)
    cluster.bound("victim")
    cluster.create("vip", "2", priorityClassName="system-cluster-critical", terminationGracePeriodSeconds=0)
    node = cluster.bound("vip")["spec"]["nodeName"]
    both = until(
        lambda: [one for one in roots(collector) if attributes(one)["k8s.pod.name"] == "vip"],
        lambda found: any(attributes(one)["scheduler.result"] == "Success" for one in found),
    )
    first = attributes(both[0])
    assert (first["scheduler.result"], first["scheduler.nominated_node"]) == ("Unschedulable", node)
    assert "plugin: DefaultPreemption" in collector.names


def test_a_shutdown_exports_what_is_left(
    control_plane: Any,
    cluster: Cluster,
    start: Callable[..., Path],
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.nodes(1)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000")
    # A leader exits as soon as it is asked to end.
    start({"endpoint": collector.endpoint, "samplingRatePerMillion": ALL}, leaderElection={"leaderElect": True})
    cluster.create("web")
    cluster.bound("web")
    control_plane.stop_one("kube-scheduler")
    assert len(roots(collector)) == 1
    control_plane.start_scheduler({"profiles": [{"schedulerName": cluster.namespace}]})


def test_why_tells_these_attempts(
    cluster: Cluster, start: Callable[..., Path], collector: Collector, tmp_path: Path
) -> None:
    cluster.nodes(2)
    start({"endpoint": collector.endpoint, "samplingRatePerMillion": ALL})
    cluster.create("big", "100")
    until(lambda: roots(collector))
    cluster.api.node(f"{cluster.namespace}-xl", {"cpu": "128"}, labels={"for": cluster.namespace})
    cluster.bound("big")

    def results() -> list[object]:
        return [attributes(root)["scheduler.result"] for root in roots(collector)]

    until(lambda: "Success" in results())
    spans = tmp_path / "spans.jsonl"
    with RecordingWriter(spans) as recording:
        for resource, taken in collector.taken:
            described = {"attributes": [{"key": key, "value": {"stringValue": text}} for key, text in resource.items()]}
            request = ExportTraceServiceRequest()
            part = request.resource_spans.add()
            ParseDict(described, part.resource)
            part.scope_spans.add().spans.extend(taken)
            recording.write(read_request(request.SerializeToString()).groups, time.time_ns())
    pod = f"{cluster.namespace}/big"
    answer = CliRunner().invoke(main, ["why", "pod", pod, "-o", "json", "--from", str(spans)])
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.output)["pod"]["attempts"]
    assert [each["result"] for each in told] == results(), answer.output
    answer = CliRunner().invoke(main, ["why", "pod", pod, "--from", str(spans), "--attempt", "1"])
    assert "NodeResourcesFit" in answer.output
    assert "Insufficient cpu" in answer.output
