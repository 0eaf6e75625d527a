"""Real disks that are full, read-only or limited refuse, and nothing is acknowledged; then it goes on by itself."""

import asyncio
import logging
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podtrail.component import Metrics
from podtrail.storage import Entry, Journal, StorageError, StorageInstruments, SystemDisk
from tests.storage.keeping import number_of, numbered

KIB = 1024


def mount(*arguments: object) -> None:
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"needs to be root and allowed to mount a tmpfs: {done.stderr.strip()}")


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few hundred KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount("-t", "tmpfs", "-o", "size=400k", "tmpfs", place)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def limit() -> Iterator[Callable[[int], None]]:
    """Sets how large a file of this process may be."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Watched(StorageInstruments):
    """Tells when a disk takes again what is written."""

    def __init__(self, folder: Path) -> None:
        self.metrics = Metrics()
        super().__init__(folder, self.metrics)
        self._again = asyncio.Event()

    def recovered(self) -> None:
        super().recovered()
        self._again.set()

    async def until_it_goes_on(self) -> None:
        async with asyncio.timeout(120):
            await self._again.wait()


def journal_in(folder: Path) -> tuple[Journal, Watched]:
    watched = Watched(folder)
    return Journal(folder, SystemDisk(), instruments=watched), watched


async def commit_until_refused(journal: Journal) -> tuple[int, str]:
    """Return the number of entries that were taken, and why the next one was not."""
    for number in range(1_000):
        try:
            await journal.commit([Entry(1, note=numbered(number).note + bytes(8 * KIB))])
        except StorageError as error:
            return number, error.reason
    raise AssertionError("the disk is never full")


def numbers_in(journal: Journal) -> list[int]:
    return [number_of(Entry(1, note=entry.note.rstrip(b"\0"))) for _, entry in journal.entries()]


async def test_a_full_disk_refuses_and_says_so_once_and_goes_on_by_itself(
    small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "podtrail")
    journal, watched = journal_in(small / "store")
    await journal.open()
    filler = small / "filler"
    filler.write_bytes(bytes(150 * KIB))
    taken, reason = await commit_until_refused(journal)
    assert reason == f"can't write to {small}/store: No space left on device"
    assert taken > 10
    for _ in range(3):
        with pytest.raises(StorageError):
            await journal.commit([Entry(1, note=bytes(8 * KIB))])
    added = journal.add(Entry(1, note=b"1000" + bytes(8 * KIB)))
    told = watched.metrics.snapshot()
    assert told["otelcol_extension_file_storage_failing"] == {"extension=,storage=store": 1}
    assert told["otelcol_extension_file_storage_failures"]["extension=,operation=write,storage=store"] >= 4
    filler.unlink()
    await watched.until_it_goes_on()
    assert (await journal.read(added)).note.startswith(b"1000")
    await journal.commit([numbered(1001)])
    assert numbers_in(journal) == [*range(taken), 1000, 1001]
    assert watched.metrics.snapshot()["otelcol_extension_file_storage_failing"] == {"extension=,storage=store": 0}
    await journal.close()
    assert [record.getMessage() for record in caplog.records] == [
        f"{reason}; senders are asked to come again until there is room or the disk works",
        f"{small}/store takes what is written again",
    ]


async def test_room_that_is_made_by_forgetting_is_used(small: Path) -> None:
    journal, watched = journal_in(small / "store")
    await journal.open()
    taken, _ = await commit_until_refused(journal)
    segment = journal.cut()
    journal.forget(segment)
    await watched.until_it_goes_on()
    assert (await commit_until_refused(journal))[0] >= taken - 1
    assert numbers_in(journal)[0] == 0
    await journal.close()


async def test_a_read_only_disk_is_read_and_refuses_until_it_can_be_written_to(small: Path) -> None:
    journal, _ = journal_in(small / "store")
    await journal.open()
    await journal.commit([numbered(0)])
    await journal.close()
    mount("-o", "remount,ro", small)
    journal, watched = journal_in(small / "store")
    await journal.open()
    assert numbers_in(journal) == [0]
    with pytest.raises(StorageError, match="Read-only file system"):
        await journal.commit([numbered(1)])
    with pytest.raises(StorageError, match="Read-only file system"):
        await journal.save(1, [b"state"])
    mount("-o", "remount,rw", small)
    await watched.until_it_goes_on()
    await journal.commit([numbered(2)])
    assert numbers_in(journal) == [0, 2]
    await journal.close()


async def test_damage_on_a_read_only_disk_is_told_and_does_not_prevent_the_start(
    small: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal, _ = journal_in(small / "store")
    await journal.open()
    await journal.commit([numbered(0)])
    await journal.close()
    with (small / "store" / "00000001.otlp").open("ab") as file:
        file.write(b"\0\0\0\xf0half")
    mount("-o", "remount,ro", small)
    journal, _ = journal_in(small / "store")
    await journal.open()
    assert numbers_in(journal) == [0]
    assert "and can't be moved aside (Read-only file system)" in caplog.text
    await journal.close()


async def test_a_limit_of_file_sizes_is_the_size_of_segments(tmp_path: Path, limit: Callable[[int], None]) -> None:
    limit(50_000)
    journal, _ = journal_in(tmp_path / "store")
    await journal.open()
    for number in range(20):
        await journal.commit([Entry(1, note=numbered(number).note + bytes(8 * KIB))])
    with pytest.raises(StorageError, match="File too large"):
        await journal.commit([Entry(1, note=bytes(60_000))])
    await journal.commit([numbered(20)])
    assert numbers_in(journal) == [*range(21)]
    await journal.close()
    assert max(path.stat().st_size for path in (tmp_path / "store").iterdir()) <= 50_000


async def test_a_limit_that_comes_later_is_told_and_a_new_segment_goes_on(
    tmp_path: Path, limit: Callable[[int], None]
) -> None:
    journal, _ = journal_in(tmp_path / "store")
    await journal.open()
    await journal.commit([Entry(1, note=b"0" + bytes(60_000))])
    limit(60_000)
    with pytest.raises(StorageError, match="File too large"):
        await journal.commit([numbered(1)])
    await journal.commit([numbered(2)])
    assert numbers_in(journal) == [0, 2]
    await journal.close()
