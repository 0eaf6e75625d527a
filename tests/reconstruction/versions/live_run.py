"""Runs of real kube-schedulers beside a real API server, written down as recordings."""

import gzip
import json
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from podtrail.reconstruction import read_attempts
from podtrail.reconstruction.metrics import leader_status
from tests.envtest.control_plane import ControlPlane
from tests.reconstruction.versions.matrix import LOUD, Quiet, Recording, Run, program
from tests.reconstruction.versions.watching import WATCHED, Watch
from tests.reconstruction.versions.workload import Workload, prepare, until

_QUIET: Final = 1.5
"""Seconds without an attempt or a line after which a scheduler is taken for idle."""
_OTHER_ZONE: Final = "Asia/Kolkata"
_HEADER: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ ([\w.]+):\d+\] ")
_REQUESTS: Final = (b"round_trippers.go", b"request.go", b"helper.go", b"reflector.go", b"type.go", b"flags.go")
"""Sources of lines that show requests, watches and flags, not attempts: hundreds of kilobytes at -v=10."""
_VERBOSITY: Final = b"FLAG: --v="
_LEVELS: Final = (2, 5, 0, 10, 2)
"""What `-v` is one after the other in the story `changed`."""


class Stage:
    """A control plane without Pods, in which the schedulers of one release run."""

    def __init__(self, plane: ControlPlane, minor: str) -> None:
        self._plane = plane
        self._minor = minor

    def play(self, recording: Recording, namespace: str) -> None:
        """Run schedulers as a recording says, and write it."""
        self._forget_lease()
        for log in self._plane.folder.glob("kube-scheduler*.log"):
            log.unlink()
        workload = Workload(self._plane.api, namespace)
        watches = {kind: Watch(self._plane.api, kind) for kind in WATCHED}
        schedulers = _Schedulers(self._plane, self._minor, recording.run)
        try:
            getattr(self, f"_{recording.run.story}")(workload, schedulers)
        finally:
            bound = workload.bound()
            schedulers.close()
            lines = {kind: watch.stop() for kind, watch in watches.items()}
            workload.close()
        recording.folder.mkdir(parents=True, exist_ok=True)
        for kind, each in lines.items():
            self._write(recording.watch(kind), "\n".join(each).encode())
        for name in schedulers.counted:
            self._write(recording.log(name), _without_requests((self._plane.folder / f"{name}.log").read_bytes()))
        counted = {name: dict(sorted(each.items())) for name, each in schedulers.counted.items()}
        quiet = schedulers.quiet._asdict()
        recording.truth.write_text(json.dumps({"counted": counted, "quiet": quiet, "bound": bound}, indent=1) + "\n")

    def _plain(self, workload: Workload, schedulers: "_Schedulers") -> None:
        schedulers.start("kube-scheduler")
        workload.all()
        schedulers.count("kube-scheduler")

    def _changed(self, workload: Workload, schedulers: "_Schedulers") -> None:
        schedulers.start("kube-scheduler")
        for number, level in enumerate(_LEVELS):
            schedulers.set_verbosity("kube-scheduler", level)
            workload.few(f"at-{number}-v{level}")
            schedulers.wait_until_idle("kube-scheduler")
        schedulers.count("kube-scheduler")

    def _handover(self, workload: Workload, schedulers: "_Schedulers") -> None:
        """The leader is killed; the next one ends in order, while the first runs again."""
        first, second = "kube-scheduler", "kube-scheduler-second"
        schedulers.start(first)
        schedulers.start(second)
        workload.few("first")
        schedulers.count(first)
        schedulers.stop(first, kill=True)
        workload.few("second")
        schedulers.count(second)
        schedulers.start(first, leads=False)
        schedulers.stop(second)
        workload.few("third")
        schedulers.count(first)

    def _turned(self, workload: Workload, schedulers: "_Schedulers") -> None:
        """The leader logs less and is killed; the next one logs all."""
        first, second = "kube-scheduler", "kube-scheduler-second"
        schedulers.start(first)
        schedulers.start(second)
        workload.few("loud")
        schedulers.wait_until_idle(first)
        schedulers.set_verbosity(first, 0)
        workload.few("quiet")
        schedulers.count(first)
        schedulers.stop(first, kill=True)
        workload.few("next")
        schedulers.count(second)

    def _forget_lease(self) -> None:
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        for lease in self._plane.api.get(leases)["items"]:
            if lease["metadata"]["name"] == "kube-scheduler":
                self._plane.api.delete(f"{leases}/kube-scheduler")

    def _write(self, path: Path, text: bytes) -> None:
        """Write a file without names of this machine."""
        text = text.replace(str(self._plane.folder).encode(), b"/etc/kubernetes")
        text = text.replace(socket.gethostname().encode(), b"control-plane-1")
        path.write_bytes(gzip.compress(text, 9, mtime=0))


