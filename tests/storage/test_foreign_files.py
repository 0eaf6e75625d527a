"""Files in a store that others put there, or that are another journal's: none stops the start or costs memory."""

import tracemalloc
from pathlib import Path

import pytest

from podtrail.component import Metrics
from podtrail.pipeline.sending.recovery import find_batches
from podtrail.storage import Entry, Journal, StorageInstruments, SystemDisk
from tests.storage.test_damage import Opening, disk_with, written


@pytest.mark.parametrize("name", ["20261128.otlp", "99999999.otlp"])
async def test_a_file_whose_name_is_a_large_number_costs_no_memory(name: str) -> None:
    content, _ = await written()
    opening = Opening(disk_with({"00000001.otlp": content, name: content}))
    tracemalloc.start()
    try:
        found = await opening.numbers()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found == [0, 1, 2, 3, 4] * 2
    assert opening.damages() == {"missing": 100}
    assert peak < 5_000_000


async def test_an_entry_of_another_journals_kind_is_counted_and_the_queue_starts(tmp_path: Path) -> None:
    metrics = Metrics()
    journal = Journal(tmp_path, SystemDisk(), instruments=StorageInstruments(tmp_path, metrics))
    await journal.open()
    for kind, note in ((0, b"x"), (1, b""), (2, b"abc"), (2, b"\xff" * 9), (7, b"n" * 40)):
        await journal.commit([Entry(kind, b"", 1, note)])
    found = await find_batches(journal)
    await journal.close()
    assert list(found) == []
    damages = metrics.snapshot()["otelcol_extension_file_storage_damages"]
    assert sum(damages.values()) == 5
