"""How fast podtrail-scheduler empties a backlog on a real API server, next to the real kube-scheduler on the same.

etcd, API server and scheduler share this machine. Each scheduler is a process of its own with client limits raised
(5,000 requests a second), schedules the same Pods onto the same nodes, and is watched the same way: from the first Pod
that has a node to the last. Needs the binaries that tests/envtest/build.sh builds.
"""

import http.client
import json
import ssl
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from prometheus_client.parser import text_string_to_metric_families

from tests.envtest.control_plane import DEFAULT_ASSETS, HOST, ControlPlane
from tests.free_ports import free_ports

NODES = (100, 1_000, 5_000)
SIZE = {"cpu": "64", "memory": "256Gi", "pods": "250"}
PODS = 1_000
LIMITS = {"qps": 5000, "burst": 5000}
COLLECTION = "/api/v1/namespaces/default/pods"
DEADLINE = 300


class Bindings:
    """Watches Pods get their node; when the first and the last did."""

    def __init__(self, plane: ControlPlane, version: str, pods: int = PODS) -> None:
        self.count, self.first, self.last = 0, 0.0, 0.0
        self._plane, self._version, self._pods = plane, version, pods
        pki = plane.folder / "pki"
        self._tls = ssl.create_default_context(cafile=pki / "ca.crt")
        self._tls.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def rate(self) -> float:
        """Waits for all Pods; how many got a node a second."""
        self._thread.join(DEADLINE)
        assert self.count == self._pods, f"only {self.count} of {self._pods} Pods got a node"
        return (self.count - 1) / (self.last - self.first)

    def _watch(self) -> None:
        while self.count < self._pods:  # the API server hangs up on who is slow; go on where that was
            query = f"watch=true&fieldSelector=spec.nodeName!%3D&resourceVersion={self._version}"
            with closing(http.client.HTTPSConnection(HOST, self._plane.port, context=self._tls)) as connection:
                connection.request("GET", f"{COLLECTION}?{query}")
                self._read(connection.getresponse())

    def _read(self, answer: http.client.HTTPResponse) -> None:
        while self.count < self._pods and (line := answer.readline()):
            event = json.loads(line)
            self._version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] == "ADDED":
                self.count += 1
                self.last = time.monotonic()
                self.first = self.first or self.last


def pod(name: str, scheduler: str) -> dict[str, Any]:
    resources = {"requests": {"cpu": "10m", "memory": "10Mi"}}
    containers = [{"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": resources}]
    return {"metadata": {"name": name}, "spec": {"schedulerName": scheduler, "containers": containers}}


def quantile(text: str, share: float) -> float:
    """Milliseconds that `share` of the scheduled attempts took at most, from the histogram, as Prometheus does."""
    (family,) = (
        each
        for each in text_string_to_metric_families(text)
        if each.name == "scheduler_scheduling_attempt_duration_seconds"
    )
    buckets = [
        (float(sample.labels["le"]), sample.value)
        for sample in family.samples
        if sample.name.endswith("_bucket") and sample.labels["result"] == "scheduled"
    ]
    rank = share * buckets[-1][1]
    below, before = 0.0, 0.0
    for bound, count in buckets:
        if count >= rank:
            return (
                1e3 * (below + (bound - below) * (rank - before) / (count - before))
                if bound != float("inf")
                else 1e3 * below
            )
        below, before = bound, count
    return float("nan")


class Scheduler(NamedTuple):
    """One that runs: its process, and how to ask for its metrics."""

    process: psutil.Process
    metrics: Callable[[], str]

    def cpu(self) -> float:
        """Seconds of CPU that it has used."""
        times = self.process.cpu_times()
        return float(times.user + times.system)


