"""podtrail on a node as a user deploys it: the image, and the manifests of docker/kubernetes as they stand."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docker.manifests import ROOT
from tests.envtest.control_plane import DEADLINE
from tests.node.node import Node

IMAGE = "docker.io/library/podtrail:0.1.0"
"""What containerd takes the manifests' podtrail:0.1.0 for."""
BUILD_DEADLINE = 1800
"""Seconds that the image may take from empty caches, on a machine with other work."""


def podtrail_image() -> Path:
    """Returns the archive of the image of what is in the repository, which is built if it has changed since.

    Skips the test, saying what is missing, where it can't be.
    """
    inputs = ("docker/Dockerfile", "docker/slim.py", "docker/sidecar.yaml", "locks", "pyproject.toml")
    recipe = (ROOT / "docker" / "Dockerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY ([\w/.-]+) \1$", recipe, re.MULTILINE)
    found = subprocess.run(
        ["git", "ls-files", "-z", "--", *inputs, *copied], cwd=ROOT, check=True, capture_output=True, timeout=DEADLINE
    )
    digest = hashlib.sha256()
    for name in sorted(found.stdout.decode().split("\0")):
        if name and (ROOT / name).is_file():
            digest.update(name.encode() + b"\0" + (ROOT / name).read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podtrail"
    archive = cache / f"podtrail-{digest.hexdigest()[:16]}.tar"
    if not archive.exists():
        if not Path("/etc/debian_version").exists() or shutil.which("apt-get") is None:
            pytest.skip("building the image without a daemon needs Debian or Ubuntu, for debootstrap and buildah")
        for old in cache.glob("podtrail-*.tar"):
            old.unlink()
        part = archive.with_suffix(".part")
        built = subprocess.run(
            [ROOT / ".ci" / "image", part, IMAGE], capture_output=True, text=True, timeout=BUILD_DEADLINE
        )
        if built.returncode == os.EX_TEMPFAIL:
            pytest.skip(built.stderr.strip().splitlines()[-1])
        assert built.returncode == 0, built.stderr[-3000:]
        part.rename(archive)
    return archive


def rolled_out(node: Node, namespace: str, *workloads: str) -> None:
    """Returns when all Pods of the workloads are ready."""
    for name in workloads:
        node.kubectl("-n", namespace, "rollout", "status", name, f"--timeout={DEADLINE - 10}s")


@contextlib.contextmanager
def forwarded(node: Node, namespace: str, target: str, port: int) -> Iterator[str]:
    """The address at which a port of a Pod can be reached, as a user does it."""
    command = [str(node.assets / "kubectl"), f"--kubeconfig={node.kubeconfig}", "-n", namespace]
    with subprocess.Popen(
        [*command, "port-forward", target, f":{port}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", said)
        assert found, said
        try:
            yield f"http://127.0.0.1:{found[1]}"
        finally:
            process.terminate()
            process.wait(DEADLINE)


def fetched(url: str) -> bytes:
    """What is at an address."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        body: bytes = answer.read()
        return body


def pod_of(node: Node, namespace: str, app: str) -> Any:
    """The first Pod of a workload that is not going."""
    pods = node.api.get(f"/api/v1/namespaces/{namespace}/pods?labelSelector=app.kubernetes.io%2Fname%3D{app}")["items"]
    return next(each for each in pods if "deletionTimestamp" not in each["metadata"])
