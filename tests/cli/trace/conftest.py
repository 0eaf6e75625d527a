"""A control plane whose API server is traced, and `podtrail trace` as a process."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.envtest.control_plane import DEADLINE, ControlPlane
from tests.scheduler.collector import Collector


@dataclass
class Done:
    """How a run ended."""

    code: int
    out: str
    told: str
    """On standard error."""

    @property
    def trace_id(self) -> bytes:
        """That was printed."""
        found = re.search(r"trace ([0-9a-f]{32}):", self.told)
        assert found, self.told
        return bytes.fromhex(found[1])


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    """Takes what the API server exports, and what podtrail does."""
    it = Collector()
    yield it
    it.stop()


@pytest.fixture(scope="session")
def plane(
    start_control_plane: Callable[..., ControlPlane], collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane whose API server is traced, with `alice`, who is no system:masters but may do everything."""
    path = tmp_path_factory.mktemp("tracing") / "tracing.json"
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
    path.write_text(json.dumps(kind | {"endpoint": collector.endpoint, "samplingRatePerMillion": 1_000_000}))
    it = start_control_plane(apiserver=[f"--tracing-config-file={path}"])
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    alice = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}
    bound = {"metadata": {"name": "alice"}, "roleRef": role, "subjects": [alice]}
    it.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", bound)
    yield it
    it.stop()


@pytest.fixture
def place(plane: ControlPlane, request: pytest.FixtureRequest) -> str:
    """A namespace for this test alone."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower()).strip("-")
    return plane.api.namespace(f"{name[-50:].strip('-')}-t")


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Starts `podtrail trace` with options and, behind `--`, a command, for `plane` if no other is named."""
    running: list[subprocess.Popen[str]] = []

    def it(*arguments: object, environ: Mapping[str, str] | None = None, **options: Any) -> "subprocess.Popen[str]":
        variables = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "KUBE"))}
        variables |= {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), **(environ or {})}
        if "KUBECONFIG" not in variables:
            variables["KUBECONFIG"] = str(request.getfixturevalue("plane").kubeconfig)
        process = subprocess.Popen(
            [sys.executable, "-m", "podtrail", "trace", *map(str, arguments)],
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        running.append(process)
        return process

    yield it
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def trace(start: Start) -> Callable[..., Done]:
    """Runs `podtrail trace` to its end."""

    def it(*arguments: object, **options: Any) -> Done:
        process = start(*arguments, **options)
        out, told = process.communicate(timeout=DEADLINE)
        return Done(process.returncode, out, told)

    return it


def until(read: Callable[[], Any]) -> Any:
    """What `read` returns once it is true."""
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        if found := read():
            return found
        time.sleep(0.02)
    raise AssertionError(f"still {read()!r}")


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    """A Pod as a manifest."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [{"name": "c", "image": "example.com/i:1"}]},
    }


def manifest(path: Path, *objects: Mapping[str, Any]) -> Path:
    """Objects in a file."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return path
