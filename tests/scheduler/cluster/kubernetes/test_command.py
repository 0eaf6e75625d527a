"""podtrail-scheduler as a process on a real API server, with an HTTP extender, beside the real kube-scheduler."""

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

pytestmark = pytest.mark.control_plane

DEADLINE = 120
OURS = (sys.executable, "-m", "podtrail_scheduler.command.main")
Answer = Callable[[Mapping[str, Any]], Any]


class ExtenderServer:
    """Answers verbs with functions of what they are asked; keeps what it was asked."""

    def __init__(self, verbs: Mapping[str, Answer]) -> None:
        self.asked: list[tuple[str, Any]] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                verb = self.path.strip("/")
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                asked.append((verb, request))
                body = json.dumps(verbs[verb](request)).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextlib.contextmanager
def extending(verbs: Mapping[str, Answer]) -> Iterator[ExtenderServer]:
    server = ExtenderServer(verbs)
    try:
        yield server
    finally:
        server.close()


class Running(NamedTuple):
    """A scheduler's process and its log."""

    process: "subprocess.Popen[bytes]"
    log: Path


@contextlib.contextmanager
def process(command: Sequence[str | Path], folder: Path, document: Mapping[str, Any], *flags: str) -> Iterator[Running]:
    """Runs a scheduler with a configuration; ends it with SIGTERM unless it has ended."""
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(document))
    with (folder / "scheduler.log").open("wb") as log:
        started = subprocess.Popen([*command, "--config", folder / "config.yaml", *flags], stderr=log, stdout=log)
        try:
            yield Running(started, folder / "scheduler.log")
        finally:
            if started.poll() is None:
                started.send_signal(signal.SIGTERM)
            started.wait(DEADLINE)


def configuration(control_plane: Any, name: str, **fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(control_plane.kubeconfig)},
        "profiles": [{"schedulerName": name}],
        **fields,
    }


def until(read: Callable[[], Any], true: Callable[[Any], Any], running: Running) -> Any:
    """What is read once it is true; fails when the process has ended, or the deadline has passed."""
    deadline = time.monotonic() + DEADLINE
    while not true(found := read()):
        alive = running.process.poll() is None and time.monotonic() < deadline
        assert alive, f"still {json.dumps(found)[:1000]}\n{running.log.read_text()[-3000:]}"
        time.sleep(0.05)
    return found


def node_of(pod: Mapping[str, Any]) -> str:
    return str(pod["spec"].get("nodeName", ""))


TRACING_PLUGIN = """
from pathlib import Path

from opentelemetry.trace import get_current_span, get_tracer


class Asking:
    name = "Asking"

    def __init__(self, handle, args):
        self.file = Path(args["file"])

    def filter(self, state, pod, node):
        around = get_current_span().get_span_context()
        with get_tracer("theirs").start_as_current_span("ask") as span:
            same = span.is_recording() and span.parent.span_id == around.span_id
            self.file.write_text("a child of the plugin's span" if same else "lost")
"""


