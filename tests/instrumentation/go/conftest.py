"""podtrail-kube-scheduler, for each minor release that is built, on the control plane of the session."""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.built import BUILT
from tests.instrumentation.go.harness import Cluster
from tests.scheduler.collector import Collector

MINORS = ("1.35", "1.36", "1.37")


@pytest.fixture(params=MINORS)
def binary(request: pytest.FixtureRequest) -> str:
    path = BUILT / f"kube-scheduler-traced-{request.param}" / "podtrail-kube-scheduler"
    if not path.exists():
        pytest.skip(
            f"podtrail-kube-scheduler {request.param} is not built: instrumentation/go/build.sh {request.param}"
        )
    return str(path)


@pytest.fixture
def collector() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.stop()


@pytest.fixture
def namespace(control_plane: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    name = re.sub(r"[^a-z0-9]+", "-", f"go-{request.node.name}-{time.monotonic_ns() % 10**6}")[-50:].strip("-")
    control_plane.api.namespace(name)
    yield name
    for node in control_plane.api.get(f"/api/v1/nodes?labelSelector=for%3D{name}")["items"]:
        control_plane.api.delete(f"/api/v1/nodes/{node['metadata']['name']}")


@pytest.fixture
def start(
    control_plane: Any, binary: str, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Path]]:
    """Starts the scheduler for the Pods of the namespace, with a `tracing` section; returns its log."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    running = []

    def begin(
        tracing: Any,
        *flags: str,
        gates: Sequence[str] = ("SchedulerTracing", "AsyncTraceContextPropagation"),
        replica: str = "",
        **fields: Any,
    ) -> Path:
        file = tmp_path / "tracing.yaml"
        document = {"apiVersion": "podtrail/v1alpha1", "kind": "SchedulerTracing"}
        document |= {"featureGates": dict.fromkeys(gates, True)} | ({"tracing": tracing} if tracing is not None else {})
        file.write_text(json.dumps(document))
        log: Path = control_plane.start_scheduler(
            {"profiles": [{"schedulerName": namespace}], **fields},
            [f"--tracing-config={file}", *flags],
            binary=binary,
            replica=replica,
        )
        running.append(f"kube-scheduler-{replica}" if replica else "kube-scheduler")
        return log

    yield begin
    for name in set(running):
        with contextlib.suppress(KeyError):  # the test has stopped it
            control_plane.stop_one(name)


@pytest.fixture
def cluster(control_plane: Any, namespace: str) -> Cluster:
    return Cluster(control_plane.api, namespace)
