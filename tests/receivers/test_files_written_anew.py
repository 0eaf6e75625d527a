"""Followed files that are written anew in place, or copied and truncated: every request is read, none twice."""

import asyncio
import gzip
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import zstandard
from podtrail_receivers.otlp_json_file import FACTORY

from podtrail.component import Context
from tests.receivers.sink import Sink

SAME_BEGINNING = b'{"resourceSpans":[{"resource":{"attributes":[{"key":"a","value":{"stringValue":"%s"}}]},' % (
    b"x" * 1200
)
SHORT = b'{"resourceSpans":[{'


def line(number: int, begin: bytes = SHORT) -> bytes:
    return begin + b'"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x"}]}]}]}\n' % (number, number)


def overwrite(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)


def truncate_and_write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@asynccontextmanager
async def following(folder: Path, pattern: str, sink: Sink, **settings: str) -> AsyncIterator[None]:
    config = {"include": [str(folder / pattern)], "follow": True, "poll_interval": "5ms", **settings}
    source = FACTORY.create(FACTORY.Config.model_validate(config), Context(id="f"))
    async with source:
        running = asyncio.create_task(source.run(sink))
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("write", [overwrite, truncate_and_write])
@pytest.mark.parametrize("begin", [SHORT, SAME_BEGINNING], ids=["short", "first-1000-bytes-are-the-same"])
async def test_a_file_overwritten_with_as_many_bytes_is_read_each_time(
    tmp_path: Path, write: Callable[[Path, bytes], None], begin: bytes
) -> None:
    path, sink = tmp_path / "r.jsonl", Sink()
    path.write_bytes(line(1, begin))
    async with following(tmp_path, "r.jsonl", sink):
        await sink.until_traces(1)
        for number in range(2, 6):
            write(path, line(number, begin))
            await sink.until_traces(*range(1, number + 1))


async def test_a_truncated_file_that_has_grown_beyond_where_reading_ended_is_read_whole(tmp_path: Path) -> None:
    path, sink = tmp_path / "r.jsonl", Sink()
    path.write_bytes(line(1))
    async with following(tmp_path, "r.jsonl", sink):
        await sink.until_traces(1)
        path.write_bytes(line(2) + line(3) + line(4))
        await sink.until_traces(1, 2, 3, 4)


@pytest.mark.parametrize("half", [b"", line(4, SAME_BEGINNING)[:1300]], ids=["whole-lines", "half-a-line"])
async def test_of_a_copy_only_what_was_not_read_before_the_truncation_is_read(tmp_path: Path, half: bytes) -> None:
    path, sink = tmp_path / "r.jsonl", Sink()
    path.write_bytes(line(1, SAME_BEGINNING) + line(2, SAME_BEGINNING) + half)
    async with following(tmp_path, "r.jsonl*", sink):
        await sink.until_traces(1, 2)
        with path.open("ab") as file:
            file.write(line(4, SAME_BEGINNING)[len(half) :])
        await sink.until_traces(1, 2, 4)
        shutil.copy(path, tmp_path / "part")
        os.truncate(path, 0)
        (tmp_path / "part").rename(tmp_path / "r.jsonl.1")
        with path.open("ab") as file:
            file.write(line(5, SAME_BEGINNING) + line(6, SAME_BEGINNING))
        await sink.until_traces(1, 2, 4, 5, 6)
        with (tmp_path / "r.jsonl.1").open("ab") as file:
            file.write(line(7, SAME_BEGINNING))
        await sink.until_traces(1, 2, 4, 5, 6, 7)


async def test_started_at_the_end_a_file_written_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, sink = tmp_path / "r.jsonl", Sink()
    path.write_bytes(line(1) + line(2))
    async with following(tmp_path, "r.jsonl", sink, start_at="end"):
        path.write_bytes(line(3) + line(4))
        await sink.until_traces(3, 4)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
async def test_a_compressed_file_is_read_as_it_grows_and_again_when_it_is_written_anew(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    path, sink = tmp_path / "r.jsonl.gz", Sink()
    path.touch()
    first = compress(b"".join(map(line, range(1, 200))))
    async with following(tmp_path, "r.*", sink):
        (tmp_path / "r.first").write_bytes(line(1000))  # once it is read, the empty file was looked at
        await sink.until_traces(1000)
        with path.open("ab", buffering=0) as file:
            for piece in (first[:2], first[2:100], first[100:], compress(line(200)), compress(line(201))[:9]):
                file.write(piece)
                if piece is first[100:]:
                    await sink.until_traces(1000, *range(1, 200))
            await sink.until_traces(1000, *range(1, 201))
            file.write(compress(line(201))[9:])
        await sink.until_traces(1000, *range(1, 202))
        path.write_bytes(compress(line(202)))
        await sink.until_traces(1000, *range(1, 203))
        shutil.copy(path, tmp_path / "part")
        (tmp_path / "part").rename(tmp_path / "r.copy.gz")
        overwrite(path, compress(line(203)))
        await sink.until_traces(1000, *range(1, 204))


@pytest.mark.parametrize("begin", [SHORT, SAME_BEGINNING], ids=["short", "first-1000-bytes-are-the-same"])
async def test_a_compressed_copy_of_a_file_is_read_behind_what_was_read_of_the_file(
    tmp_path: Path, begin: bytes
) -> None:
    path, sink = tmp_path / "r.jsonl", Sink()
    lines = [line(number, begin) for number in range(1, 30)]
    path.write_bytes(b"".join(lines[:20]))
    async with following(tmp_path, "r*", sink):
        await sink.until_traces(*range(1, 21))
        copy = gzip.compress(b"".join(lines[:22]))
        with (tmp_path / "r.jsonl.1.gz").open("wb", buffering=0) as file:
            file.write(copy[:50])
            (tmp_path / "r.other.gz").write_bytes(gzip.compress(b"".join(lines[22:])))
            await sink.until_traces(*range(1, 21), *range(23, 30))  # the copy has to end first
            file.write(copy[50:])
        await sink.until_traces(*range(1, 21), *range(23, 30), 21, 22)
