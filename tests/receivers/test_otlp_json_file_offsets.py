"""The `otlp_json_file` receiver with `storage`: after a restart each file is gone on with where handing over ended."""

import asyncio
import gzip
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from podtrail_extensions.file_storage import FACTORY as FILE_STORAGE
from podtrail_receivers.otlp_json_file import FACTORY, Config

from podtrail.component import Context, registry
from tests.receivers.sink import Sink

PADDING = "x" * 1500
"""So that each request is longer than the bytes by which a file is known."""


def line(number: int) -> bytes:
    span = b'{"traceId":"%032x","spanId":"%016x","name":"%b"}' % (number, number, PADDING.encode())
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + span + b"]}]}]}\n"


def append(path: Path, *numbers: int) -> None:
    with path.open("ab") as file:
        file.writelines(map(line, numbers))


Play = Callable[[Sink], Awaitable[None]]


def live(folder: Path, play: Play, *, pattern: str = "*", **settings: Any) -> None:
    """Run a receiver while `play` writes and watches."""

    async def main() -> None:
        sink = Sink()
        store = {"directory": str(folder.with_name("store")), "create_directory": True}
        storage = FILE_STORAGE.create(FILE_STORAGE.Config.model_validate(store), Context(id="file_storage"))
        settings.setdefault("include", [str(folder / pattern)])
        config = FACTORY.Config.model_validate(
            {"follow": True, "poll_interval": "5ms", "storage": "file_storage", **settings}
        )
        source = FACTORY.create(config, Context(id="f"))
        async with storage:
            source.keep_in(storage)
            async with source:
                running = asyncio.create_task(source.run(sink))
                try:
                    await play(sink)
                finally:
                    running.cancel()
                    await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "in"
    made.mkdir()
    return made


def see_only_what_is_new(folder: Path) -> None:
    """Run a receiver that hands over a new file and nothing that was there."""

    async def play(sink: Sink) -> None:
        append(folder / "new.jsonl", 99)
        await sink.until_traces(99)

    live(folder, play)


def test_a_restart_goes_on_behind_what_was_handed_over(folder: Path) -> None:
    async def first(sink: Sink) -> None:
        append(folder / "r.jsonl", 1, 2)
        await sink.until_traces(1, 2)

    async def second(sink: Sink) -> None:
        await sink.until_traces(3)
        append(folder / "r.jsonl", 4)
        await sink.until_traces(3, 4)

    live(folder, first)
    append(folder / "r.jsonl", 3)
    live(folder, second)
    see_only_what_is_new(folder)


def test_half_a_line_at_the_end_is_read_whole_by_the_next(folder: Path) -> None:
    async def first(sink: Sink) -> None:
        append(folder / "r.jsonl", 1)
        with (folder / "r.jsonl").open("ab") as file:
            file.write(line(2)[:700])
        await sink.until_traces(1)

    async def second(sink: Sink) -> None:
        with (folder / "r.jsonl").open("ab") as file:
            file.write(line(2)[700:])
        await sink.until_traces(2)

    live(folder, first)
    live(folder, second)


def test_a_file_renamed_meanwhile_is_known_and_its_successor_read_whole(folder: Path) -> None:
    async def first(sink: Sink) -> None:
        append(folder / "r.jsonl", 1, 2)
        await sink.until_traces(1, 2)

    async def second(sink: Sink) -> None:
        await sink.until_traces(3, 4)

    live(folder, first)
    append(folder / "r.jsonl", 3)
    (folder / "r.jsonl").rename(folder / "r-1.jsonl")
    append(folder / "r.jsonl", 4)
    live(folder, second)


def test_a_file_renamed_out_of_the_pattern_is_read_to_its_end(folder: Path) -> None:
    async def first(sink: Sink) -> None:
        append(folder / "r.jsonl", 1)
        await sink.until_traces(1)

    async def second(sink: Sink) -> None:
        await sink.until_traces(2, 3)

    live(folder, first, pattern="*.jsonl")
    append(folder / "r.jsonl", 2)
    (folder / "r.jsonl").rename(folder / "r.jsonl.1")
    append(folder / "r.jsonl", 3)
    live(folder, second, pattern="*.jsonl")


