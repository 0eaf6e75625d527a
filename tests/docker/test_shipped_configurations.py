"""What the shipped manifests' configurations emit, beside a real scheduler of a real cluster: uid, profile and links.

They are taken out of the manifests as they stand; only addresses are others, and paths of what a node or a Pod has.
"""

import queue
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
import yaml

from podtrail.otlp import SpanView, read_request, split
from tests.docker.manifests import COLLECTIONS, KUBERNETES, ROOT, beside_schedulers, documents
from tests.free_ports import free_ports

pytestmark = pytest.mark.control_plane

DEADLINE = 600
EXPORT = "opentelemetry.proto.collector.trace.v1.TraceService/Export"
CREATION = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{CREATION}-00f067aa0ba902b7-01"
SHORTER = {
    "processors__tail_sampling__decision_wait": "5s",
    "processors__tail_sampling__decision_wait_after_root_received": "500ms",
    "processors__link_stitching__reorder_wait": "1s",
}
"""What is waited for, where a configuration says it: nothing else happens here meanwhile."""


class Backend:
    """An OTLP server that keeps the roots of attempts."""

    def __init__(self, server: grpc.Server) -> None:
        self._came: queue.Queue[bytes] = queue.Queue()
        self.roots: list[SpanView] = []
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self._take)
        service, method = EXPORT.split("/")
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))
        self.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"

    def _take(self, request: bytes, _: grpc.ServicerContext) -> bytes:
        self._came.put(request)
        return b""

    def until(self, done: Callable[[list[SpanView]], bool], log: Path) -> list[SpanView]:
        """Returns the roots that came once they are what is waited for."""
        deadline = time.monotonic() + DEADLINE
        while not done(self.roots):
            try:
                raw = self._came.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                told = [dict(root.attributes) for root in self.roots]
                raise AssertionError(f"only {told}\n{log.read_text()[-3000:]}") from None
            for group in read_request(raw).groups:
                views = map(SpanView, split(group.spans))
                self.roots += [view for view in views if view.name == "SchedulePod"]
        return self.roots


@pytest.fixture
def backend() -> Iterator[Backend]:
    server = grpc.server(ThreadPoolExecutor(2))
    backend = Backend(server)
    server.start()
    yield backend
    server.stop(None).wait()


class Cluster(NamedTuple):
    """A control plane where what the manifests say about roles was applied."""

    plane: Any

    def token(self, account: str, folder: Path) -> Path:
        """Returns the file of a ServiceAccount's token, as a Pod has it."""
        path = f"{COLLECTIONS['ServiceAccount']}/{account}/token"
        token = folder / "token"
        token.write_text(self.plane.api.create(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])
        return token

    def account(self, account: str, folder: Path) -> Path:
        """Returns a kubeconfig of a ServiceAccount."""
        kubeconfig: Path = self.plane.write_kubeconfig(
            folder / "kubeconfig", {"tokenFile": str(self.token(account, folder))}
        )
        return kubeconfig

    def create(self, name: str, scheduler: str) -> str:
        """Creates a Pod that fits nowhere, and that a node of its label is worth another attempt; returns its uid."""
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "64"}}}
        spec = {"schedulerName": scheduler, "nodeSelector": {"for": name}, "containers": [container]}
        metadata = {"name": name, "annotations": {"tracing.k8s.io/traceparent": TRACEPARENT}}
        pods = "/api/v1/namespaces/default/pods"
        return str(self.plane.api.create(pods, {"metadata": metadata, "spec": spec})["metadata"]["uid"])


@pytest.fixture(scope="module")
def cluster(start_control_plane: Callable[..., Any]) -> Iterator[Cluster]:
    plane = start_control_plane()
    for path in ("scheduler/rbac.yaml", "stock/rbac.yaml", "stock/scheduler-rbac.yaml"):
        for document in documents(KUBERNETES / path):
            plane.api.create(COLLECTIONS[document["kind"]], document)
    try:
        yield Cluster(plane)
    finally:
        plane.stop()


