"""The control groups of a node's Pods, below one that is named after the process whose node it is."""

import contextlib
import itertools
import os
import time
from pathlib import Path

from tests.envtest.control_plane import DEADLINE

_CGROUPS = Path("/sys/fs/cgroup")
_OWNER = "podtrail-node-"
_numbers = itertools.count(1)


def own_cgroup() -> str:
    """A name for one more of this process's nodes."""
    return f"{_OWNER}{os.getpid()}-{next(_numbers)}"


def _hierarchies() -> list[Path]:
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [each for each in _CGROUPS.iterdir() if (each / "cgroup.procs").exists() and not each.is_symlink()]


def make_cgroups(name: str) -> None:
    """Makes one in each hierarchy, and removes those that killed processes left behind."""
    for hierarchy in _hierarchies():
        for left in hierarchy.glob(f"{_OWNER}*"):
            if not Path("/proc", left.name.removeprefix(_OWNER).partition("-")[0]).exists():  # its tests were killed
                remove_cgroups(left.name)
        (hierarchy / name).mkdir(exist_ok=True)
        for part in ("cpuset.cpus", "cpuset.mems"):  # in version 1 a new cpuset is empty, and takes no process
            if hierarchy.name.startswith("cpuset"):
                (hierarchy / name / part).write_text((hierarchy / part).read_text())


def remove_cgroups(name: str) -> None:
    """Removes one with all below it."""
    end = time.monotonic() + DEADLINE
    for hierarchy in _hierarchies():
        while (hierarchy / name).exists() and time.monotonic() < end:
            for folder, _, _ in os.walk(hierarchy / name, topdown=False):
                with contextlib.suppress(OSError):  # busy for a moment after its last process
                    os.rmdir(folder)
            time.sleep(0.02)
