"""Ports and processes of a run."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.free_ports import free_ports as some_free_ports

_LIMIT = 60.0
_SPAWN = get_context("spawn")


class Ports(NamedTuple):
    """Free ports of 127.0.0.1."""

    otlp: int
    sink: int
    spare: int


def free_ports() -> Ports:
    """Return ports that stay free until somebody listens on them."""
    return Ports(*some_free_ports(len(Ports._fields)))


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has taken, user and system."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def memory_of(pid: int) -> tuple[int, int]:
    """Return the resident bytes of a process, and the most that they ever were."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = dict(re.findall(r"^Vm(RSS|HWM):\s+(\d+) kB", status, re.MULTILINE))
    return int(found["RSS"]) << 10, int(found["HWM"]) << 10


def answers(port: int) -> bool:
    """Say whether somebody listens."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when a process listens. SystemExit when it does not."""
    until = time.monotonic() + _LIMIT
    while not answers(port):
        if time.monotonic() > until or process.poll() is not None:
            raise SystemExit(f"nothing listens on port {port}: {process.args!r}")
        time.sleep(0.02)


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Have so many processes count, at the usual priority, meanwhile: a machine that others use."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def beside(stack: ExitStack, work: Callable[..., None], *arguments: object) -> Connection:
    """Start `work(*arguments, line)` in a process of its own; return our end of the line once it says "ready"."""
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=work, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    stack.callback(process.join, 10)
    assert ours.recv() == "ready"
    return ours
