"""The file exporter: what stands in the files, whatever happens meanwhile."""

import asyncio
import errno
import gzip
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from podtrail_exporters.file.log_file import LogFile

from podtrail.cli import main
from podtrail.component import Retryable, StartError
from podtrail.otlp import Batch, Verdict, write_request
from podtrail.otlp.json import read_json_request
from podtrail.testing import replay
from tests.exporters.conftest import make_batch, make_exporter

ROOT = Path(__file__).parents[2]
DEADLINE = 120.0
FORMS = [(format_, compression) for format_ in ("json", "proto") for compression in ("none", "gzip", "zstd")]


def unpacked(path: Path, compression: str) -> bytes:
    raw = path.read_bytes()
    match compression:
        case "gzip":
            return gzip.decompress(raw)
        case "zstd":
            with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as reader:
                return reader.read()
        case _:
            return raw


def requests(path: Path, form: str = "json", compression: str = "none") -> list[bytes]:
    """The requests in a file, as protobuf."""
    raw = unpacked(path, compression)
    if form == "json":
        assert raw == b"" or raw.endswith(b"\n")
        return [write_request(read_json_request(line).groups) for line in raw.splitlines()]
    found = []
    while raw:
        length = int.from_bytes(raw[:4], "big")
        found.append(raw[4 : 4 + length])
        assert len(found[-1]) == length
        raw = raw[4 + length :]
    return found


def write(exporter: Any, *batches: Batch) -> None:
    async def main() -> None:
        async with exporter:
            for batch in batches:
                assert await exporter.send(batch) == 0

    asyncio.run(main())


@pytest.mark.parametrize(("form", "compression"), FORMS)
def test_what_is_written_is_what_was_sent(tmp_path: Path, form: str, compression: str) -> None:
    path = tmp_path / "missing" / "data"
    batches = [make_batch(2), make_batch(3, groups=4)]
    write(make_exporter("file", path=str(path), format=form, compression=compression), *batches)
    assert requests(path, form, compression) == [write_request(batch.groups) for batch in batches]


def test_the_command_zstd_reads_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl.zst"
    write(make_exporter("file", path=str(path), compression="zstd"), *[make_batch()] * 9)
    try:
        out = subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout
    except FileNotFoundError:
        pytest.skip("needs the command zstd")
    assert len(out.splitlines()) == 9


