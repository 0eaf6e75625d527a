"""What a store has left, given to a command as a recording: read, or told in words what it is instead."""

import asyncio
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.storage import Entry, Journal, SystemDisk

SAMPLE = Path(__file__).parents[1] / "data" / "stores" / "1"
NOTHING = "is a store in which nothing is undecided or undelivered"


def stat(path: Path) -> Result:
    return CliRunner().invoke(main, ["recording", "stat", str(path)])


def said(path: Path) -> str:
    result = stat(path)
    assert result.exit_code == 1
    assert not result.stdout
    return result.stderr


def test_what_a_store_holds_is_read_as_any_recording() -> None:
    result = stat(SAMPLE)
    assert result.exit_code == 0, result.output
    assert " spans" in result.stdout


def test_a_store_of_which_only_a_checkpoint_is_left_says_that_there_is_nothing(tmp_path: Path) -> None:
    shutil.copy(SAMPLE / "00000002.state", tmp_path)
    assert said(tmp_path) == f"podtrail: {tmp_path} {NOTHING}\n"


@pytest.mark.parametrize("whole", [True, False], ids=["folder", "segment"])
def test_a_store_that_has_only_notes_says_that_there_is_nothing(tmp_path: Path, whole: bool) -> None:
    async def write() -> None:
        journal = Journal(tmp_path, SystemDisk())
        await journal.open()
        await journal.commit([Entry(1, note=b"delivered")])
        await journal.close()

    asyncio.run(write())
    path = tmp_path if whole else tmp_path / "00000001.otlp"
    assert said(path) == f"podtrail: {path} {NOTHING}\n"


def test_a_whole_store_is_told_with_the_folders_in_it(tmp_path: Path) -> None:
    for name in ("pipelines", "exporter_otlp_grpc"):
        shutil.copytree(SAMPLE, tmp_path / name)
    (tmp_path / "podtrail.lock").touch()
    assert said(tmp_path) == (
        f"podtrail: {tmp_path} is a store, not a recording; folders in it are: exporter_otlp_grpc, pipelines\n"
    )


def test_a_checkpoint_is_told_from_a_recording() -> None:
    path = SAMPLE / "00000002.state"
    assert said(path) == f"podtrail: {path} is a checkpoint of a store, not a recording: its folder is one\n"


def test_a_folder_without_recordings_is_told_as_before(tmp_path: Path) -> None:
    result = stat(tmp_path)
    assert result.exit_code == 2
    assert "there is no recording in this folder" in result.stderr