@pytest.mark.parametrize("more", [(), (5, 6, 7)], ids=["shorter", "longer"])
def test_a_file_that_was_written_anew_is_read_from_its_beginning(folder: Path, more: tuple[int, ...]) -> None:
    async def first(sink: Sink) -> None:
        append(folder / "r.jsonl", 1, 2)
        await sink.until_traces(1, 2)

    async def second(sink: Sink) -> None:
        await sink.until_traces(4, *more)

    live(folder, first)
    os.truncate(folder / "r.jsonl", 0)
    append(folder / "r.jsonl", 4, *more)
    live(folder, second)


def test_a_copy_that_is_truncated_behind_it_is_not_read_again(folder: Path) -> None:
    async def first(sink: Sink) -> None:
        append(folder / "r.jsonl", 1, 2)
        await sink.until_traces(1, 2)

    async def second(sink: Sink) -> None:
        await sink.until_traces(3)

    live(folder, first)
    (folder / "r.jsonl.1").write_bytes((folder / "r.jsonl").read_bytes())
    os.truncate(folder / "r.jsonl", 0)
    append(folder / "r.jsonl", 3)
    live(folder, second)


def test_a_compressed_file_is_read_on_behind_what_was_handed_over(folder: Path) -> None:
    async def first(sink: Sink) -> None:
        (folder / "r.jsonl.gz").write_bytes(gzip.compress(line(1) + line(2)))
        await sink.until_traces(1, 2)

    async def second(sink: Sink) -> None:
        await sink.until_traces(3)

    live(folder, first)
    with (folder / "r.jsonl.gz").open("ab") as file:
        file.write(gzip.compress(line(3)))
    live(folder, second)
    see_only_what_is_new(folder)


def test_one_that_is_gone_is_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def first(sink: Sink) -> None:
        append(folder / "r.jsonl", 1)
        await sink.until_traces(1)

    live(folder, first)
    (folder / "r.jsonl").unlink()
    with caplog.at_level(logging.WARNING):
        see_only_what_is_new(folder)
    assert "r.jsonl is gone: what was written behind byte" in caplog.text


def test_start_at_end_counts_only_where_nothing_is_known(folder: Path) -> None:
    async def first(sink: Sink) -> None:
        append(folder / "r.jsonl", 2)
        await sink.until_traces(2)

    async def second(sink: Sink) -> None:
        await sink.until_traces(3)

    append(folder / "r.jsonl", 1)
    live(folder, first, start_at="end")
    append(folder / "other.jsonl", 3)
    live(folder, second, start_at="end")


def test_what_does_nothing_without_follow_causes_a_warning() -> None:
    given = {"start_at": "end", "poll_interval": "1s", "storage": "file_storage"}
    found = Config.model_validate({"include": ["a"], **given}).warnings()
    assert [path for path, _ in found] == [(key,) for key in given]
    assert all("has no effect without follow: true" in text for _, text in found)
    assert not Config.model_validate({"include": ["a"], "follow": True, **given}).warnings()


def test_under_its_older_name_it_follows_as_in_the_collector() -> None:
    factory: Any = registry.find("receiver", "otlpjsonfile")
    pasted = factory.Config.model_validate({"include": "a", "start_at": "beginning", "poll_interval": "500ms"})
    assert (pasted.follow, pasted.start_at, pasted.warnings()) == (True, "beginning", [])
    assert factory.Config.model_validate({"include": "a"}).start_at == "end"
    assert not factory.Config.model_validate({"include": "a", "follow": False}).follow
    assert not Config.model_validate({"include": "a"}).follow
    assert not factory.create(pasted, Context(id="otlpjsonfile")).finite
