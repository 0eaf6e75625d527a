"""The `otlp_json_file` receiver: recordings read once or followed, nothing lost while the pipeline refuses."""

import asyncio
import errno
import gzip
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from podtrail_receivers.files.matching import matching
from podtrail_receivers.files.tail import Following, Tail
from podtrail_receivers.otlp_json_file import FACTORY, Config
from pydantic import ValidationError

from podtrail.component import Context, StartError
from podtrail.otlp import Group
from podtrail.otlp.json import read_json_request
from podtrail.recording import Record, RecordingWriter, read_recording
from tests.receivers.sink import Sink

REAL = Path(__file__).parents[1] / "data" / "recordings"


def receiver(context: Context | None = None, **settings: Any) -> Any:
    return FACTORY.create(FACTORY.Config.model_validate(settings), context or Context(id="otlp_json_file"))


async def read(sink: Sink, context: Context | None = None, **settings: Any) -> None:
    async with receiver(context, **settings) as source:
        await source.run(sink)


def line(number: int) -> bytes:
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x"}]}]}]}\n' % (number, number)


def group(number: int) -> Sequence[Group]:
    return read_json_request(line(number)).groups


def append(path: Path, *pieces: bytes) -> None:
    with path.open("ab") as file:
        file.writelines(pieces)


async def test_reads_a_real_recording_once_and_ends() -> None:
    sink, context = Sink(), Context(id="f")
    await read(sink, context, include=[str(REAL / "apiserver*.jsonl")])
    expected = [item for item in read_recording(REAL / "apiserver.otlp") if isinstance(item, Record)]
    assert [batch.groups for batch in sink.batches] == [record.intake.groups for record in expected]
    assert [batch.arrived for batch in sink.batches] == [record.arrival for record in expected]
    accepted = context.metrics.snapshot()["otelcol_receiver_accepted_spans"]
    assert accepted == {"receiver=f,transport=file": sum(batch.span_count for batch in sink.batches)}


async def test_reads_several_files_in_the_order_of_arrival(tmp_path: Path) -> None:
    for name, arrivals in (("a.otlp", [10, 40]), ("b.jsonl", [20, 30, 50])):
        with RecordingWriter(tmp_path / name) as writer:
            for arrival in arrivals:
                writer.write(group(arrival), arrival)
    sink = Sink()
    await read(sink, include=[str(tmp_path / "*")])
    assert sink.traces == [10, 20, 30, 40, 50]
    assert [batch.arrived for batch in sink.batches] == sink.traces


async def test_reads_files_without_arrivals_in_the_order_of_their_names_without_the_excluded(tmp_path: Path) -> None:
    for number, name in enumerate(["b.jsonl", "a.jsonl", "c.jsonl"]):
        append(tmp_path / name, line(number + 1))
    sink = Sink()
    await read(sink, include=[str(tmp_path / "*.jsonl")], exclude=[str(tmp_path / "c*")])
    assert sink.traces == [2, 1]


async def test_waits_while_the_pipeline_refuses_so_that_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    append(path, line(1), line(2), line(3))
    sink = Sink(refusals=5)
    await read(sink, include=[str(path)])
    assert sink.traces == [1, 2, 3]


async def test_damage_is_logged_with_its_line_counted_and_read_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "r.jsonl"
    append(path, line(1), b'{"resourceSpans": [{]}\n', line(3), line(4)[:40])
    sink, context = Sink(), Context(id="f")
    await read(sink, context, include=[str(path)])
    assert sink.traces == [1, 3]
    assert f"{path}:2: " in caplog.text
    assert f"{path}:4: " in caplog.text
    failed = context.metrics.snapshot()["podtrail_receiver_failed_requests_total"]
    assert failed == {"reason=malformed,receiver=f,transport=file": 2}


@pytest.mark.parametrize("following", [False, True])
def test_requests_of_other_signals_are_counted_and_skipped(tmp_path: Path, following: bool) -> None:
    others = b'{"resourceLogs":[]}\n', b'{"resourceMetrics":[]}\n{"resource_logs":[]}\n'
    append(tmp_path / "r.jsonl", others[0], line(1), others[1], line(2))
    if following:
        context = follow(lambda sink: sink.until_traces(1, 2), tmp_path)
    else:
        context = Context(id="f")
        asyncio.run(read(Sink(), context, include=[str(tmp_path / "r.jsonl")]))
    snapshot = context.metrics.snapshot()
    assert not snapshot["podtrail_receiver_failed_requests_total"]
    assert snapshot["otelcol_receiver_accepted_spans"] == {"receiver=f,transport=file": 2}
    assert snapshot["podtrail_receiver_other_signal_requests_total"] == {
        "receiver=f,signal=logs,transport=file": 2,
        "receiver=f,signal=metrics,transport=file": 1,
    }


