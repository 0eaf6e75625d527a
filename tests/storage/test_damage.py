"""Damaged folders: what can be read is used, the rest is moved aside, counted and told; nothing prevents a start."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from podtrail.component import Metrics
from podtrail.storage import Entry, Journal, StorageInstruments, SystemDisk
from podtrail.storage.segment import HEAD_SIZE, SegmentContent, head_frame, new_mark, write_frame
from tests.storage.keeping import FOLDER, Keeper, known_in, number_of, numbered
from tests.storage.power_loss import Inode, PowerLossDisk

SEGMENT = FOLDER / "00000001.otlp"
NUMBERS = range(5)


async def written() -> tuple[bytes, list[int]]:
    """The bytes of a segment with a few short entries, and where each of them ends."""
    disk = PowerLossDisk()
    journal = await Keeper(disk).open()
    for number in NUMBERS:
        await journal.commit([Entry(number % 2, b"\n\0" * number, number + 1, b"%d" % number)])
    await journal.close()
    content = bytes(disk.names_now[SEGMENT].content)
    ends = [frame.end for frame in SegmentContent(content).frames()]
    return content, ends


def disk_with(content: Mapping[str, bytes]) -> PowerLossDisk:
    disk = PowerLossDisk()
    disk.names_now = {FOLDER / name: Inode(bytearray(data), data) for name, data in content.items()}
    return disk


def aside(disk: PowerLossDisk) -> dict[str, bytes]:
    return {path.name: bytes(inode.content) for path, inode in disk.names_now.items() if path.suffix == ".damaged"}


class Opening:
    """A folder that is opened, and what is told of it."""

    def __init__(self, disk: PowerLossDisk) -> None:
        self.metrics = Metrics()
        self.journal = Journal(FOLDER, disk, instruments=StorageInstruments(FOLDER, self.metrics))

    async def numbers(self) -> list[int]:
        await self.journal.open()
        found = [number_of(entry) for _, entry in self.journal.entries()]
        await self.journal.close()
        return found

    def damages(self) -> dict[str, float]:
        told = self.metrics.snapshot().get("otelcol_extension_file_storage_damages", {})
        return {labels.split(",")[1].removeprefix("reason="): number for labels, number in told.items()}


async def test_a_flipped_byte_costs_no_more_than_the_entry_that_it_is_in() -> None:
    content, ends = await written()
    for at in range(len(content)):
        for flip in (0x01, 0x80, 0xFF):
            damaged = content[:at] + bytes([content[at] ^ flip]) + content[at + 1 :]
            disk = disk_with({SEGMENT.name: damaged})
            opening = Opening(disk)
            hit = sum(end <= at for end in ends) - 1
            found = await opening.numbers()
            assert set(found) >= set(NUMBERS) - {hit}, f"byte {at}"
            if len(found) < len(NUMBERS) or hit < 0:
                assert sum(opening.damages().values()) >= (hit >= 0), f"byte {at}: not told"
            assert sum(opening.damages().values()) <= 1
            again = Opening(disk)
            assert (await again.numbers(), again.damages()) == (found, {}), f"byte {at}: not mended"


async def test_a_file_that_is_cut_keeps_what_is_whole(caplog: pytest.LogCaptureFixture) -> None:
    content, ends = await written()
    for size in range(len(content)):
        disk = disk_with({SEGMENT.name: content[:size]})
        opening = Opening(disk)
        whole = sum(end <= size for end in ends) - 1
        assert await opening.numbers() == list(NUMBERS[: max(0, whole)])
        if size == 0:
            assert opening.damages() == {"torn": 1}
            assert f"{SEGMENT} is empty; what it held, if anything, is lost" in caplog.text
        elif size in ends:
            assert opening.damages() == {}
        elif size < HEAD_SIZE:
            assert sum(opening.damages().values()) == 1
        else:
            assert opening.damages() == {"torn": 1}
            begin = max(end for end in ends if end <= size)
            assert aside(disk) == {f"{SEGMENT.name}.{begin}.damaged": content[begin:size]}
            assert f"{SEGMENT}: {size - begin} bytes from byte {begin} on were never finished" in caplog.text
        again = Opening(disk)
        assert (await again.numbers(), again.damages()) == (list(NUMBERS[: max(0, whole)]), {})


async def test_bytes_that_are_gone_from_the_middle_cost_the_entries_that_they_were_in() -> None:
    content, ends = await written()
    for at in range(HEAD_SIZE, len(content)):
        for size in (1, 3, 50):
            hit = {number for number, end in enumerate(ends[1:]) if at < end and at + size > ends[number]}
            disk = disk_with({SEGMENT.name: content[:at] + content[at + size :]})
            found = await Opening(disk).numbers()
            again = Opening(disk)
            assert (await again.numbers(), again.damages()) == (found, {}), (at, size)
            # A zero that is gone may as well be one of the length behind: then that entry is the one.
            assert len(set(NUMBERS) - set(found)) <= len(hit), (at, size)


async def test_what_is_too_short_for_padding_is_mended_too() -> None:
    content, ends = await written()
    for size in range(1, 60):
        disk = disk_with({SEGMENT.name: content[: ends[1]] + bytes(size) + content[ends[1] :]})
        opening = Opening(disk)
        assert await opening.numbers() == list(NUMBERS)
        assert opening.damages() == {"damaged": 1}
        assert aside(disk) == {f"{SEGMENT.name}.{ends[1]}.damaged": bytes(size)}
        again = Opening(disk)
        assert (await again.numbers(), again.damages()) == (list(NUMBERS), {}), f"{size} bytes: not mended"


async def test_a_page_of_zeros_costs_the_entries_in_it_alone() -> None:
    content, ends = await written()
    for at in range(0, len(content) - 64, 16):
        hit = {number for number, end in enumerate(ends[1:]) if at < end and at + 64 > ends[number]}
        found = await Opening(disk_with({SEGMENT.name: content[:at] + bytes(64) + content[at + 64 :]})).numbers()
        assert set(found) >= set(NUMBERS) - hit, at


async def test_what_a_sender_put_into_a_span_never_passes_for_an_entry() -> None:
    """Not even where the entry that it came in is torn, and all behind it is looked through for entries."""
    forged = head_frame(new_mark()).replace(b"podtrail storage 0001", b"7") * 3
    disk = PowerLossDisk()
    journal = await Keeper(disk).open()
    await journal.commit([numbered(0)])
    await journal.commit([Entry(0, body=forged + (await written())[0] + bytes(200))])
    await journal.close()
    content = bytes(disk.names_now[SEGMENT].content)
    begin = content.index(forged)
    for torn in (content[:-70], content[: begin - 8] + bytes(99) + content[begin + 91 : -9]):
        assert await Opening(disk_with({SEGMENT.name: torn})).numbers() == [0]


async def test_a_missing_segment_is_told() -> None:
    keeper = Keeper(PowerLossDisk(), largest_segment=500)
    journal = await keeper.open()
    for number in range(30):
        await journal.commit([numbered(number)])
    await journal.close()
    disk = keeper.disk
    assert isinstance(disk, PowerLossDisk)
    gone = FOLDER / "00000003.otlp"
    lost = {number_of(entry) for at, entry in journal.entries() if at.segment == 3}
    del disk.names_now[gone]
    opening = Opening(disk)
    assert lost
    assert set(await opening.numbers()) == set(range(30)) - lost
    assert opening.damages() == {"missing": 1}


async def test_foreign_files_are_told_and_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    content, _ = await written()
    disk = disk_with({SEGMENT.name: content, "notes.txt": b"not ours", "1.otlp": b"nor this", "00000002.tmp": b"x"})
    opening = Opening(disk)
    assert await opening.numbers() == list(NUMBERS)
    assert opening.damages() == {"foreign": 2}
    assert f"{FOLDER}/notes.txt is no file of podtrail's; it is left alone" in caplog.text
    assert {path.name for path in disk.names_now} == {SEGMENT.name, "notes.txt", "1.otlp"}


@pytest.mark.parametrize("content", [b"x", b"{}\n" * 200, bytes(range(256)) * 9, b"\x00\x00\x00\x02\n\x00"])
async def test_a_segment_that_holds_something_else_is_moved_aside(content: bytes) -> None:
    good, _ = await written()
    disk = disk_with({SEGMENT.name: good, "00000002.otlp": content})
    opening = Opening(disk)
    assert await opening.numbers() == list(NUMBERS)
    assert opening.damages() == {"foreign": 1}
    assert aside(disk) == {"00000002.otlp.damaged": content}


async def test_a_segment_of_a_newer_version_is_moved_aside_whole(caplog: pytest.LogCaptureFixture) -> None:
    good, _ = await written()
    mark = SegmentContent(good).mark
    assert mark is not None
    newer = newer_head(mark) + good[HEAD_SIZE:]
    disk = disk_with({SEGMENT.name: good, "00000002.otlp": newer})
    opening = Opening(disk)
    assert await opening.numbers() == list(NUMBERS)
    assert opening.damages() == {"version": 1}
    assert aside(disk) == {"00000002.otlp.damaged": newer}
    assert "was written by a newer podtrail, in format 9999; this one reads formats up to 1" in caplog.text


def newer_head(mark: bytes) -> bytes:
    return b"".join(write_frame(Entry(255, note=b"podtrail storage 9999"), mark))


async def test_a_damaged_state_is_moved_aside_and_an_older_one_is_used() -> None:
    keeper = Keeper(PowerLossDisk())
    journal = await keeper.open()
    await journal.save(1, [b"[1, 2]"])
    await journal.close()
    disk = keeper.disk
    assert isinstance(disk, PowerLossDisk)
    state = bytes(disk.names_now[FOLDER / "00000001.state"].content)
    for at in range(len(state)):
        damaged = state[:at] + bytes([state[at] ^ 1]) + state[at + 1 :]
        for bad in (damaged, state[:at]):
            some = disk_with({"00000001.state": state, "00000002.state": bad})
            opening = Opening(some)
            await opening.numbers()
            assert sum(opening.damages().values()) == 1
            assert aside(some) == {"00000002.state.damaged": bad}
            assert list(opening.journal.saved()) == [(1, b"[1, 2]")]
            assert known_in(opening.journal) == {1, 2}


@pytest.mark.parametrize("name", ["999999999999999999.otlp", "999999999999999999.state", "99999999999999999.otlp"])
@pytest.mark.parametrize("valid", [True, False])
async def test_what_is_written_beside_a_name_of_the_highest_number_is_read_again(name: str, valid: bool) -> None:
    content, _ = await written()
    disk = disk_with({SEGMENT.name: content, name: content if valid else b"x" * 500})
    opening = Opening(disk)
    there = len(NUMBERS) * (1 + (valid and name.endswith(".otlp")))
    assert len(await opening.numbers()) == there
    for more in (1, 2):
        journal = Keeper(disk)
        opened = await journal.open()
        await opened.commit([numbered(99)])
        await opened.close()
        assert len(await Opening(disk).numbers()) == there + more


@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
async def test_a_segment_that_can_not_be_read_is_moved_aside(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "00000001.otlp"
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/etc/passwd")
    else:
        os.mkfifo(path)
    metrics = Metrics()
    journal = Journal(tmp_path, SystemDisk(), instruments=StorageInstruments(tmp_path, metrics))
    await journal.open()
    [position] = await journal.commit([numbered(1)])
    await journal.close()
    assert position.segment == 2
    assert sorted(os.listdir(tmp_path)) == ["00000001.otlp.damaged", "00000002.otlp"]


async def test_a_file_that_is_too_large_for_a_segment_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "00000001.otlp").touch()
    os.truncate(tmp_path / "00000001.otlp", 1 << 40)
    journal = Journal(tmp_path, SystemDisk())
    await journal.open()
    assert not list(journal.entries())
    await journal.close()
    assert os.listdir(tmp_path) == ["00000001.otlp.damaged"]


async def test_what_is_moved_aside_does_not_fill_the_disk() -> None:
    good, _ = await written()
    disk = disk_with({f"{number:08}.otlp": good[:-9] for number in range(1, 60)})
    assert len(await Opening(disk).numbers()) == 59 * (len(NUMBERS) - 1)
    assert len(aside(disk)) == 32
