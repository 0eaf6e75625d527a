"""The recording exporter: what stands in the file is what came, when it came, whatever happens meanwhile."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from podtrail.component import Ledger, Metrics
from podtrail.component.registry import find
from podtrail.otlp import Batch
from podtrail.pipeline.sending import SendingQueue
from podtrail.recording import Damage, Record, read_recording
from tests.exporters.conftest import make_batch, make_exporter

NAMES = [f"r.{kind}{compressed}" for kind in ("jsonl", "otlp") for compressed in ("", ".gz", ".zst")]
START = 1_795_260_013_000_000_001


def read(path: Path) -> list[tuple[int, int]]:
    """Arrivals and numbers of spans; no damage may be there."""
    found: list[tuple[int, int]] = []
    for record in read_recording(path):
        assert isinstance(record, Record), str(record)
        assert record.timed
        found.append((record.arrival, sum(group.span_count for group in record.intake.groups)))
    return found


def write(exporter: Any, batches: Sequence[Batch]) -> None:
    async def main() -> None:
        async with exporter:
            for batch in batches:
                assert await exporter.send(batch) == 0

    asyncio.run(main())


@pytest.fixture
def batches() -> list[Batch]:
    """Three requests of one, two and three spans, a nanosecond apart."""
    return [replace(make_batch(spans), arrived=START + spans) for spans in (1, 2, 3)]


@pytest.mark.parametrize("name", NAMES)
def test_each_request_is_read_back_with_its_arrival(batches: list[Batch], tmp_path: Path, name: str) -> None:
    write(make_exporter("recording", path=str(tmp_path / "new" / name)), batches)
    assert read(tmp_path / "new" / name) == [(START + spans, spans) for spans in (1, 2, 3)]


@pytest.mark.parametrize("name", NAMES)
def test_what_a_crash_left_half_is_cut_off_and_the_rest_continued(
    batches: list[Batch], tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    write(make_exporter("recording", path=str(path)), batches)
    whole = path.read_bytes()
    path.write_bytes(whole[:-7])
    write(make_exporter("recording", path=str(path)), batches)
    assert [spans for _, spans in read(path)] == [1, 2, 1, 2, 3]


def test_a_second_start_may_empty_the_file(batches: list[Batch], tmp_path: Path) -> None:
    path = tmp_path / "r.otlp"
    for _ in range(2):
        write(make_exporter("recording", path=str(path), append=False), batches)
    assert len(read(path)) == 3


def test_files_are_rotated_by_size_and_no_more_kept_than_asked(tmp_path: Path) -> None:
    large = replace(make_batch(1, name="x" * 700_000), arrived=START)
    rotation = {"max_megabytes": 1, "max_backups": 2}
    write(make_exporter("recording", path=str(tmp_path / "r.otlp"), rotation=rotation), [large] * 6)
    assert len(list(tmp_path.iterdir())) == 3
    assert all(len(read(path)) == 1 for path in tmp_path.iterdir())


def test_files_are_rotated_by_time_with_the_first_request_that_is_due(batches: list[Batch], tmp_path: Path) -> None:
    rotation = {"interval": "1ns", "max_backups": 0}
    write(make_exporter("recording", path=str(tmp_path / "r.jsonl.zst"), rotation=rotation), batches)
    assert sorted(len(read(path)) for path in tmp_path.iterdir()) == [1, 1, 1]
    assert sorted(spans for path in tmp_path.iterdir() for _, spans in read(path)) == [1, 2, 3]


@pytest.mark.parametrize("name", ["r", "r.txt", "r.otlp.xz", "r.gz"])
def test_a_name_that_says_no_form_is_refused(name: str) -> None:
    factory = find("exporter", "recording")
    assert factory is not None
    with pytest.raises(ValidationError, match=r"ends in \.jsonl or \.otlp"):
        factory.Config.model_validate({"path": name})


async def test_requests_that_wait_for_the_disk_stay_apart_and_whole(tmp_path: Path) -> None:
    exporter = make_exporter("recording", path=str(tmp_path / "r.otlp"))
    large = replace(make_batch(3, name="x" * 300_000), arrived=START)
    small = [replace(make_batch(1), arrived=START + at) for at in range(50)]
    ledger = Ledger()
    log = logging.LoggerAdapter(logging.getLogger("podtrail.test"))

    async with exporter, SendingQueue(exporter, "recording", None, Metrics(), log) as queue:
        for batch in (large, *small):
            queue.offer(batch, ledger)
        await queue.drain(10)
    assert read(tmp_path / "r.otlp") == [(START, 3), *((START + at, 1) for at in range(50))]
    assert ledger.delivered == 53


def test_damage_in_what_is_continued_costs_the_old_file_its_name_only(batches: list[Batch], tmp_path: Path) -> None:
    path = tmp_path / "r.otlp.gz"
    write(make_exporter("recording", path=str(path)), batches)
    broken = bytearray(path.read_bytes())
    broken[20] ^= 0xFF
    path.write_bytes(bytes(broken))
    write(make_exporter("recording", path=str(path)), batches)
    (aside,) = (other for other in tmp_path.iterdir() if other != path)
    assert len(read(path)) == 3
    assert any(isinstance(item, Damage) for item in read_recording(aside))
