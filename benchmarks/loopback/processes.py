"""Ports and processes of a run."""

import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

_LIMIT = 60.0
_SPAWN = get_context("spawn")


class Ports(NamedTuple):
    """Free ports of 127.0.0.1."""

    otlp: int
    sink: int
    spare: int


def free_ports() -> Ports:
    """Return ports that nobody listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in Ports._fields]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return Ports(*(each.getsockname()[1] for each in sockets))


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


def beside(stack: ExitStack, work: Callable[..., None], *arguments: object) -> Connection:
    """Start `work(*arguments, line)` in a process of its own; return our end of the line once it says "ready"."""
    ours, theirs = _SPAWN.Pipe()
    process = _SPAWN.Process(target=work, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    stack.callback(process.join, 10)
    assert ours.recv() == "ready"
    return ours