@contextmanager
def running(command: list[str], log: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Runs a process while entered; its log's path."""
    with log.open("wb") as out, ExitStack() as stack:
        process = subprocess.Popen(command, env={"PATH": "/usr/bin:/bin", **environment}, stdout=out, stderr=out)
        stack.callback(process.wait, DEADLINE)
        stack.callback(process.send_signal, signal.SIGINT)  # twice: nobody waits for what is inside
        stack.callback(process.send_signal, signal.SIGTERM)
        yield log


def podtrail(text: str, folder: Path, environment: Mapping[str, str], **sets: object) -> Any:
    """Runs podtrail with a configuration."""
    (folder / "podtrail.yaml").write_text(text)
    sets |= {key: shorter for key, shorter in SHORTER.items() if f" {key.rpartition('__')[2]}:" in text}
    command = [sys.executable, "-m", "podtrail", "run", "--config", str(folder / "podtrail.yaml")]
    for key, value in sets.items():
        command += ["--set", f"{key.replace('__', '.')}={value}"]
    return running(command, folder / "podtrail.log", environment)


def configured(path: Path, name: str, key: str = "config.yaml") -> str:
    (found,) = (each for each in documents(path) if each["kind"] == "ConfigMap" and each["metadata"]["name"] == name)
    return str(found["data"][key])


def told(roots: list[SpanView], name: str) -> list[SpanView]:
    return [root for root in roots if root.attributes["k8s.pod.name"] == name]


def check(roots: list[SpanView], uid: str, profile: str) -> None:
    """Two attempts of a Pod: uid, profile, and links to what created it and to the attempt before."""
    first, second = sorted(roots, key=lambda root: root.start)[:2]
    for root in (first, second):
        assert root.attributes["k8s.pod.uid"] == uid
        assert root.attributes["scheduler.profile"] == profile
    links = {link.attributes.get("podtrail.link.type"): link.trace_id.hex() for link in second.links}
    assert links["previous-attempt"] == first.trace_id.hex()
    assert CREATION in {link.trace_id.hex() for link in first.links}


def retried(cluster: Cluster, backend: Backend, pod: str, log: Path) -> list[SpanView]:
    """Returns the roots of two attempts of a Pod: a node that comes makes the second."""
    backend.until(lambda roots: len(told(roots, pod)) >= 1, log)
    cluster.plane.api.node(f"{pod}-comes", {"cpu": "1"}, labels={"for": pod})
    return told(backend.until(lambda roots: len(told(roots, pod)) >= 2, log), pod)


def variables(place: str) -> dict[str, str]:
    """What a manifest says itself of podtrail's environment."""
    (manifest,) = (each for each in beside_schedulers() if each.place == place)
    return {each["name"]: each["value"] for each in manifest.podtrail.get("env", ())}


class Beside(NamedTuple):
    """podtrail beside a stock kube-scheduler."""

    text: str
    environment: Mapping[str, str]
    pod: str
    """The scheduler's, as the kubelet names the folder of its log."""
    in_the_pod: bool
    """Who asks is the Pod's ServiceAccount."""
    profile: str = "default-scheduler"
    metrics: bool = False


def stock(name: str) -> Beside:
    room = KUBERNETES / "stock"
    if name == "static Pod":
        text = (room / "host" / "config.yaml").read_text()
        return Beside(text, variables("docker/kubernetes/stock/static-pod.yaml"), "kube-scheduler-node", False)
    if name == "Deployment":
        path = "docker/kubernetes/stock/deployment.yaml"
        text = configured(ROOT / path, "podtrail-stock")
        return Beside(text, variables(path), "kube-scheduler-2-5d4f-x2k", True, "kube-scheduler-2", metrics=True)
    text = (ROOT / "examples" / "stock-scheduler.yaml").read_text()
    return Beside(text, {}, "kube-scheduler-node", True, metrics=True)


@pytest.mark.parametrize("name", ["static Pod", "Deployment", "example"])
def test_beside_a_stock_scheduler(cluster: Cluster, backend: Backend, tmp_path: Path, name: str) -> None:
    beside, plane = stock(name), cluster.plane
    fields = {}
    if beside.profile != "default-scheduler":
        fields = yaml.safe_load(configured(KUBERNETES / "stock" / "deployment.yaml", beside.profile))
    log = plane.start_scheduler(fields, flags=("-v=3",))
    folder = tmp_path / "logs" / f"kube-system_{beside.pod}_0b5e-11" / "kube-scheduler"
    folder.mkdir(parents=True)
    (folder / "0.log").symlink_to(log)
    probes, metrics, otlp = free_ports(3)
    sets: dict[str, object] = {"service__telemetry__metrics__address": f"127.0.0.1:{metrics}"}
    if "viewer" in beside.text:
        sets["extensions__viewer__endpoint"] = "127.0.0.1:0"
    if "health_check" in beside.text:
        sets["extensions__health_check__endpoint"] = f"127.0.0.1:{probes}"
    receiver = "receivers__scheduler__kube_scheduler"
    text = beside.text.replace("/var/log/pods", str(tmp_path / "logs"))
    text = text.replace(":10259", f":{plane.scheduler_port}")
    if beside.in_the_pod:
        sets[f"{receiver}__kubernetes__auth_type"] = "kubeConfig"
        sets[f"{receiver}__kubernetes__kubeconfig"] = cluster.account("kube-scheduler-2", tmp_path)
        sets |= {f"{receiver}__metrics__token_file": tmp_path / "token"} if beside.metrics else {}
    else:
        text = text.replace("/etc/podtrail/kubeconfig", str(plane.user("podtrail")))
    addresses = {"OTEL_EXPORTER_OTLP_ENDPOINT": backend.endpoint, "LISTEN": f"127.0.0.1:{otlp}"}
    try:
        with podtrail(text, tmp_path, {**beside.environment, **addresses}, **sets) as said:
            pod = f"stock-{re.sub('[^a-z]', '', name.lower())}"
            uid = cluster.create(pod, beside.profile)
            check(retried(cluster, backend, pod, said), uid, beside.profile)
            assert '"level": "warning"' not in said.read_text()
    finally:
        plane.stop_one("kube-scheduler")


def test_beside_podtrails_own_scheduler(cluster: Cluster, backend: Backend, tmp_path: Path) -> None:
    place = "docker/kubernetes/scheduler/deployment.yaml"
    (manifest,) = (each for each in beside_schedulers() if each.place == place)
    (scheduler,) = manifest.others
    grpc_port, http, probes, metrics = free_ports(4)
    account = cluster.account("podtrail-scheduler", tmp_path)
    config = configured(KUBERNETES / "scheduler" / "config.yaml", "podtrail-scheduler")
    config = config.replace("localhost:4317", f"localhost:{grpc_port}")
    (tmp_path / "config.yaml").write_text(f"{config}clientConnection: {{kubeconfig: {account}}}\n")
    _, *flags = scheduler["args"]
    command = [sys.executable, "-m", "podtrail_scheduler.command.main", f"--config={tmp_path / 'config.yaml'}", *flags]
    sets = {
        "receivers__otlp__protocols__grpc__endpoint": f"localhost:{grpc_port}",
        "receivers__otlp__protocols__http__endpoint": f"localhost:{http}",
        "extensions__health_check__endpoint": f"localhost:{probes}",
        "extensions__viewer__endpoint": "localhost:0",
        "service__telemetry__metrics__address": f"localhost:{metrics}",
    }
    environment = variables(place) | {"OTEL_EXPORTER_OTLP_ENDPOINT": backend.endpoint}
    text = (ROOT / "docker" / "sidecar.yaml").read_text()
    with (
        podtrail(text, tmp_path, environment, **sets) as said,
        running([*command, "--secure-port=0"], tmp_path / "scheduler.log", {}),
    ):
        uid = cluster.create("ours", "podtrail-scheduler")
        check(retried(cluster, backend, "ours", said), uid, "podtrail-scheduler")
