"""`podtrail recording merge` and `cut` as a person meets them: what stands in the files, mistakes, damage, memory."""

import gzip
import json
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

import pytest
import zstandard
from click.testing import CliRunner, Result

from podtrail.cli import main
from podtrail.otlp import Group, Link, encode_span, frame, resource_header, scope_header
from podtrail.recording import Damage, Record, RecordingWriter, read_recording
from podtrail.recording.merging import merged
from podtrail.story import several
from podtrail.testing.attempts import MS, START, MadeAttempt, No

DATA = Path(__file__).parents[1] / "data" / "recordings"
API, SCHEDULER = DATA / "apiserver.otlp", DATA / "scheduler.otlp.gz"
SECOND = 1000 * MS
FULL = No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=["node-1"])
ATTEMPTS = [
    MadeAttempt(uid="u-0", name="web-0", number=1, result="Unschedulable", message="no room", refusals=[FULL]),
    MadeAttempt(uid="u-0", name="web-0", number=2, start=START + 10 * SECOND),
    MadeAttempt(uid="u-1", name="web-1", namespace="shop", start=START + 20 * SECOND),
    MadeAttempt(uid="u-2", name="web-0", namespace="shop", start=START + 30 * SECOND, result="Error", message="lost"),
]


def recording(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["recording", *map(str, arguments)])


def write(path: Path, requests: Iterable[tuple[int, Iterable[Group]]]) -> Path:
    with RecordingWriter(path) as writer:
        for arrival, groups in requests:
            writer.write(groups, arrival)
    return path


def records(path: Path) -> list[Record]:
    found = list(read_recording(path))
    assert not [str(item) for item in found if isinstance(item, Damage)]
    return [item for item in found if isinstance(item, Record)]


def traces(path: Path) -> set[bytes]:
    return {group.trace_id for record in records(path) for group in record.intake.groups}


def one_span(trace: int, *, name: str = "a", size: int = 0, **more: object) -> list[Group]:
    id = trace.to_bytes(16, "big")
    span = encode_span(trace_id=id, span_id=bytes(7) + b"\1", name=name + "x" * size, start=1, end=2, **more)  # type: ignore[arg-type]
    return [Group(resource_header({"service.name": "s"}), scope_header("t"), id, frame([span]), 1)]


@pytest.fixture
def attempts(tmp_path: Path) -> Path:
    """Four attempts, ten seconds apart, in a recording."""
    made = ((attempt.start + attempt.duration, attempt.groups()) for attempt in ATTEMPTS)
    return write(tmp_path / "attempts.otlp", made)


@pytest.mark.parametrize("name", [f"m.{form}{packed}" for form in ("jsonl", "otlp") for packed in ("", ".gz", ".zst")])
def test_merged_requests_come_in_the_order_of_arrival(tmp_path: Path, name: str) -> None:
    a = write(tmp_path / "a.otlp", [(at, one_span(at)) for at in (1, 4, 4, 9)])
    b = write(tmp_path / "b.jsonl.gz", [(at, one_span(100 + at)) for at in (2, 4, 20)])
    done = recording("merge", a, b, "--to", tmp_path / name)
    assert done.exit_code == 0, done.output
    assert done.output == f"{tmp_path / name}: 7 requests, 7 spans\n"
    found = [(record.arrival, record.intake.groups[0].trace_id[-1]) for record in records(tmp_path / name)]
    assert found == [(1, 1), (2, 102), (4, 4), (4, 4), (4, 104), (9, 9), (20, 120)]


def test_one_recording_merged_is_the_same_in_another_form(tmp_path: Path) -> None:
    recording("merge", API, "--to", tmp_path / "a.jsonl.zst")
    recording("merge", tmp_path / "a.jsonl.zst", "--to", tmp_path / "b.otlp")
    assert (tmp_path / "b.otlp").read_bytes() == API.read_bytes()


