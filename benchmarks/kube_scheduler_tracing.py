"""CPU of an attempt of kube-scheduler with the instrumentation in Go: off, unsampled, 1 % and all sampled.

`./dev bench kube_scheduler_tracing [--nodes N] [--pods N] [--rounds N]`, on a real API server; needs what
`tests/envtest/build.sh` and `instrumentation/go/build.sh` build. The variants run in turns, each with its own Pods.
Off is the same binary without `--tracing-config`, which adds no hooks. A collector beside it drops the spans.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.built import BUILT
from tests.envtest.control_plane import DEFAULT_ASSETS, ControlPlane
from tests.scheduler.collector import Collector

_VARIANTS = {"off": None, "unsampled": 0, "1 %": 10_000, "all sampled": 1_000_000}
_BINARY = BUILT / "kube-scheduler-traced-1.37" / "podtrail-kube-scheduler"
_TICKS = os.sysconf("SC_CLK_TCK")


def _cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _attempts(plane: ControlPlane) -> float:
    lines = plane.scheduler_get("/metrics").splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("scheduler_schedule_attempts_total"))


def _run(plane: ControlPlane, folder: Path, endpoint: str, rate: int | None, pods: int, namespace: str) -> float:
    """Return the CPU microseconds of an attempt."""
    flags = []
    if rate is not None:
        file = folder / "tracing.yaml"
        gates = {"SchedulerTracing": True, "AsyncTraceContextPropagation": True}
        tracing = {"endpoint": endpoint, "samplingRatePerMillion": rate}
        kind = {"apiVersion": "podtrail/v1alpha1", "kind": "SchedulerTracing"}
        file.write_text(json.dumps(kind | {"featureGates": gates, "tracing": tracing}))
        flags = [f"--tracing-config={file}"]
    path = f"/api/v1/namespaces/{namespace}/pods"
    plane.api.namespace(namespace)
    fast = {"clientConnection": {"qps": 5000, "burst": 5000}}
    profile = {"profiles": [{"schedulerName": "bench"}]}
    spec = {
        "schedulerName": "bench",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "10m", "memory": "1Mi"}}}],
    }
    plane.start_scheduler(profile | fast, flags, binary=str(_BINARY))
    pid = plane.pid("kube-scheduler")
    began = _cpu(pid)
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(
            lambda number: plane.api.create(path, {"metadata": {"name": f"p-{number}"}, "spec": spec}), range(pods)
        ):
            pass
    while (attempts := _attempts(plane)) < pods:
        time.sleep(0.2)
    used = _cpu(pid) - began
    plane.stop_one("kube-scheduler")
    plane.api.delete(f"/api/v1/namespaces/{namespace}")
    plane.api.request("DELETE", path, {"gracePeriodSeconds": 0})
    return used / attempts * 1e6


def main(arguments: Sequence[str] = ()) -> int:
    """Run it."""
    reader = argparse.ArgumentParser(
        prog="./dev bench kube_scheduler_tracing", description=(__doc__ or "").partition("\n")[0]
    )
    reader.add_argument("--nodes", type=int, default=100)
    reader.add_argument("--pods", type=int, default=1_000)
    reader.add_argument("--rounds", type=int, default=3)
    options = reader.parse_args(arguments)
    if not _BINARY.exists() or not (DEFAULT_ASSETS / "kube-apiserver").exists():
        print("Build them first: tests/envtest/build.sh and instrumentation/go/build.sh", file=sys.stderr)
        return 2
    os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "1000"
    found: dict[str, list[float]] = {name: [] for name in _VARIANTS}
    with tempfile.TemporaryDirectory(prefix="podtrail-bench-") as name:
        folder, collector = Path(name), Collector()
        plane: Any = ControlPlane(DEFAULT_ASSETS, folder)
        try:
            plane.start()
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda number: plane.api.node(f"n-{number}", {"pods": "1000"}), range(options.nodes)))
            for number in range(options.rounds):
                for variant, rate in _VARIANTS.items():
                    namespace = f"r{number}-{variant.split()[0]}"
                    found[variant].append(_run(plane, folder, collector.endpoint, rate, options.pods, namespace))
        finally:
            plane.stop()
            collector.stop()
    base = statistics.median(found["off"])
    print(f"{options.nodes} nodes, {options.pods} Pods, median of {options.rounds}: CPU µs of an attempt, ratio to off")
    for variant, values in found.items():
        median = statistics.median(values)
        print(f"  {variant:<12} {median:8.0f}  {median / base:.3f}   ({', '.join(f'{value:.0f}' for value in values)})")
    return 0