def test_what_a_plugin_traces_with_opentelemetrys_global_tracer_joins_its_attempt(
    control_plane: Any, namespace: str, make_pod: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "asking.py").write_text(TRACING_PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", labels={"for": namespace})
    api.create(pods, make_pod("web", namespace, nodeSelector={"for": namespace}))
    profile = {
        "schedulerName": namespace,
        "plugins": {"multiPoint": {"enabled": [{"name": "Asking"}]}},
        "pluginConfig": [{"name": "Asking", "args": {"file": str(tmp_path / "seen")}}],
    }
    tracing = {"endpoint": "127.0.0.1:1", "samplingRatePerMillion": 1_000_000}  # nobody is there, nor needs to be
    document = configuration(control_plane, namespace, profiles=[profile], tracing=tracing)
    flags = ("--secure-port=0", "--feature-gates=SchedulerTracing=true", "--plugin=Asking=asking:Asking")

    with process(OURS, tmp_path / "ours", document, *flags) as running:
        until(lambda: api.get(f"{pods}/web"), node_of, running)

    assert (tmp_path / "seen").read_text() == "a child of the plugin's span"


STUCK_PLUGIN = """
from pathlib import Path
from threading import Event


class Stuck:
    name = "Stuck"

    def __init__(self, handle, args):
        self.file = Path(args["file"])

    def filter(self, state, pod, node):
        self.file.touch()
        Event().wait()

    async def permit(self, state, pod, node_name):
        Event().wait()
"""


def test_it_ends_when_it_is_told_to_although_a_plugin_never_returns(
    control_plane: Any, namespace: str, make_pod: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stuck.py").write_text(STUCK_PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", labels={"for": namespace})
    api.create(pods, make_pod("web", namespace, nodeSelector={"for": namespace}))
    profile = {
        "schedulerName": namespace,
        "plugins": {"multiPoint": {"enabled": [{"name": "Stuck"}]}},
        "pluginConfig": [{"name": "Stuck", "args": {"file": str(tmp_path / "asked")}}],
    }
    document = configuration(control_plane, namespace, profiles=[profile])

    with process(OURS, tmp_path / "ours", document, "--secure-port=0", "--plugin=Stuck=stuck:Stuck") as running:
        until((tmp_path / "asked").exists, bool, running)

    assert running.process.returncode == 0, running.log.read_text()


def test_an_extender_is_asked_as_kube_scheduler_asks_it_and_decides(
    control_plane: Any, kube_scheduler: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    """Both schedulers, one after the other, with the same extender and Pods that are alike."""
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    names = [f"{namespace}-{each}" for each in "abcd"]
    for name in names:
        api.node(name, labels={"for": namespace})
    kept = names[1:]

    def filtering(request: Any) -> Any:
        items = [each for each in request["Nodes"]["items"] if each["metadata"]["name"] in kept]
        return {"Nodes": {"items": items}, "FailedNodes": {names[0]: "not licensed"}}

    def prioritizing(request: Any) -> Any:
        return [{"Host": name, "Score": 10 if name == names[2] else 0} for name in request["NodeNames"]]

    async def scheduled_by(scheduler: str) -> None:
        await asyncio.to_thread(api.create, pods, make_pod(scheduler, scheduler, nodeSelector={"for": namespace}))
        assert node_of(await until(lambda: api.get(f"{pods}/{scheduler}"), node_of)) == names[2]

    async def test() -> list[list[tuple[str, Any]]]:
        with extending({"filter": filtering, "prioritize": prioritizing}) as server:
            extenders = [
                {"urlPrefix": server.url, "filterVerb": "filter"},
                {"urlPrefix": server.url, "prioritizeVerb": "prioritize", "weight": 5, "nodeCacheCapable": True},
            ]
            async with running(f"{namespace}-ours", extenders=extenders):
                await scheduled_by(f"{namespace}-ours")
            ours = server.asked[:]
            kube_scheduler(f"{namespace}-theirs", extenders=extenders)
            await scheduled_by(f"{namespace}-theirs")
            return [ours, server.asked[len(ours) :]]

    ours, theirs = asyncio.run(test())
    assert [shape(each) for each in ours] == [shape(each) for each in theirs]


def shape(asked: tuple[str, Any]) -> Any:
    """A request without what differs from Pod to Pod."""
    verb, request = asked
    nodes = request["Nodes"] and sorted(each["metadata"]["name"] for each in request["Nodes"]["items"])
    return verb, sorted(request), sorted(request["Pod"]["spec"]), nodes, sorted(request["NodeNames"] or [])


def test_a_slow_search_for_a_node_is_logged_as_kube_scheduler_logs_it(
    control_plane: Any, kubernetes_binaries: Path, namespace: str, make_pod: Any, tmp_path: Path
) -> None:
    """Both, one after the other, with an extender that takes 150 ms to filter; at -v=4 each step is told."""
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    for each in "ab":
        api.node(f"{namespace}-{each}", labels={"for": namespace})

    def filtering(request: Any) -> Any:
        threading.Event().wait(0.15)
        return {"NodeNames": request["NodeNames"]}

    verbs: Mapping[str, Answer] = {"filter": filtering, "prioritize": lambda _: []}
    commands: dict[str, Sequence[str | Path]] = {"ours": OURS, "theirs": (kubernetes_binaries / "kube-scheduler",)}
    for who, command in commands.items():
        scheduler = f"{namespace}-{who}"
        with extending(verbs) as server:
            asks = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": True}
            document = configuration(control_plane, scheduler, extenders=[{"urlPrefix": server.url, **asks}])
            with process(command, tmp_path / who, document, "--secure-port=0", "-v=4") as running:
                api.create(pods, make_pod(who, scheduler, nodeSelector={"for": namespace}))
                until(partial(api.get, f"{pods}/{who}"), node_of, running)
        log = running.log.read_text()
        assert who == "theirs" or running.process.returncode == 0, log
        [block] = re.findall(SEARCH.format(namespace=namespace, pod=who), log)
        assert re.findall('---"([^"]*)"', block) == ["Computing predicates done", "Prioritizing done"], who


SEARCH = (
    r'] (Trace\[\d+\]: "Scheduling" namespace:{namespace},name:{pod} '
    r"\(\d\d-\w{{3}}-\d{{4}} [\d:.]+\) \(total time: \d+ms\):\n"
    r'(?:Trace\[\d+\]: ---"[^"]*" \d+ms \([\d:.]+\)\n)*'
    r"Trace\[\d+\]: \[[\d.]+ms\] \[[\d.]+ms\] END\n)"
)


def test_a_pod_that_an_extender_rules_out_is_told_so_and_tried_again(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-a", labels={"for": namespace})

    def filtering(request: Any) -> Any:
        good = [name for name in request["NodeNames"] if name.endswith("-b")]
        return {
            "NodeNames": good,
            "FailedNodes": {name: "no licence" for name in request["NodeNames"] if name not in good},
        }

    async def test(extenders: Any) -> None:
        async with running(namespace, extenders=extenders):
            api.create(pods, make_pod("web", namespace, nodeSelector={"for": namespace}))
            refused = await until(lambda: api.get(f"{pods}/web"), lambda pod: pod["status"].get("conditions"))
            assert "1 no licence" in refused["status"]["conditions"][0]["message"]
            api.node(f"{namespace}-b", labels={"for": namespace})
            assert node_of(await until(lambda: api.get(f"{pods}/web"), node_of)) == f"{namespace}-b"

    with extending({"filter": filtering}) as server:
        asyncio.run(test([{"urlPrefix": server.url, "filterVerb": "filter", "nodeCacheCapable": True}]))


def test_an_extender_may_bind_in_place_of_the_plugins(
    control_plane: Any, namespace: str, running: Any, until: Any, make_pod: Any
) -> None:
    api, pods = control_plane.api, f"/api/v1/namespaces/{namespace}/pods"
    api.node(f"{namespace}-n", labels={"for": namespace})

    def binding(request: Any) -> Any:
        target = {"apiVersion": "v1", "kind": "Node", "name": request["Node"]}
        metadata = {"name": request["PodName"], "annotations": {"bound-by": "extender"}}
        api.create(f"{pods}/{request['PodName']}/binding", {"metadata": metadata, "target": target})
        return {"Error": ""}

    async def test(extenders: Any) -> None:
        async with running(namespace, extenders=extenders):
            api.create(pods, make_pod("web", namespace, nodeSelector={"for": namespace}))
            bound = await until(lambda: api.get(f"{pods}/web"), node_of)
            assert bound["metadata"]["annotations"] == {"bound-by": "extender"}

    with extending({"bind": binding}) as server:
        asyncio.run(test([{"urlPrefix": server.url, "bindVerb": "bind"}]))
        assert [verb for verb, _ in server.asked] == ["bind"]