@pytest.mark.parametrize(
    ("options", "meant"),
    [
        (["--pod", "default/web-0"], [0, 1]),
        (["--pod", "u-1"], [2]),
        (["--pod", "u-1", "--pod", "default/web-0"], [0, 1, 2]),
        (["--namespace", "shop"], [2, 3]),
        (["--namespace", "shop", "--result", "Error"], [3]),
        (["--result", "failed"], [0, 3]),
        (["--result", "unschedulable"], [0]),
        (["--trace", ATTEMPTS[1].trace_id.hex()], [1]),
        (["--trace", ATTEMPTS[1].trace_id.hex().upper(), "--trace", ATTEMPTS[2].trace_id.hex()], [1, 2]),
        (["--trace", ATTEMPTS[1].trace_id.hex(), "--trace", ATTEMPTS[2].trace_id.hex(), "--namespace", "shop"], [2]),
        (["--since", "10s"], [1, 2, 3]),
        (["--until", "10s"], [0]),
        (["--since", "-10s"], [2, 3]),
        (["--since", "5s", "--until", "-5s"], [1, 2]),
        (["--since", "2026-09-21T14:13:40Z"], [2, 3]),
        (["--until", "2026-09-21T14:13:45", "--result", "failed"], [0]),
        (["--cluster", ""], [0, 1, 2, 3]),
        ([], [0, 1, 2, 3]),
    ],
    ids=str,
)
def test_the_traces_that_are_meant_are_cut_out_whole(
    attempts: Path, tmp_path: Path, options: list[str], meant: list[int]
) -> None:
    done = recording("cut", attempts, "--to", tmp_path / "cut.otlp", *options)
    assert done.exit_code == 0, done.output
    assert traces(tmp_path / "cut.otlp") == {ATTEMPTS[at].trace_id for at in meant}
    expected = sum(group.span_count for at in meant for group in ATTEMPTS[at].groups())
    sums = f"{several(len(meant), 'request')}, {several(len(meant), 'trace')}, {several(expected, 'span')}"
    assert sums in done.output


def test_traces_that_are_linked_to_come_along_when_asked_for(tmp_path: Path) -> None:
    link = Link(bytes(15) + b"\2", bytes(7) + b"\1", {})
    path = write(tmp_path / "r.otlp", [(5, one_span(2)), (6, one_span(1, links=[link])), (7, one_span(3))])
    recording("cut", path, "--to", tmp_path / "cut.otlp", "--trace", f"{1:032x}", "--with-links")
    assert traces(tmp_path / "cut.otlp") == {bytes(15) + b"\1", bytes(15) + b"\2"}


