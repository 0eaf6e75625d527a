"""Namespaces in which a node runs: its own network, mounts and processes, that end with the process that made them."""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.envtest.control_plane import DEADLINE

# With SIGCHLD ignored the first process of a PID namespace need not collect the orphans that shims leave to it.
_FIRST_PROCESS = """
set -e
trap '' CHLD
ip link set lo up
mount --make-rshared /
for folder in /run /var/lib /var/log; do mount -t tmpfs -o mode=0755 enclosure $folder; done
mkdir /run/lock
echo ready
exec sleep infinity
"""
_CLONE_NEWNET = 0x40000000


class EnclosedProcess(subprocess.Popen[bytes]):
    """A process of an enclosure. nsenter, our own child, hands on no signal, so the process gets it directly."""

    def send_signal(self, sig: int) -> None:
        """Signals the process itself."""
        for pid in _children(self.pid):
            with contextlib.suppress(ProcessLookupError):  # ended meanwhile
                os.kill(pid, sig)


class Enclosure:
    """A network with nothing but a loopback, a PID namespace, and mounts with /run, /var/lib and /var/log empty.

    The device manager's socket and the links to containers' logs have fixed places there, and no other kubelet is to
    meet them. When it is closed, or the process that made it is killed, all that runs and is mounted in it goes.
    """

    def __init__(self) -> None:
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        namespaces = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]
        self._process = subprocess.Popen(
            [*leash, "unshare", *namespaces, "sh", "-c", _FIRST_PROCESS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        if self._process.stdout.readline() != b"ready\n":
            said = self._process.stderr.read().decode(errors="replace")
            self.close()
            raise OSError(f"no namespaces of one's own: {said.strip()}")
        (self.pid,) = _children(self._process.pid)

    @contextlib.contextmanager
    def network(self) -> Iterator[None]:
        """The caller's thread, and the processes and threads that it starts, are in the enclosure's network."""
        with open("/proc/thread-self/ns/net", "rb") as before, open(f"/proc/{self.pid}/ns/net", "rb") as own:
            _enter(own)
            try:
                yield
            finally:
                _enter(before)

    def start(
        self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
    ) -> EnclosedProcess:
        """Starts a process in all of its namespaces."""
        with log.open("ab") as out:
            return EnclosedProcess(
                self._command(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env={**os.environ, **(environment or {})},
            )

    def run(self, *command: str | Path) -> str:
        """Runs a command in all of its namespaces to its end.

        Raises:
            OSError: It failed; with what it said.
        """
        done = subprocess.run(self._command(command), capture_output=True, text=True, timeout=DEADLINE)
        if done.returncode != 0:
            raise OSError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
        return done.stdout

    def close(self) -> None:
        """Ends everything in it."""
        if self._process.poll() is None:
            self._process.kill()  # unshare blocks the gentler ones; its child, and so the namespace, goes with it
        self._process.wait(DEADLINE)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def _command(self, command: Sequence[str | Path]) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--pid", "--", *map(str, command)]


def why_not() -> str:
    """What hinders this process from making an enclosure; empty if nothing does."""
    if not hasattr(signal, "SIGCHLD") or not Path("/proc/self/ns/net").exists():
        return "Linux"
    if os.geteuid() != 0:
        return "root"
    missing = [name for name in ("unshare", "nsenter", "ip", "mount") if shutil.which(name) is None]
    if missing:
        return ", ".join(missing)
    try:
        Enclosure().close()
    except OSError as error:
        return f"leave to make namespaces ({error})"
    return ""


def _enter(namespace: IO[bytes]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
