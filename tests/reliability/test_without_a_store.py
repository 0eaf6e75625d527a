"""What podtrail promises where no store is configured: nothing is written, and nothing outlives the process."""

import os
import signal
from pathlib import Path
from typing import Any

from tests.reliability.conftest import Process, Sender, configuration, otlp_exporter

WAITING = {"tail_sampling": {"decision_wait": "1h", "policies": [{"name": "all", "type": "always_sample"}]}}


def written(process: Process) -> int:
    """Return the bytes that a process has handed to a disk, or is about to."""
    counters = Path(f"/proc/{process.popen.pid}/io").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in counters.splitlines() if line.startswith("write_bytes:"))


def files(process: Process) -> list[str]:
    """Return the files that a process has open for writing; what the tests read of it are pipes."""
    found = []
    for handle in Path(f"/proc/{process.popen.pid}/fd").iterdir():
        flags = (
            (handle.parent.parent / "fdinfo" / handle.name).read_text(encoding="ascii").split("flags:")[1].split()[0]
        )
        target = os.readlink(handle)
        if int(flags, 8) & (os.O_WRONLY | os.O_RDWR) and target.startswith("/") and not target.startswith("/dev/"):
            found.append(target)
    return found


def test_podtrail_writes_nothing_to_disk_unless_asked(start: Any, sender: Any, stalled: Any, tmp_path: Path) -> None:
    process = start(configuration({"otlp_grpc": otlp_exporter(stalled.port)}, WAITING)).ready()
    here: Sender = sender(process)
    assert here.send(here.next()).taken
    there, before = sorted(tmp_path.iterdir()), written(process)
    for _ in range(50):
        assert here.send(here.next(padding=10_000)).taken
    assert files(process) == []
    assert written(process) == before
    assert sorted(tmp_path.iterdir()) == there


def test_what_was_not_delivered_dies_with_the_process(start: Any, sender: Any, healthy: Any) -> None:
    config = configuration({"otlp_grpc": otlp_exporter(healthy.port)}, WAITING)
    process = start(config)
    here: Sender = sender(process)
    assert here.send(here.next()).taken
    process.tell(signal.SIGKILL)
    process.end()
    following = start(config)
    after: Sender = sender(following)
    after.next()
    assert after.send(after.next()).taken
    following.tell(signal.SIGTERM)
    assert following.end() == 0
    assert healthy.came == after.acknowledged
