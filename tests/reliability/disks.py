"""Disks that can be filled under a process."""

import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.conftest import MIB, Process


class Tmpfs:
    """A file system that a filler fills."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filler = path / "filler"

    def fill(self, process: Process) -> None:
        with self._filler.open("wb") as file:
            try:
                while True:
                    file.write(bytes(MIB))
            except OSError:
                return

    def make_room(self, process: Process) -> None:
        self._filler.unlink()


class Limit:
    """A process that may not make a file any larger (RLIMIT_FSIZE), which needs no privileges."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, process: Process) -> None:
        resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

    def make_room(self, process: Process) -> None:
        unlimited = resource.RLIM_INFINITY, resource.RLIM_INFINITY
        resource.prlimit(process.popen.pid, resource.RLIMIT_FSIZE, unlimited)


@pytest.fixture
def disk(request: Any, tmp_path: Path) -> Iterator[Tmpfs | Limit]:
    """A disk that can be filled under a process: the parameter is `tmpfs` or `limit`."""
    place = tmp_path / "disk"
    place.mkdir()
    if request.param == "limit":
        yield Limit(place)
        return
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", place], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"needs to be root and allowed to mount a tmpfs: {mounted.stderr.strip()}")
    try:
        yield Tmpfs(place)
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)
