"""Who waits for the disk waits together: what comes while it writes is written, and forced onto it, at once."""

import asyncio
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from podtrail.storage import Entry, Journal, SystemDisk

SENDERS = 64


class SlowDisk(SystemDisk):
    """A disk that stands still over its first write until it is told to go on, and counts."""

    def __init__(self) -> None:
        self.writes: Counter[str] = Counter()
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def write(self, handle: int, offset: int, pieces: Sequence[bytes | memoryview]) -> None:
        """Write."""
        self.writes["write"] += 1
        self.reached.set()
        assert self.go_on.wait(120)
        super().write(handle, offset, pieces)

    def sync(self, handle: int) -> None:
        """Sync."""
        self.writes["sync"] += 1
        super().sync(handle)


@pytest.mark.parametrize("fsync", [False, True])
async def test_an_acknowledgement_waits_for_one_write_however_many_wait(tmp_path: Path, fsync: bool) -> None:
    disk = SlowDisk()
    journal = Journal(tmp_path / "store", disk, fsync=fsync)
    await journal.open()
    opened = disk.writes.copy()
    first = asyncio.create_task(journal.commit([Entry(1, note=b"first")]))
    assert await asyncio.to_thread(disk.reached.wait, 30)
    others = [asyncio.create_task(journal.commit([Entry(1, note=b"%d" % at)])) for at in range(SENDERS)]
    await asyncio.sleep(0)
    assert not first.done()
    disk.go_on.set()
    await asyncio.gather(first, *others)
    assert disk.writes - opened == Counter(write=2, sync=2 * fsync)
    await journal.close()


async def test_nobody_is_answered_before_the_disk_has_it(tmp_path: Path) -> None:
    disk = SlowDisk()
    journal = Journal(tmp_path / "store", disk)
    await journal.open()
    commit = asyncio.create_task(journal.commit([Entry(1, note=b"a")]))
    assert await asyncio.to_thread(disk.reached.wait, 30)
    await asyncio.sleep(0)
    assert not commit.done()
    disk.go_on.set()
    await commit
    await journal.close()
