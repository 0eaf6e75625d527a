"""Segments are recordings: every command that reads recordings reads a store, notes and padding and all."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import write_request
from podtrail.recording import Damage, Record, read_recording
from podtrail.storage import Entry, Journal, SystemDisk

ROOT = Path(__file__).parents[2]
SCHEDULER = ROOT / "tests" / "data" / "recordings" / "scheduler.otlp.gz"


@pytest.fixture(scope="module")
def recorded() -> list[Record]:
    found = list(read_recording(SCHEDULER))
    return [item for item in found if isinstance(item, Record)]


async def stored(folder: Path, recorded: list[Record]) -> Path:
    """A store of several segments with what a recording has, and notes."""
    journal = Journal(folder, SystemDisk(), largest_segment=30_000)
    await journal.open()
    for number, record in enumerate(recorded):
        await journal.commit([Entry(0, write_request(record.intake.groups), record.arrival)])
        journal.add(Entry(1, note=b"delivered %d" % number))
        journal.add(Entry(2, note=b"\n\x10" + bytes(300)))
    await journal.close()
    return folder


def podtrail(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


async def test_a_store_is_read_as_the_recording_that_it_took(tmp_path: Path, recorded: list[Record]) -> None:
    folder = await stored(tmp_path / "store", recorded)
    assert len(list(folder.iterdir())) > 3
    found = list(read_recording(folder))
    assert not [item for item in found if isinstance(item, Damage)]
    assert [(item.arrival, item.intake) for item in found if isinstance(item, Record)] == [
        (record.arrival, record.intake) for record in recorded
    ]


async def test_commands_say_of_a_store_what_they_say_of_the_recording(tmp_path: Path, recorded: list[Record]) -> None:
    folder = await stored(tmp_path / "store", recorded)
    files = sorted(folder.glob("*.otlp"))
    configured = ("--config", ROOT / "pipeline.yaml", "--json")
    for command in (("recording", "stat", "--json"), ("replay", *configured), ("why", "pod", "costly-0", "--from")):
        expected = podtrail(*command, SCHEDULER)
        assert expected.exit_code == 0, expected.output
        for typed in ([folder], files):
            if command[0] == "why" and typed == files:
                continue
            answered = podtrail(*command, *typed)
            assert (answered.exit_code, without_size(answered.stdout)) == (0, without_size(expected.stdout))


def without_size(said: str) -> object:
    if not said.startswith("{"):
        return said
    return {key: value for key, value in json.loads(said).items() if key != "fileBytes"}


async def test_a_store_is_cut_merged_and_anonymized(tmp_path: Path, recorded: list[Record]) -> None:
    folder = await stored(tmp_path / "store", recorded)
    for command in (("merge",), ("cut", "--pod", "default/costly-0"), ("anonymize",)):
        to = tmp_path / f"{command[0]}.otlp"
        done = podtrail("recording", *command, folder, "--to", to)
        assert done.exit_code == 0, done.output
        assert [item for item in read_recording(to) if isinstance(item, Record)]


def test_a_folder_without_recordings_is_told(tmp_path: Path) -> None:
    done = podtrail("recording", "stat", tmp_path)
    assert (done.exit_code, done.stderr) == (2, f"podtrail: {tmp_path}: there is no recording in this folder\n")


async def test_damage_in_a_segment_is_told_with_its_place(tmp_path: Path, recorded: list[Record]) -> None:
    folder = await stored(tmp_path / "store", recorded)
    [first, *_] = sorted(folder.glob("*.otlp"))
    content = bytearray(first.read_bytes())
    content[52:60] = bytes(8)
    first.write_bytes(content)
    done = podtrail("recording", "stat", folder)
    assert done.exit_code == 0
    assert f"podtrail: skipped {first} at byte 52" in done.stderr