def test_empties_the_file_unless_told_to_append(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    for append, expected in ((False, 1), (True, 2), (False, 1)):
        write(make_exporter("file", path=str(path), append=append), make_batch())
        assert len(requests(path)) == expected


@pytest.mark.parametrize(("form", "compression"), FORMS)
def test_a_message_cut_anywhere_is_removed_before_the_next(tmp_path: Path, form: str, compression: str) -> None:
    path = tmp_path / "data"
    settings = {"path": str(path), "format": form, "compression": compression, "append": True}
    write(make_exporter("file", **settings), make_batch(1))
    whole = path.read_bytes()
    write(make_exporter("file", **settings), make_batch(2))
    both = path.read_bytes()
    expected = [write_request(make_batch(n).groups) for n in (1, 3)]
    for cut in range(len(whole), len(both) - 1):
        path.write_bytes(both[:cut])
        write(make_exporter("file", **settings), make_batch(3))
        assert requests(path, form, compression) == expected, cut


def test_says_how_much_it_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{}\n{"resourceSpans":[')
    write(make_exporter("file", path=str(path), append=True), make_batch())
    assert f"cut 18 bytes of an unfinished message off the end of {path}" in caplog.text


def test_a_whole_last_line_without_its_line_feed_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(b'{"resourceSpans":[]}')
    write(make_exporter("file", path=str(path), append=True), make_batch())
    assert [len(json.loads(line)["resourceSpans"]) for line in path.read_text().splitlines()] == [0, 1]


def test_a_damaged_file_is_set_aside_and_not_destroyed(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl.zst"
    settings = {"path": str(path), "compression": "zstd", "append": True}
    write(make_exporter("file", **settings), make_batch(), make_batch())
    damaged = bytearray(path.read_bytes())
    second = len(damaged) // 2
    damaged[second : second + 4] = bytes(4)
    path.write_bytes(damaged)
    write(make_exporter("file", **settings), make_batch(4))
    assert requests(path, "json", "zstd") == [write_request(make_batch(4).groups)]
    (aside,) = set(tmp_path.iterdir()) - {path}
    assert aside.read_bytes() == damaged


@pytest.mark.parametrize("settings", [{"compression": "zstd"}, {"compression": "gzip"}, {"format": "proto"}], ids=str)
def test_never_appends_to_something_else(tmp_path: Path, settings: dict[str, str]) -> None:
    path = tmp_path / "diary.txt"
    path.write_text("Dear diary, today nothing was scheduled.\n")
    with pytest.raises(StartError, match=r"can't write .*diary.txt: it .*; move it away"):
        write(make_exporter("file", path=str(path), append=True, **settings))
    assert path.read_text().startswith("Dear diary")


@pytest.mark.parametrize(
    ("path", "create", "expected"),
    [
        ("", True, "Is a directory"),
        ("missing/data.jsonl", False, "No such file or directory: create the directory"),
        ("file/data.jsonl", True, "can't write .*file/data.jsonl"),
    ],
)
def test_a_path_that_cannot_be_written_is_an_error_at_the_start(
    tmp_path: Path, path: str, create: bool, expected: str
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StartError, match=expected):
        write(make_exporter("file", path=str(tmp_path / path), create_directory=create))


def test_when_one_of_two_files_cannot_be_opened_the_other_is_closed(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(StartError, match="Is a directory"):
        write(make_exporter("file", path=str(tmp_path / "data.jsonl"), decisions_path=str(tmp_path)))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_full_device_asks_for_another_try() -> None:
    with pytest.raises(Retryable, match="can't write /dev/full: No space left on device"):
        write(make_exporter("file", path="/dev/full"), make_batch())


LIMITED = """
import asyncio, resource, signal, sys
from podtrail.component import Context, Retryable
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header, Verdict
from podtrail_exporters.file import Config, create

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, decisions = sys.argv[1:]
span = encode_span(trace_id=bytes(15) + b"1", span_id=b"12345678", name="x" * 999, start=1, end=2)
group = Group(resource_header({}), scope_header("s"), bytes(15) + b"1", frame([span]), 1)
batch = Batch([group], 0, [Verdict(bytes(16), "dropped", "", "r" * 2000, 1, 1, 1)])

async def main():
    async with create(Config(path=path, decisions_path=decisions), Context(id="file")) as exporter:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        written = failed = 0
        while failed < 3:
            try:
                await exporter.send(batch)
                written += 1
            except Retryable as error:
                failed, said = failed + 1, str(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await exporter.send(batch)
        print(written + 1, said)

asyncio.run(main())
"""


def test_a_write_that_fails_half_way_is_taken_back_from_both_files(tmp_path: Path) -> None:
    data, decisions = tmp_path / "data.jsonl", tmp_path / "decisions.jsonl"
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED, data, decisions], check=True, capture_output=True, text=True
    ).stdout
    written, _, error = ran.strip().partition(" ")
    assert error.endswith("File too large")
    assert len(requests(data)) == int(written) > 3
    assert len([json.loads(line) for line in decisions.read_text().splitlines()]) == int(written)


KILLED = """
import asyncio, sys
from podtrail.component import Context
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail_exporters.file import Config, create

span = encode_span(trace_id=bytes(15) + b"1", span_id=b"12345678", name="x" * 200_000, start=1, end=2)
batch = Batch([Group(resource_header({}), scope_header("s"), bytes(15) + b"1", frame([span] * 5), 5)], 0)

async def main():
    async with create(Config(path=sys.argv[1], append=True), Context(id="file")) as exporter:
        while True:
            await exporter.send(batch)
            print("sent", flush=True)

asyncio.run(main())
"""


def test_a_killed_process_leaves_nothing_that_spoils_the_next(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    acknowledged = 0
    for round_ in range(4):
        process = subprocess.Popen([sys.executable, "-c", KILLED, path], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(3 + round_):
            assert process.stdout.readline() == "sent\n"
            acknowledged += 1
        process.kill()
        acknowledged += len(process.stdout.read().splitlines())
        process.wait()
        process.stdout.close()
    write(make_exporter("file", path=str(path), append=True), make_batch())
    assert len(requests(path)) >= acknowledged + 1


def test_begins_a_new_file_when_one_is_full_and_keeps_so_many(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    batches = [make_batch(1, name=str(n) * 400_000) for n in range(9)]
    write(make_exporter("file", path=str(path), rotation={"max_megabytes": 1, "max_backups": 2}), *batches)
    files = sorted(tmp_path.iterdir())
    assert files[-1] == path
    assert len(files) == 3
    assert all(file.stat().st_size <= 1 << 20 for file in files)
    kept = [request for file in files for request in requests(file)]
    assert kept == [write_request(batch.groups) for batch in batches[-len(kept) :]]
    for file in files[:-1]:
        assert file.name.startswith("data-20")
        assert file.suffix == ".jsonl"
        assert len(file.name) == len("data-2022-09-14T05-02-14.173.jsonl")


def test_removes_rotated_files_that_are_too_old_and_nothing_else(tmp_path: Path) -> None:
    old = tmp_path / "data-2022-09-14T05-02-14.173.json"
    others = [tmp_path / name for name in ("data-old.json", "more-2022-09-14T05-02-14.173.json", "data-2022.json")]
    young = tmp_path / "data-2999-01-01T00-00-00.000.json"
    for file in (old, young, *others):
        file.touch()
    write(make_exporter("file", path=str(tmp_path / "data.json"), rotation={"max_days": 7}), make_batch())
    assert not old.exists()
    assert all(file.exists() for file in (young, *others))


def test_writes_decisions_about_all_traces(tmp_path: Path) -> None:
    from podtrail.otlp import Group, encode_span, frame, resource_header, scope_header

    trace_id = bytes(15) + b"\x07"
    root = encode_span(
        trace_id=trace_id,
        span_id=b"12345678",
        name="SchedulePod",
        start=5,
        end=9,
        attributes={"k8s.pod.uid": "u-1", "k8s.namespace.name": "blue", "k8s.pod.name": "web-0"},
    )
    groups = [Group(resource_header({}), scope_header("s"), trace_id, frame([root]), 1)]
    verdicts = [
        Verdict(trace_id, "not_sampled", "", "no policy said yes", 7, 6, 1, {"failed": "not_sampled"}, groups),
        Verdict(bytes(15) + b"\x08", "sampled", "slow", "took 3 s", 8, 6, 4),
    ]
    data, decisions = tmp_path / "data.jsonl", tmp_path / "decisions.jsonl"
    exporter = make_exporter("file", path=str(data), decisions_path=str(decisions))
    assert exporter.wants_verdicts
    write(exporter, Batch([], 0, verdicts))
    assert data.read_bytes() == b""
    common = {"decidedAtUnixNano": "7", "arrivedAtUnixNano": "6"}
    first, second = (json.loads(line) for line in decisions.read_text().splitlines())
    assert first == {
        **common,
        "traceId": trace_id.hex(),
        "decision": "not_sampled",
        "policy": "",
        "reason": "no policy said yes",
        "spans": 1,
        "votes": {"failed": "not_sampled"},
        "rootSpanId": b"12345678".hex(),
        "startTimeUnixNano": "5",
        "endTimeUnixNano": "9",
        "podUid": "u-1",
        "podNamespace": "blue",
        "podName": "web-0",
    }
    assert (second["decision"], second["policy"], second["spans"]) == ("sampled", "slow", 4)


def test_decisions_stand_in_the_file_as_a_replay_writes_them(tmp_path: Path) -> None:
    config, recording = ROOT / "examples" / "recording.yaml", ROOT / "tests/data/recordings/apiserver.otlp.jsonl"
    live, replayed = tmp_path / "live.jsonl", tmp_path / "replayed.jsonl"
    arguments = ["replay", "--config", str(config), str(recording), "--decisions", str(replayed)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    verdicts = replay(str(config), recording).verdicts
    write(make_exporter("file", path=str(tmp_path / "data.jsonl"), decisions_path=str(live)), Batch([], 0, verdicts))
    assert verdicts
    assert live.read_bytes() == replayed.read_bytes()


def test_protobuf_is_what_other_readers_parse(tmp_path: Path) -> None:
    path = tmp_path / "data.otlp"
    write(make_exporter("file", path=str(path), format="proto"), make_batch(3))
    (message,) = requests(path, "proto")
    assert len(ExportTraceServiceRequest.FromString(message).resource_spans[0].scope_spans[0].spans) == 3


async def test_two_exporters_never_write_to_one_file(tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "data.jsonl")

    async with make_exporter("file", path=str(tmp_path / "data.jsonl")) as first:
        await first.send(make_batch())
        with pytest.raises(StartError, match="another exporter writes to it"):
            await make_exporter("file", path=str(tmp_path / "link.jsonl")).__aenter__()
    assert len(requests(tmp_path / "data.jsonl")) == 1
    async with make_exporter("file", path=str(tmp_path / "link.jsonl")) as second:
        await second.send(make_batch())
        await second.send(make_batch())
    assert len(requests(tmp_path / "data.jsonl")) == 2


async def test_goes_on_in_a_new_file_when_somebody_removed_it(tmp_path: Path) -> None:
    path = tmp_path / "a" / "data.jsonl"

    async with make_exporter("file", path=str(path)) as exporter:
        await exporter.send(make_batch())
        path.unlink()
        await exporter.send(make_batch())
        assert len(requests(path)) == 1
        path.unlink()
        path.parent.rmdir()
        with pytest.raises(Retryable, match="No such file or directory"):
            await exporter.send(make_batch())
        path.parent.mkdir()
        await exporter.send(make_batch())
    assert len(requests(path)) == 1


@pytest.mark.parametrize(
    "content", [b"root:x:0:0:root:/root:/bin/bash\n", b"receivers:\n", b"\x7fELF\x02\x01\x01", b"x"]
)
def test_never_empties_a_file_that_holds_something_else(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(StartError, match="holds something else, which would be lost"):
        write(make_exporter("file", path=str(tmp_path / "other")))
    assert (tmp_path / "other").read_bytes() == content


@pytest.mark.parametrize(("form", "compression"), FORMS)
def test_empties_what_it_wrote_in_another_form(tmp_path: Path, form: str, compression: str) -> None:
    path = tmp_path / "data"
    write(make_exporter("file", path=str(path), format=form, compression=compression), make_batch())
    write(make_exporter("file", path=str(path)), make_batch(), make_batch())
    assert len(requests(path)) == 2


@pytest.mark.parametrize("key", ["path", "decisions_path"])
def test_a_fifo_that_nobody_reads_yet_is_waited_for_while_all_else_goes_on(tmp_path: Path, key: str) -> None:
    paths = {"path": tmp_path / "kept.jsonl", "decisions_path": tmp_path / "decisions.jsonl"}
    os.mkfifo(paths[key])
    batch = replace(make_batch(1), verdicts=[Verdict(b"t" * 16, "sampled", "", "", 2, 1, 1)])

    async def main() -> bytes:
        async with asyncio.timeout(DEADLINE), make_exporter("file", **{k: str(p) for k, p in paths.items()}) as file:
            with pytest.raises(Retryable, match=f"{paths[key].name}: nobody reads this FIFO"):
                await file.send(batch)
            reader = os.open(paths[key], os.O_RDONLY | os.O_NONBLOCK)
            try:
                await file.send(batch)
                return os.read(reader, 1 << 16)
            finally:
                os.close(reader)

    assert asyncio.run(main()).count(b"\n") == 1
    (other,) = set(paths.values()) - {paths[key]}
    assert len(other.read_bytes().splitlines()) == 1


async def test_a_file_that_can_not_be_forced_onto_the_disk_is_named_once_beside_one_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looked = asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()

    def sync(file: LogFile) -> None:
        loop.call_soon_threadsafe(looked.release)
        if file.path.name == "bad":
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(LogFile, "sync", sync)
    paths = {"path": str(tmp_path / "bad"), "decisions_path": str(tmp_path / "good")}
    async with make_exporter("file", flush_interval="1ms", **paths):
        for _ in range(8):
            await looked.acquire()
    assert [record.getMessage() for record in caplog.records] == [
        f"can't force {tmp_path / 'bad'} onto the disk: Input/output error"
    ]
