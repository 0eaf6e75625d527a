"""What was committed is there when the journal is opened again, in its order."""

import asyncio
import os
import tracemalloc
from pathlib import Path

import pytest

from podtrail.storage import Entry, Journal, Position, SystemDisk, UnreadableEntry


async def opened(folder: Path, *, fsync: bool = False) -> Journal:
    journal = Journal(folder, SystemDisk(), fsync=fsync)
    await journal.open()
    return journal


def entry(text: str, kind: int = 1) -> Entry:
    return Entry(kind, body=b"", arrival=7, note=text.encode())


async def reopened(folder: Path) -> list[tuple[Position, Entry]]:
    journal = await opened(folder)
    found = list(journal.entries())
    await journal.close()
    return found


async def test_what_was_committed_is_read_in_its_order_after_a_restart(tmp_path: Path) -> None:
    journal = await opened(tmp_path / "store")
    first = await journal.commit([entry("a"), entry("b")])
    second = await journal.commit([entry("c")])
    await journal.close()
    found = await reopened(tmp_path / "store")
    assert [at for at, _ in found] == [*first, *second]
    assert [read.note for _, read in found] == [b"a", b"b", b"c"]


async def test_what_was_added_stands_where_it_was_promised(tmp_path: Path) -> None:
    journal = await opened(tmp_path / "store")
    places = [journal.add(entry("a")), journal.add(entry("b"))]
    assert (await journal.read(places[1])).note == b"b"
    [third] = await journal.commit([entry("c")])
    places.append(journal.add(entry("d")))
    await journal.flush()
    assert (await journal.read(third)).note == b"c"
    await journal.close()
    found = await reopened(tmp_path / "store")
    assert {at: read.note for at, read in found} == {places[0]: b"a", places[1]: b"b", third: b"c", places[2]: b"d"}


async def test_segments_before_a_cut_can_be_forgotten(tmp_path: Path) -> None:
    journal = await opened(tmp_path / "store")
    await journal.commit([entry("old")])
    segment = journal.cut()
    await journal.commit([entry("new")])
    await journal.save(segment, [b"state ", b"so far"])
    journal.forget(segment)
    await journal.close()
    journal = await opened(tmp_path / "store")
    assert [read.note for _, read in journal.entries()] == [b"new"]
    assert list(journal.saved()) == [(segment, b"state so far")]
    await journal.close()


async def test_a_segment_that_is_gone_while_it_is_used_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = await opened(tmp_path)
    [first] = await journal.commit([entry("a")])
    journal.cut()
    await journal.commit([entry("b")])
    (tmp_path / "00000001.otlp").unlink()
    assert [read.note for _, read in journal.entries()] == [b"b"]
    assert "00000001.otlp can't be read (No such file or directory); what it holds is not used" in caplog.text
    with pytest.raises(UnreadableEntry):
        await journal.read(first)
    await journal.close()


async def test_nothing_is_read_where_no_entry_begins(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    [first] = await journal.commit([entry("a")])
    for offset in (0, first.offset + 1, first.offset + 4_000):
        with pytest.raises(UnreadableEntry, match="nothing can be read in segment 1"):
            await journal.read(Position(1, offset))
    await journal.close()


async def test_an_entry_that_can_not_be_stored_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    for wrong in (Entry(256), Entry(0, arrival=-1), Entry(0, note=bytes(1 << 24))):
        with pytest.raises(ValueError, match="an entry can't be stored"):
            await journal.commit([entry("a"), wrong])
        with pytest.raises(ValueError, match="an entry can't be stored"):
            journal.add(wrong)
    await journal.commit([entry("b")])
    assert [read.note for _, read in journal.entries()] == [b"b"]
    await journal.close()


async def test_a_commit_that_nobody_waits_for_any_more_holds_nobody_up(tmp_path: Path) -> None:
    journal = await opened(tmp_path)
    given_up = asyncio.create_task(journal.commit([entry("a")]))
    await asyncio.sleep(0)
    given_up.cancel()
    await journal.commit([entry("b")])
    assert given_up.cancelled()
    assert [read.note for _, read in journal.entries()][-1:] == [b"b"]
    await journal.close()


async def test_segments_end_at_their_largest_size_and_a_larger_entry_has_one_of_its_own(tmp_path: Path) -> None:
    journal = Journal(tmp_path, SystemDisk(), largest_segment=10_000)
    await journal.open()
    sizes = [100, 9_000, 900, 50_000, 200, 9_800]
    places = [(await journal.commit([Entry(1, note=bytes(size))]))[0] for size in sizes]
    assert [place.segment for place in places] == [1, 1, 2, 3, 4, 5]
    assert journal.size == sum(file.stat().st_size for file in os.scandir(tmp_path))
    await journal.close()


async def test_reading_a_store_takes_the_memory_of_a_segment(tmp_path: Path) -> None:
    journal = Journal(tmp_path, SystemDisk(), largest_segment=1_000_000)
    await journal.open()
    for _ in range(300):
        await journal.commit([Entry(1, note=bytes(100_000))])
    await journal.close()
    tracemalloc.start()
    journal = Journal(tmp_path, SystemDisk(), largest_segment=1_000_000)
    await journal.open()
    assert sum(1 for _ in journal.entries()) == 300
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    await journal.close()
    assert most < 4_000_000 < journal.size