def test_nothing_meant_leaves_no_file_and_is_a_failure(attempts: Path, tmp_path: Path) -> None:
    done = recording("cut", attempts, "--to", tmp_path / "cut.otlp", "--pod", "default/nobody")
    assert done.exit_code == 1
    assert "no trace is meant by this: nothing is written" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["attempts.otlp"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cut", API, "--to", "c.otlp", "--trace", "1234"], "is no trace id: 32 hex digits"),
        (["cut", API, "--to", "c.otlp", "--pod", "a/b/c"], "names no Pod"),
        (["cut", API, "--to", "c.otlp", "--since", "yesterday"], "is no time: write 2026-11-21T18:00:00Z"),
        (["cut", API, "--to", "c.otlp", "--since", "5s", "--until", "2s"], "--since is not before --until"),
        (["merge", API, "--to", "c.txt"], "ends in .jsonl or .otlp"),
        (["merge", "missing.otlp", "--to", "c.otlp"], "missing.otlp: No such file or directory"),
        (["merge", API, "--to", "missing/c.otlp"], "podtrail: missing/c.otlp: No such file or directory"),
        (["merge", ".", "--to", "c.otlp"], "all of . is read: write to another folder"),
        (["stat", "."], "there is no recording in this folder"),
        (["anonymize", API, "--to", "c.otlp", "--shift", "1y"], "unknown unit"),
        (["stat", "missing.otlp"], "missing.otlp: No such file or directory"),
    ],
    ids=str,
)
def test_mistakes_are_usage_errors(
    arguments: list[object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = recording(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["merge", "cut", "anonymize"])
def test_a_recording_is_not_written_over_itself(command: str, tmp_path: Path) -> None:
    path = tmp_path / "r.otlp"
    path.write_bytes(API.read_bytes())
    done = recording(command, path, "--to", tmp_path / "." / "r.otlp")
    assert done.exit_code == 2
    assert path.read_bytes() == API.read_bytes()


def damaged_json() -> bytes:
    lines = (DATA / "apiserver.otlp.jsonl").read_bytes().splitlines(keepends=True)
    return b"".join([*lines[:3], b"I1121 18:00:00.000 1 scheduler.go:1] started\n", *lines[3:]])


DAMAGED: list[tuple[str, bytes, str, int]] = [
    ("other.jsonl", damaged_json(), ":4: not JSON", 10),
    ("cut.otlp", API.read_bytes()[:-30], "cut off: ", 9),
    ("cut.otlp.gz", SCHEDULER.read_bytes()[:-3000], "the gzip data is cut off", 7),
    ("mixed.otlp", API.read_bytes() + damaged_json(), "is not the length of a request", 10),
    ("zeros.otlp", bytes(70_000), "0 is not the length of a request", 0),
    ("empty.otlp", b"", "", 0),
    ("blank.jsonl", b"\n\n  \n", "", 0),
    ("bomb.jsonl.gz", gzip.compress(b'{"resourceSpans":[' + bytes(70 << 20), 1), ":1: a line of ", 0),
    ("bomb.otlp.zst", zstandard.ZstdCompressor().compress(bytes(80 << 20)), "is not the length of a request", 0),
]


@pytest.mark.parametrize("command", ["merge", "anonymize", "stat"])
@pytest.mark.parametrize(("name", "content", "said", "requests"), DAMAGED, ids=[name for name, *_ in DAMAGED])
def test_what_is_damaged_is_named_and_skipped_or_refused(
    command: str, name: str, content: bytes, said: str, requests: int, tmp_path: Path
) -> None:
    path, to = tmp_path / name, tmp_path / "to.otlp"
    path.write_bytes(content)
    target = [] if command == "stat" else ["--to", to]
    done = recording(command, path, *target)
    assert said in done.output
    assert str(path) in done.output or not said
    if requests:
        assert done.exit_code == 0
        assert f"{requests} requests" in done.output
    else:
        assert done.exit_code == 1
        assert "there is no request that can be read" in done.output
        assert not to.exists()
    if said:
        to.unlink(missing_ok=True)
        strict = recording(command, path, *target, "--strict")
        assert strict.exit_code == 1
        assert not to.exists()
        assert len(strict.output.splitlines()) == 1
        assert said in strict.output


def test_invalid_spans_are_left_out_and_counted_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    sound = json.loads((DATA / "apiserver.otlp.jsonl").read_bytes().splitlines()[0])
    sound["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] = ""
    path.write_text(json.dumps(sound) + "\n", encoding="utf-8")
    done = recording("merge", path, "--to", tmp_path / "m.otlp")
    assert done.exit_code == 0
    assert "1 invalid spans left out" in done.output
    strict = recording("merge", path, "--to", tmp_path / "s.otlp", "--strict")
    assert strict.exit_code == 1
    assert strict.output.startswith(f"podtrail: {path}:1: 1 with ")


def test_text_from_a_file_can_not_reach_the_terminal_raw(tmp_path: Path) -> None:
    path = write(tmp_path / "r.otlp", [(5, one_span(1, name="\x1b[2J\u202ename"))])
    done = recording("stat", path)
    assert "\\x1b[2J\\u202ename" in done.output
    assert "\x1b" not in done.output


def test_merging_a_long_recording_takes_no_more_memory_than_a_short_one(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        path = write(tmp_path / "r.otlp", ((at, one_span(at + 1, size=2000)) for at in range(count)))
        tracemalloc.start()
        assert sum(1 for _ in merged([path, path], lambda _: None)) == 2 * count
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return highest

    assert peak(2000) < 1.3 * peak(500)