class _Schedulers:
    """The schedulers of a run, by name, with what each counted."""

    def __init__(self, plane: ControlPlane, minor: str, run: Run) -> None:
        self._plane = plane
        self._program = program(minor)
        self._run = run
        self._running: set[str] = set()
        self._verbosity = run.verbosity
        self.counted: dict[str, Counter[str]] = {}
        self.quiet = Quiet("", Counter(), 0, 0)

    def start(self, name: str, *, leads: bool = True) -> None:
        """Start a scheduler; it leads if no other one does."""
        replica = name.removeprefix("kube-scheduler").removeprefix("-")
        flags = (f"-v={self._run.verbosity}", f"--logging-format={self._run.format}")
        with _environment("TZ", _OTHER_ZONE if replica else self._run.zone):
            election = {"leaderElection": {"leaderElect": True}}
            self._plane.start_scheduler(election, flags, replica=replica, binary=str(self._program))
        self._running.add(name)
        self.counted.setdefault(name, Counter())
        if leads and len(self._running) == 1:
            until(lambda: leader_status(self._page(name)), f"{name} leads")

    def count(self, name: str) -> None:
        """Add what a scheduler has counted since it started."""
        self.wait_until_idle(name)
        self.counted[name] += self._attempts(name)
        if self._verbosity < LOUD and self.quiet.scheduler in ("", name):
            self._end_quiet(name)

    def set_verbosity(self, name: str, level: int) -> None:
        """Have an idle scheduler log more or less from now on."""
        if level < LOUD:
            self.quiet = Quiet(name, self._attempts(name), time.time_ns(), 0)
        elif self._verbosity < LOUD:
            self._end_quiet(name)
        self._plane.scheduler_put("/debug/flags/v", level, scheduler=name)
        self._verbosity = level

    def _end_quiet(self, name: str) -> None:
        counted = self._attempts(name) - self.quiet.counted
        self.quiet = Quiet(name, counted, self.quiet.since, time.time_ns())

    def wait_until_idle(self, name: str) -> None:
        """Wait until neither its count nor its log of attempts changes."""
        since, last = time.monotonic(), self._attempts(name)

        def idle() -> bool:
            nonlocal since, last
            if (now := self._attempts(name)) != last:
                since, last = time.monotonic(), now
            return time.monotonic() - since > _QUIET

        until(idle, f"{name} is idle")

    def stop(self, name: str, *, kill: bool = False) -> None:
        """End a scheduler in order, or kill it."""
        self._plane.stop_one(name, kill=kill)
        self._running.discard(name)

    def close(self) -> None:
        """End all that run."""
        for name in sorted(self._running):
            self.stop(name)

    def _page(self, name: str) -> list[bytes]:
        return str(self._plane.scheduler_get("/metrics", scheduler=name)).encode().splitlines()

    def _attempts(self, name: str) -> Counter[str]:
        counted: Counter[str] = Counter()
        for each in read_attempts(self._page(name)):
            counted[each.result] += each.attempts
        return +counted


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _without_requests(log: bytes) -> bytes:
    kept, keeps = [], True
    for line in log.splitlines(keepends=True):
        if header := _HEADER.match(line):
            keeps = header[1] not in _REQUESTS
        if keeps or line.startswith(b"{") or _VERBOSITY in line:
            kept.append(line)
    return b"".join(kept)


__all__ = ["Stage", "prepare"]