async def test_a_file_that_vanished_since_the_start_costs_itself_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number, name in enumerate(["a.jsonl", "b.jsonl"], 1):
        append(tmp_path / name, line(number))
    sink = Sink()
    async with receiver(include=[str(tmp_path / "*")]) as source:
        (tmp_path / "a.jsonl").unlink()
        await source.run(sink)
    assert sink.traces == [2]
    assert "can't be read on from here: No such file or directory" in caplog.text


async def test_an_invalid_span_is_rejected_alone_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    append(path, line(0), line(1))
    sink, context = Sink(), Context(id="f")
    await read(sink, context, include=[str(path)])
    assert sink.traces == [1]
    rejected = context.metrics.snapshot()["podtrail_receiver_rejected_spans_total"]
    assert rejected == {"receiver=f,transport=file": 1}


def test_a_missing_file_a_directory_and_an_empty_pattern_do_not_start(tmp_path: Path) -> None:
    for include, text in (
        (tmp_path / "missing.jsonl", "there is no file"),
        (tmp_path, "is a directory"),
        ("", "an empty path"),
        ("/dev/null", "is a device or pipe"),
        (tmp_path / "*.otlp", "no file matches"),
    ):
        with pytest.raises(StartError, match=text):
            asyncio.run(read(Sink(), include=[str(include)]))
    with pytest.raises(ValidationError):
        receiver(include=[])


def follow(
    play: Callable[[Sink], Awaitable[None]], path: Path, pattern: str = "*", start_at: str = "beginning"
) -> Context:
    """Run a following receiver while `play` writes and watches."""
    context = Context(id="f")

    async def main() -> None:
        sink = Sink()
        settings = {"include": [str(path / pattern)], "follow": True, "start_at": start_at, "poll_interval": "5ms"}
        async with receiver(context, **settings) as source:
            running = asyncio.create_task(source.run(sink))
            try:
                await play(sink)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())
    return context


def test_follows_a_growing_file_and_waits_for_the_rest_of_a_line(tmp_path: Path) -> None:
    async def play(sink: Sink) -> None:
        path = tmp_path / "r.jsonl"
        append(path, line(1), line(2)[:50])
        await sink.until_traces(1)
        append(path, line(2)[50:], line(3))
        await sink.until_traces(1, 2, 3)

    assert "podtrail_receiver_failed_requests_total" in (snapshot := follow(play, tmp_path).metrics.snapshot())
    assert snapshot["podtrail_receiver_failed_requests_total"] == {}


def test_follows_frames_of_protobuf(tmp_path: Path) -> None:
    async def play(sink: Sink) -> None:
        spare = tmp_path / "spare.jsonl"
        append(spare, line(1), line(2))
        records = [item for item in read_recording(spare) if isinstance(item, Record)]
        with RecordingWriter(tmp_path / "r.otlp") as writer:
            for number, record in enumerate(records):
                writer.write(record.intake.groups, 10)
                writer.flush()
                await sink.until_traces(*[1, 2][: number + 1])

    follow(play, tmp_path, "*.otlp")


def test_rotation_by_renaming_loses_and_doubles_nothing(tmp_path: Path) -> None:
    async def play(sink: Sink) -> None:
        path = tmp_path / "r.jsonl"
        append(path, line(1))
        await sink.until_traces(1)
        append(path, line(2))
        path.rename(tmp_path / "r-1.jsonl")
        await sink.until_traces(1, 2)
        append(path, line(3))
        await sink.until_traces(1, 2, 3)

    follow(play, tmp_path)


def test_a_file_renamed_away_is_read_to_its_end(tmp_path: Path) -> None:
    async def play(sink: Sink) -> None:
        path = tmp_path / "r.jsonl"
        append(path, line(1))
        await sink.until_traces(1)
        append(path, line(2))
        path.rename(tmp_path / "elsewhere")
        append(path, line(3))
        await sink.until_traces(1, 2, 3)

    follow(play, tmp_path, "*.jsonl")


