"""Recordings read: both forms agree, arrivals are as promised, damage costs what it hit and no more."""

import gzip
import io
import json
import os
import random
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import zstandard
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.otlp import Group, read_request, write_request
from podtrail.recording import Damage, Record, RecordingDecoder, RecordingWriter, read_recording
from podtrail.recording.compressed import Gap, pieces

REAL = Path(__file__).parents[1] / "data" / "recordings"
NAMES = [f"r{form}{compression}" for form in (".jsonl", ".otlp") for compression in ("", ".gz", ".zst")]
RECORDS = 3
ALL = [1, 2, 3]
FIRST = 1_795_260_013_992_798_052


def groups_of(number: int, *, end: int = 0) -> Iterable[Group]:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "kube-scheduler"
    resource.scope_spans.add().spans.add(
        trace_id=number.to_bytes(16, "big"),
        span_id=number.to_bytes(8, "big"),
        name="SchedulePod",
        end_time_unix_nano=end,
    )
    return read_request(request.SerializeToString()).groups


def records(path: Path) -> list[Record]:
    return [item for item in read_recording(path) if isinstance(item, Record)]


def damages(path: Path) -> list[Damage]:
    return [item for item in read_recording(path) if isinstance(item, Damage)]


KNOWN = {write_request(groups_of(number)): number for number in range(1, RECORDS + 1)}


def survey(path: Path) -> tuple[list[int], int]:
    """Which of the records made here are read whole and as they were written, and how often there is damage."""
    numbers, damaged = [], 0
    for item in read_recording(path):
        if isinstance(item, Damage):
            damaged += 1
        elif number := KNOWN.get(write_request(item.intake.groups)):
            numbers.append(number)
    return numbers, damaged


def numbers(path: Path) -> list[int]:
    return survey(path)[0]


def written(path: Path) -> bytes:
    """Write the numbered records, each flushed, and return the file's bytes."""
    with RecordingWriter(path) as writer:
        for number in range(1, RECORDS + 1):
            writer.write(groups_of(number), FIRST + number)
            writer.flush()
    return path.read_bytes()


