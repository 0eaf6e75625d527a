"""podtrail-scheduler takes up another configuration while it runs, or says why not; a real API server, real signals."""

import contextlib
import re
import signal
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.scheduler.cluster.kubernetes.test_command import OURS, Running, configuration, node_of, process, until
from tests.scheduler.collector import Collector, attributes

pytestmark = pytest.mark.control_plane

CHANGE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
GATES = "--feature-gates=SchedulerTracing=true,AsyncTraceContextPropagation=true"


class Reloaded:
    """A scheduler for the nodes and Pods of one namespace, and its configuration's file."""

    def __init__(self, api: Any, namespace: str, document: Mapping[str, Any], running: Running) -> None:
        self.api = api
        self.namespace = namespace
        self.document = document
        self.running = running
        self.file = running.log.parent / "config.yaml"

    def write(self, head: str = "", **fields: Any) -> None:
        self.file.write_text(head + yaml.safe_dump({**self.document, **fields}))

    def hang_up(self) -> None:
        self.running.process.send_signal(signal.SIGHUP)

    def log(self, text: str, times: int = 1) -> str:
        """The log once it says something so often."""
        return str(until(self.running.log.read_text, lambda found: found.count(text) >= times, self.running))

    def node_of(self, pod: Mapping[str, Any]) -> str:
        """The node that a Pod comes to."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        self.api.create(path, pod)
        return node_of(until(lambda: self.api.get(f"{path}/{pod['metadata']['name']}"), node_of, self.running))

    def reloads(self) -> dict[str, float]:
        """`scheduler_config_reloads_total` by result."""
        port = re.findall(r'"Serving" port=(\d+)', self.log('"Serving"'))[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as answer:
            text = answer.read().decode()
        return {
            result: float(value)
            for result, value in re.findall(r'scheduler_config_reloads_total{result="(\w+)"} (\S+)', text)
        }


@pytest.fixture
def spans() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.stop()


@pytest.fixture
def reloaded(control_plane: Any, namespace: str, tmp_path: Path, spans: Collector) -> Iterator[Callable[..., Reloaded]]:
    """Starts a scheduler with these flags; the namespace has the nodes `…-red` and `…-blue`."""

    with contextlib.ExitStack() as stack:

        def start(*flags: str) -> Reloaded:
            for colour in ("red", "blue"):
                control_plane.api.node(f"{namespace}-{colour}", labels={"for": namespace, "colour": colour})
            tracing = {"endpoint": spans.endpoint, "samplingRatePerMillion": 1_000_000}
            document = configuration(control_plane, namespace, tracing=tracing)
            running = stack.enter_context(
                process(OURS, tmp_path / "ours", document, "--secure-port=0", "--bind-address=127.0.0.1", GATES, *flags)
            )
            scheduler = Reloaded(control_plane.api, namespace, document, running)
            scheduler.log("scheduling begins")
            return scheduler

        yield start


def preferring(namespace: str, colour: str) -> list[dict[str, Any]]:
    """Profiles that let Pods onto nodes of one colour alone."""
    term = {"matchExpressions": [{"key": "colour", "operator": "In", "values": [colour]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return [
        {
            "schedulerName": namespace,
            "pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}],
        }
    ]


def test_a_hangup_has_the_file_read_again_and_what_is_wrong_is_said(
    reloaded: Callable[..., Reloaded], namespace: str, make_pod: Any, spans: Collector
) -> None:
    scheduler = reloaded()
    for number, colour in enumerate(("red", "blue", "red"), start=1):
        scheduler.write(f"# tracing.k8s.io/traceparent: {CHANGE}\n", profiles=preferring(namespace, colour))
        scheduler.hang_up()
        scheduler.log('"Configuration reloaded"', number)
        pod = make_pod(f"web-{number}", namespace, nodeSelector={"for": namespace})
        assert scheduler.node_of(pod) == f"{namespace}-{colour}"

    scheduler.write(profiles=preferring(namespace, "blue"), percentageOfNodes=3)
    scheduler.hang_up()
    log = scheduler.log('"Configuration refused"')
    assert 'unknown field \\"percentageOfNodes\\" (did you mean percentageOfNodesToScore?)' in log

    scheduler.write(profiles=preferring(namespace, "blue"), podMaxBackoffSeconds=20)
    scheduler.hang_up()
    log = scheduler.log('"Configuration refused"', 2)
    assert "can't change podMaxBackoffSeconds: restart it with the new configuration" in log

    scheduler.file.unlink()
    scheduler.hang_up()
    scheduler.log('"Configuration refused"', 3)

    scheduler.write("# a comment\n", profiles=preferring(namespace, "red"))
    scheduler.hang_up()
    scheduler.log('"Configuration is the same"')
    assert scheduler.node_of(make_pod("web", namespace, nodeSelector={"for": namespace})) == f"{namespace}-red"
    assert scheduler.reloads() == {"success": 3.0, "unchanged": 1.0, "refused": 3.0}

    attempts = until(
        lambda: [span for span in spans.spans if span.name == "SchedulePod"],
        lambda found: len(found) == 4,
        scheduler.running,
    )
    red, blue, again, still = sorted(attempts, key=lambda span: span.start_time_unix_nano)
    generations = [str(attributes(span)["scheduler.config.generation"]) for span in (red, blue, again, still)]
    assert generations[0] == generations[2] == generations[3] != generations[1]
    assert f'generation="{generations[1]}" before="{generations[0]}"' in scheduler.running.log.read_text()
    [link] = blue.links
    assert (link.trace_id.hex(), link.span_id.hex()) == (CHANGE[3:35], CHANGE[36:52])


def test_a_file_that_changes_is_taken_up_by_itself_and_names_no_span_without_its_gate(
    reloaded: Callable[..., Reloaded], namespace: str, make_pod: Any, spans: Collector
) -> None:
    scheduler = reloaded("--config-reload-period=50ms", "--feature-gates=AsyncTraceContextPropagation=false")
    scheduler.write(f"# tracing.k8s.io/traceparent: {CHANGE}\n", profiles=preferring(namespace, "blue"))
    scheduler.log('"Configuration reloaded"')
    assert scheduler.node_of(make_pod("web", namespace, nodeSelector={"for": namespace})) == f"{namespace}-blue"
    [attempt] = until(
        lambda: [span for span in spans.spans if span.name == "SchedulePod"], lambda found: found, scheduler.running
    )
    assert "scheduler.config.generation" in attributes(attempt)
    assert not attempt.links
