"""A store of an earlier version is read, and gone on with."""

import shutil
from pathlib import Path

from podtrail.component import Metrics
from podtrail.storage import Entry, Journal, StorageInstruments, SystemDisk
from tests.storage import sample


async def test_a_store_of_format_1_is_read_and_continued(tmp_path: Path) -> None:
    folder = shutil.copytree(sample.FOLDER, tmp_path / "store")
    metrics = Metrics()
    journal = Journal(folder, SystemDisk(), instruments=StorageInstruments(folder, metrics))
    await journal.open()
    assert metrics.snapshot()["otelcol_extension_file_storage_damages"] == {}
    assert [entry for _, entry in journal.entries()] == sample.entries()
    assert [at.segment for at, _ in journal.entries()] == [1] * 6 + [2] * 4
    assert list(journal.saved()) == [(2, sample.STATE)]
    [new] = await journal.commit([Entry(1, note=b"and on")])
    assert new.segment == 3
    await journal.close()


async def test_what_is_written_today_is_what_was_written_then(tmp_path: Path) -> None:
    """A change of the format needs a version of its own: but for the marks, which are drawn, it is the same bytes."""
    await sample.write(tmp_path / "store")
    for path in sample.FOLDER.iterdir():
        assert len((tmp_path / "store" / path.name).read_bytes()) == len(path.read_bytes())
    assert (tmp_path / "store" / "00000002.state").read_bytes() == (sample.FOLDER / "00000002.state").read_bytes()