def test_a_truncated_file_is_read_from_its_new_beginning(tmp_path: Path) -> None:
    async def play(sink: Sink) -> None:
        path = tmp_path / "r.jsonl"
        append(path, line(1), line(2))
        await sink.until_traces(1, 2)
        os.truncate(path, 0)
        append(path, line(3))
        await sink.until_traces(1, 2, 3)

    follow(play, tmp_path)


def test_starts_at_the_end_of_what_is_there_and_at_the_beginning_of_what_appears(tmp_path: Path) -> None:
    async def play(sink: Sink) -> None:
        append(tmp_path / "new.jsonl", line(7))
        await sink.until_traces(7)
        append(tmp_path / "old.jsonl", line(2))
        await sink.until_traces(7, 2)

    append(tmp_path / "old.jsonl", line(1))
    follow(play, tmp_path, start_at="end")


def test_compressed_files_are_read_once_when_they_appear(tmp_path: Path) -> None:
    async def play(sink: Sink) -> None:
        (tmp_path / "part").write_bytes(gzip.compress(line(1) + line(2)))
        (tmp_path / "part").rename(tmp_path / "r.jsonl.gz")
        await sink.until_traces(1, 2)
        append(tmp_path / "r.jsonl", line(3))
        await sink.until_traces(1, 2, 3)

    follow(play, tmp_path, "*.jsonl*")


def test_a_file_that_can_not_be_opened_is_logged_once_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, int | None]] = []
    reasons: dict[str, int] = {}

    def opened(path: Path, *, at_end: bool) -> Tail:
        if path.name in reasons:
            raise OSError(reasons[path.name], "no", str(path))
        return Tail(path, at_end=at_end)

    monkeypatch.setattr("podtrail_receivers.files.tail.Tail", opened)
    for name in ("good", "bad", "worse"):
        (tmp_path / name).touch()
    following: Following[Any] = Following(
        [str(tmp_path / "*")],
        (),
        lambda tail: Mock(tail=tail),
        lambda path, error: said.append((path.name, error.errno)),
    )
    bad, worse = {"bad": errno.EACCES}, {"worse": errno.EIO}
    for failing in (bad | worse, worse, {"worse": errno.EACCES}):
        reasons.clear()
        reasons.update(failing)
        for _ in range(3):
            following.look(at_end=False)
    following.abandon()
    assert said == [("bad", errno.EACCES), ("worse", errno.EIO), ("worse", errno.EACCES)]


@pytest.mark.parametrize(
    ("include", "exclude", "path", "read"),
    [
        ("kept.jsonl", (), "kept.jsonl", True),
        ("kept.jsonl", (), "./out/../kept.jsonl", True),
        ("*.jsonl", (), "kept.jsonl", True),
        ("*.jsonl", (), "out/kept.jsonl", False),
        ("out/**/*.jsonl", (), "out/kept.jsonl", True),
        ("out/**/*.jsonl", (), "out/a/b/kept.jsonl", True),
        ("out/*.jsonl", ("out/kept*",), "out/kept.jsonl", False),
        ("kept.jsonl", (), "other.jsonl", False),
        ("kept\0", (), "kept.jsonl", False),
        ("{a,out/{b,kept}}.jsonl", (), "out/kept.jsonl", True),
        ("[^a-j]ept.jsonl", (), "kept.jsonl", True),
        ("[^k]ept.jsonl", (), "kept.jsonl", False),
        ("out/*.jsonl", (), "out/.kept.jsonl", True),
        ("out/**", ("out/*.jsonl",), "out/a/kept.jsonl", True),
        ("out/**", ("kept.*",), "out/a/kept.jsonl", False),
        (r"\*ept.jsonl", (), "kept.jsonl", False),
        (r"\*ept.jsonl", (), "*ept.jsonl", True),
        ("kept[1].jsonl", (), "kept[1].jsonl", True),
    ],
)
def test_patterns_mean_files_as_in_the_collector_and_before_these_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, include: str, exclude: tuple[str, ...], path: str, read: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert Config(include=(include,), exclude=exclude).reads(path) is read
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).touch()
    found = [os.path.realpath(each) for each in matching([include] if "\0" not in include else [], exclude)]
    assert found == ([os.path.realpath(path)] if read else [])