def test_both_forms_of_a_real_recording_hold_the_same() -> None:
    protobuf, lines = records(REAL / "apiserver.otlp"), records(REAL / "apiserver.otlp.jsonl")
    assert len(protobuf) == len(lines) == 10
    for binary, text in zip(protobuf, lines, strict=True):
        assert binary.arrival == text.arrival
        assert binary.intake == text.intake
        assert binary.intake.rejected == 0
    assert damages(REAL / "apiserver.otlp") == damages(REAL / "apiserver.otlp.jsonl") == []


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    original = records(REAL / "apiserver.otlp")
    with RecordingWriter(path) as writer:
        for record in original:
            writer.write(record.intake.groups, record.arrival)
    again = records(path)
    assert [(r.arrival, r.intake) for r in again] == [(r.arrival, r.intake) for r in original]


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [*((name, "\ufeff") for name in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")), ("utf-16-le", "")],
)
@pytest.mark.parametrize("as_document", [False, True])
def test_text_is_read_in_the_encodings_of_windows(encoding: str, mark: str, as_document: bool, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    text = written(path).decode()
    if as_document:
        text = f"[{text.rstrip().replace(chr(10), ',')}]"
    path.write_bytes((mark + text).encode(encoding))
    assert survey(path) == (ALL, 0)
    decoder = RecordingDecoder(str(path))
    pieces = [path.read_bytes()[at : at + 1] for at in range(path.stat().st_size)]
    fed = [item for piece in pieces for item in decoder.feed(piece)] + [*decoder.finish()]
    assert fed == [*read_recording(path)]


@pytest.mark.parametrize("form", ["jsonl", "otlp"])
def test_the_content_and_not_the_name_says_what_a_recording_is(form: str, tmp_path: Path) -> None:
    raw = written(tmp_path / f"r.{form}")
    for number, content in enumerate((raw, gzip.compress(raw), zstandard.compress(raw))):
        path = tmp_path / f"{number}.log"
        path.write_bytes(content)
        assert numbers(path) == ALL


@pytest.mark.parametrize("name", NAMES)
def test_arrivals_never_go_back(name: str, tmp_path: Path) -> None:
    with RecordingWriter(tmp_path / name) as writer:
        for arrival in (100, 50, 200):
            writer.write(groups_of(1), arrival)
    assert [record.arrival for record in records(tmp_path / name)] == [100, 100, 200]


def test_without_an_arrival_a_request_arrives_at_its_latest_end(tmp_path: Path) -> None:
    requests = [[*groups_of(1, end=70), *groups_of(2, end=90)], groups_of(3, end=80), groups_of(4, end=2**64 - 1)]
    path = tmp_path / "r.otlp"
    raw = [write_request(groups) for groups in requests]
    path.write_bytes(b"".join(len(request).to_bytes(4, "big") + request for request in raw))
    assert [record.arrival for record in records(path)] == [90, 90, 90]


def test_an_arrival_is_read_at_the_top_level_only(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines: list[object] = [
        {"arrivalTimeUnixNano": "7", "resourceSpans": []},
        {"resourceSpans": [], "unknown": {"arrivalTimeUnixNano": "99"}, "more": 1},
        {"resourceSpans": [], "unknown": {"arrivalTimeUnixNano": "99"}, "arrivalTimeUnixNano": 8},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [record.arrival for record in records(path)] == [7, 7, 8]


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_cut_off_anywhere_loses_the_last_record_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    raw = written(path)
    borders = []
    with RecordingWriter(path) as writer:
        for number in range(1, RECORDS + 1):
            writer.write(groups_of(number), FIRST + number)
            writer.flush()
            borders.append(path.stat().st_size)
    for cut in range(len(raw)):
        path.write_bytes(raw[:cut])
        whole = sum(border <= cut for border in borders)
        # Only a line feed, or a checksum behind what it protects, may be missing from a record that is there.
        left, damaged = survey(path)
        assert left in (list(range(1, whole + 1)), list(range(1, whole + 2)))
        torn = cut not in (0, *borders) and not (name == "r.jsonl" and len(left) > whole)
        assert damaged == torn


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_anywhere_costs_the_record_it_hit_alone(name: str, flip: int, tmp_path: Path) -> None:
    path = tmp_path / name
    raw = written(path)
    for at in range(len(raw)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ flip]) + raw[at + 1 :])
        left = numbers(path)
        # A line feed lost joins two lines.
        lost_at_most = 2 if name == "r.jsonl" and raw[at] == ord("\n") else 1
        assert len(left) >= RECORDS - lost_at_most, (at, left, damages(path))
        assert left == sorted(left)


@pytest.mark.parametrize("behind", [b"damaged", b"\0\0\0\0", b"\0\0\0\x09\x0a\x7f", b"\xff" * 20])
def test_damage_behind_a_short_frame_reads_that_frame_once(behind: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.otlp"
    path.write_bytes(b"\0\0\0\2\x0a\0" + behind)
    read = read_recording(path)
    assert [type(next(read)), type(next(read)), next(read, None)] == [Record, Damage, None]


@pytest.mark.parametrize("name", NAMES)
def test_a_start_behind_a_half_record_loses_nothing_of_its_own(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    raw = written(path)
    with RecordingWriter(path) as writer:
        writer.write(groups_of(1), FIRST)
    one = path.read_bytes()
    for cut in range(1, len(one) - 1):
        path.write_bytes(one[:cut] + raw)
        assert numbers(path)[-RECORDS:] == ALL, cut


def test_damage_is_reported_with_its_line_or_byte(tmp_path: Path) -> None:
    lines = written(tmp_path / "r.jsonl").splitlines(keepends=True)
    lines.insert(2, b"no json\n")
    text = tmp_path / "bad.jsonl"
    text.write_bytes(b"".join(lines))
    assert [str(damage).startswith(f"{text}:3: ") for damage in damages(text)] == [True]
    assert [record.position.number for record in records(text)] == [1, 2, 4]
    raw = written(tmp_path / "r.otlp")
    binary = tmp_path / "bad.otlp"
    binary.write_bytes(raw[:-1])
    begin = records(tmp_path / "r.otlp")[-1].position.number
    assert [str(damage).startswith(f"{binary} at byte {begin}: cut off") for damage in damages(binary)] == [True]


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, bytes(10_000), b"hello\nworld\n", b"\x1f\x8b\x08 nothing", b"{"],
)
def test_a_foreign_file_is_damage_and_no_records(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    assert records(path) == []
    assert damages(path)


def test_an_empty_recording_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    for content in (b"", b"\n \n", gzip.compress(b"")):
        path.write_bytes(content)
        assert list(read_recording(path)) == []


@pytest.mark.parametrize("as_json", [False, True])
def test_reads_the_collectors_frames_of_zstd(as_json: bool, tmp_path: Path) -> None:
    plain = tmp_path / ("r.jsonl" if as_json else "r.otlp")
    raw = written(plain)
    if as_json:
        requests = raw.splitlines()
    else:
        requests, at = [], 0
        while at < len(raw):
            end = at + 4 + int.from_bytes(raw[at : at + 4], "big")
            requests.append(raw[at + 4 : end])
            at = end
    packed = [zstandard.compress(request) for request in requests]
    path = tmp_path / "collector"
    path.write_bytes(b"".join(len(frame).to_bytes(4, "big") + frame for frame in packed))
    assert numbers(path) == ALL


@pytest.mark.parametrize(
    ("compress", "begin"), [(gzip.compress, b'{"resourceSpans":['), (zstandard.compress, b"\x03\xff\xff\xff\x0a")]
)
def test_a_bomb_costs_bounded_memory(compress: Callable[[bytes], bytes], begin: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(compress(begin + bytes(200 << 20)))
    tracemalloc.start()
    try:
        found = list(read_recording(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [type(item) for item in found[:1]] == [Damage]
    assert peak < 240 << 20


def test_a_pipe_is_refused_under_its_name() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    try:
        with pytest.raises(OSError, match="not from a pipe") as refused:
            list(read_recording(f"/dev/fd/{reading}"))
        assert refused.value.filename == f"/dev/fd/{reading}"
    finally:
        os.close(reading)


@pytest.mark.parametrize("name", ["r.jsonl", "r.otlp"])
@pytest.mark.parametrize("damage", [b"", b"\0\0\0\3abc", b"damaged\n", b"\0\0\0\2\x0a\0"])
def test_another_decoder_goes_on_behind_each_record(name: str, damage: bytes, tmp_path: Path) -> None:
    first, second = tmp_path / f"1-{name}", tmp_path / f"2-{name}"
    for number, path in enumerate((first, second)):
        with RecordingWriter(path) as writer:
            for record in (1, 2):
                writer.write(groups_of(2 * number + record), FIRST + record)
    content = first.read_bytes() + damage + second.read_bytes()
    (tmp_path / name).write_bytes(content)
    read = [*read_recording(tmp_path / name)]
    resumable = [(at, item.progress) for at, item in enumerate(read, 1) if item.progress is not None]
    assert len(resumable) >= len([item for item in read if isinstance(item, Record)])

    for at, progress in resumable:
        decoder = RecordingDecoder(str(tmp_path / name), progress)
        assert [*decoder.feed(content[progress.offset :]), *decoder.finish()] == read[at:]


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_members_that_are_larger_than_what_is_read_at_once_are_followed_by_the_next(
    compress: Callable[[bytes], bytes],
) -> None:
    members = [random.Random(seed).randbytes(150_000) + b"x" * 200_000 for seed in range(4)]
    told = list(pieces(io.BytesIO(b"".join(map(compress, members)))))
    assert b"".join(one for one in told if isinstance(one, bytes)) == b"".join(members)
    assert not [one for one in told if isinstance(one, Gap)]
