"""What was committed is there when the journal is opened again, in its order."""

from pathlib import Path

from podtrail.storage import Entry, Journal, Position, SystemDisk


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
