"""Processes that are forks of one that has loaded podtrail, in the manner of `subprocess.Popen`."""

import atexit
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tests.fork_server import HEADER

_SERVER = Path(__file__).parent / "fork_server.py"
cpu_seconds = [0.0]
"""What all forks that were waited for have used."""


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return this process' environment without what would reach into podtrail, with more."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "PYTHON"))} | dict(more)


@functools.cache
def _server(_: int) -> socket.socket:
    ours, its = socket.socketpair()
    with its:
        command = [sys.executable, str(_SERVER), str(its.fileno())]
        running = subprocess.Popen(command, pass_fds=[its.fileno()], env=environment({}), stdin=subprocess.DEVNULL)

    def end() -> None:
        ours.close()
        running.wait()

    atexit.register(end)
    return ours


class Fork:
    """A process, from its start to its end."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        files: tuple[int, int, int],
        *,
        umask: int | None = None,
        before: Sequence[Sequence[Any]] = (),
    ) -> None:
        """Start it.

        Args:
            command: `podtrail` or a path to it or to a file of Python, and the arguments.
            folder: Where it runs.
            environment: All its variables.
            files: Descriptors of its standard input, output and error.
            umask: If given, in place of this process' own.
            before: Modules by path, a function and its arguments each: called in the fork before the program.
        """
        self.returncode: int | None = None
        self._news, its = socket.socketpair()
        order = {
            "command": command,
            "folder": str(folder),
            "environment": dict(environment),
            "umask": umask,
            "before": before,
        }
        text = json.dumps(order).encode()
        with its:
            server = _server(os.getpid())
            socket.send_fds(server, [len(text).to_bytes(HEADER)], [its.fileno(), *files])
            server.sendall(text)
        sys.audit("subprocess.Popen", command[0], command, folder, environment)  # it counts as one that was started
        self._told = self._news.makefile("rb", buffering=0)
        self.pid: int = json.loads(self._told.readline())["pid"]

    def fileno(self) -> int:
        """Return a descriptor that can be read from when it has ended."""
        return self._news.fileno()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code."""
        if self.returncode is None:
            if not select.select([self._news], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            told = json.loads(self._told.readline())
            self.returncode = int(told["status"])
            cpu_seconds[0] += told["cpu"]
            self._told.close()
            self._news.close()
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it lives."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, if it lives."""
        self.send_signal(signal.SIGKILL)


class PipedFork(Fork):
    """One whose output and errors come as text."""

    def __init__(self, command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """Start it, with nothing to read."""
        out, err = os.pipe(), os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            super().__init__(command, folder, environment, (nothing, out[1], err[1]))
        finally:
            for fd in (nothing, out[1], err[1]):
                os.close(fd)
        self.stdout: IO[str] = os.fdopen(out[0], encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(err[0], encoding="utf-8")


class LoggedFork(Fork):
    """One whose errors go to the end of a file."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str], log: Path, **more: Any
    ) -> None:
        """Start it, with nothing to read; `more` as `Fork` takes it."""
        with log.open("ab") as said, Path(os.devnull).open("r+b") as nothing:
            super().__init__(command, folder, environment, (nothing.fileno(), nothing.fileno(), said.fileno()), **more)