@contextmanager
def ours(plane: ControlPlane, *flags: str) -> Iterator[Scheduler]:
    """podtrail-scheduler, with the defaults unless `flags` say otherwise."""
    (port,) = free_ports(1)
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(plane.kubeconfig), **LIMITS},
        "profiles": [{"schedulerName": "ours"}],
    }
    path = plane.folder / "ours.json"
    path.write_text(json.dumps(configuration))
    command = [sys.executable, "-m", "podtrail_scheduler.command.main", "--config", str(path)]
    with (plane.folder / "ours.log").open("wb") as log:
        command += [f"--secure-port={port}", f"--bind-address={HOST}", *flags]
        process = psutil.Popen(command, stdout=log, stderr=log)
    try:
        while not _answers(f"http://{HOST}:{port}/readyz"):
            assert process.poll() is None, (plane.folder / "ours.log").read_text()[-2000:]
            time.sleep(0.05)
        yield Scheduler(process, lambda: _answers(f"http://{HOST}:{port}/metrics"))
    finally:
        process.terminate()
        process.wait(DEADLINE)


def _answers(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


@contextmanager
def theirs(plane: ControlPlane) -> Iterator[Scheduler]:
    """kube-scheduler, with the defaults."""
    plane.start_scheduler({"profiles": [{"schedulerName": "theirs"}], "clientConnection": LIMITS}, ["-v=0"])
    try:
        yield Scheduler(psutil.Process(plane.pid("kube-scheduler")), lambda: str(plane.scheduler_get("/metrics")))
    finally:
        plane.stop_one("kube-scheduler")


SCHEDULERS: Mapping[str, Callable[[ControlPlane], AbstractContextManager[Scheduler]]] = {"ours": ours, "theirs": theirs}


class Figures(NamedTuple):
    """Pods bound a second, milliseconds of the scheduler's CPU a Pod, and how long attempts took in milliseconds."""

    rate: float
    cpu: float
    p50: float
    p99: float

    def __str__(self) -> str:
        return f"{self.rate:5.0f}/s {self.cpu:5.2f} ms CPU, p50 {self.p50:6.1f} p99 {self.p99:6.0f} ms"


def measure(plane: ControlPlane, name: str) -> Figures:
    """Has one scheduler empty the backlog. Its CPU is that beyond a start without any Pods."""
    with SCHEDULERS[name](plane) as scheduler:
        idle = scheduler.cpu()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: plane.api.create(COLLECTION, pod(f"{name}-{n}", name)), range(PODS)))
    bindings = Bindings(plane, plane.api.get(f"{COLLECTION}?limit=1")["metadata"]["resourceVersion"])
    with SCHEDULERS[name](plane) as scheduler:
        rate = bindings.rate()
        cpu = scheduler.cpu() - idle
        text = scheduler.metrics()
    plane.api.delete(COLLECTION)
    return Figures(rate, 1e3 * cpu / PODS, quantile(text, 0.5), quantile(text, 0.99))


def main() -> None:
    """Print rates and attempt times of both, and their ratio."""
    if not (DEFAULT_ASSETS / "kube-scheduler").is_file():
        sys.exit(f"needs etcd, kube-apiserver and kube-scheduler in {DEFAULT_ASSETS}: tests/envtest/build.sh")
    with tempfile.TemporaryDirectory() as folder:
        plane = ControlPlane(DEFAULT_ASSETS, Path(folder), apiserver=["--max-requests-inflight=4000"])
        plane.start()
        try:
            there = 0
            print(f"{PODS} Pods from a backlog")
            for nodes in NODES:
                with ThreadPoolExecutor(8) as pool:
                    list(pool.map(lambda n: plane.api.node(f"n{n}", SIZE), range(there, nodes)))
                there = nodes
                found = {name: measure(plane, name) for name in SCHEDULERS}
                for name, figures in found.items():
                    print(f"{nodes:6} nodes  {name:<7} {figures}", flush=True)
                ratio, cpu = found["ours"].rate / found["theirs"].rate, found["ours"].cpu / found["theirs"].cpu
                print(f"{nodes:6} nodes  ratio   {ratio:.2f} of the Pods a second, {cpu:.2f} of the CPU", flush=True)
        finally:
            plane.stop()
