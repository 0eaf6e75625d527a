"""Recordings in all forms: OTLP JSON lines, frames, documents of Jaeger and Zipkin, each plain, gzip or zstd.

The first byte of an input says what the file is called, the second in how large pieces it is also fed.
"""

import gzip
import json
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random

import zstandard

from podtrail.otlp import read_request, write_request
from podtrail.recording import Damage, Record, RecordingDecoder, RecordingForm, read_recording
from podtrail.recording.decoder import decode_framed, decode_line
from tools.fuzz.parser import Parser
from tools.fuzz.parsers.json import mutate as mutate_json
from tools.fuzz.parsers.json import seeds as json_seeds
from tools.fuzz.parsers.requests import seeds as protobuf_seeds
from tools.fuzz.wire import framed, mutate_message

_NAMES = ("r.jsonl", "r.otlp", "r.json", "r", "r.jsonl.gz", "r.otlp.gz", "r.jsonl.zst", "r.otlp.zst")
_COMPRESSED = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd")
_HEAD = 2
_FOLDER = tempfile.TemporaryDirectory(prefix="podtrail-fuzz-")  # for as long as the process is
_RESUMED = 8
"""Places behind which it is also read on."""
_SOUND = framed(1, framed(2, framed(2, framed(1, b"\x5a" * 16) + framed(2, b"\x5b" * 8))))
_FRAMES = RecordingForm.of("r.otlp")
_LINES = RecordingForm.of("r.jsonl")


def check(data: bytes) -> None:
    """Read a recording whole and in pieces, and again what was read; put it between two sound requests."""
    if len(data) < _HEAD:
        return
    name, step, content = _NAMES[data[0] % len(_NAMES)], data[1] or 256, data[_HEAD:]
    path = Path(_FOLDER.name) / name
    path.write_bytes(content)
    read = [*read_recording(path)]
    _check_order(read)
    _check_again([item for item in read if isinstance(item, Record)])
    if not name.endswith((".gz", ".zst")) and not content.startswith(_COMPRESSED):
        _check_pieces(str(path), content, step, read)
    _check_between(content)


def _check_order(read: list[Record | Damage]) -> None:
    arrivals = [item.arrival for item in read if isinstance(item, Record)]
    assert arrivals == sorted(arrivals), "a record arrives before the one ahead"
    assert all(item.reason for item in read if isinstance(item, Damage)), "damage without a reason"


def _check_again(records: list[Record]) -> None:
    """What was read and is written again is read as the same."""
    for form in (_FRAMES, _LINES):
        decoder = RecordingDecoder(f"again{'.jsonl' if form.json else '.otlp'}")
        kept = [record for record in records if record.intake.groups and 0 < record.arrival < 2**63]
        written = b"".join(form.framed(form.message(record.intake.groups, record.arrival)) for record in kept)
        again = [*decoder.feed(written), *decoder.finish()]
        assert [item.arrival if isinstance(item, Record) else str(item) for item in again] == [
            record.arrival for record in kept
        ], "what was read can't be read again"
        for record, item in zip(kept, again, strict=True):
            assert isinstance(item, Record)
            if not form.json:
                same = write_request(item.intake.groups) == write_request(record.intake.groups)
                assert same, "what was read comes again as another"


def _check_pieces(name: str, content: bytes, step: int, read: list[Record | Damage]) -> None:
    decoder = RecordingDecoder(name)
    fed = [item for at in range(0, len(content), step) for item in decoder.feed(content[at : at + step])]
    fed += decoder.finish()
    assert fed == read, f"in pieces of {step} bytes it reads otherwise"
    for number, item in enumerate(read[-_RESUMED:], max(0, len(read) - _RESUMED)):
        if item.progress is not None:
            offset = 0 if item.progress.unit == "line" else item.progress.offset
            if any(one.position.number < offset for one in read[number + 1 :]):
                continue  # behind damage a frame began in bytes that were read before: from here on it is not found
            decoder = RecordingDecoder(name, item.progress)
            rest = [*decoder.feed(content[item.progress.offset :]), *decoder.finish()]
            assert rest == read[number + 1 :], f"from behind {item.position} on it reads otherwise"


def _check_between(content: bytes) -> None:
    """A bad line and a bad frame cost themselves alone."""
    line, frame = content.replace(b"\n", b" "), content[:4000]
    sound = [_LINES.framed(_LINES.message(read_request(_SOUND).groups, 1)), _FRAMES.framed(_SOUND)]
    for name, ends, middle, decode in (
        ("r.jsonl", sound[0], line + b"\n", decode_line),
        ("r.otlp", sound[1], len(frame).to_bytes(4, "big") + frame if frame else b"", decode_framed),
    ):
        decoder = RecordingDecoder(name)
        found = [*decoder.feed(ends + middle + ends), *decoder.finish()]
        records = [item for item in found if isinstance(item, Record)]
        held = [any(group.trace_id == b"\x5a" * 16 for group in record.intake.groups) for record in records]
        assert sum(held) >= 2, f"what stands between two sound requests costs one of them ({decode.__name__}): {found}"


def mutate(data: bytes, random: Random) -> bytes:
    """Change one record in its own form, or double, drop or move some."""
    head, content = data[:_HEAD], data[_HEAD:]
    name = _NAMES[head[0] % len(_NAMES)] if head else ""
    if name.endswith(".gz"):
        return head + gzip.compress(_mutated(_opened(content), random), mtime=0)
    if name.endswith(".zst"):
        return head + zstandard.compress(_mutated(_opened(content), random))
    return head + _mutated(content, random)


def _opened(content: bytes) -> bytes:
    try:
        if content.startswith(b"\x1f\x8b"):
            return gzip.decompress(content)
        return zstandard.decompress(content, max_output_size=1 << 20)
    except (OSError, EOFError, ValueError, zlib.error, zstandard.ZstdError):
        return content


def _mutated(content: bytes, random: Random) -> bytes:
    if content.lstrip()[:1] in (b"{", b"["):
        lines = content.split(b"\n")
        at = random.randrange(len(lines))
        if random.random() < 0.2:
            return mutate_json(content, random)
        lines[at] = mutate_json(lines[at], random).replace(b"\n", b"") if lines[at] else b"{}"
        return b"\n".join(random.choice((lines, lines, lines + lines[:1], lines[1:])))
    frames = []
    at = 0
    while at + 4 <= len(content):
        size = int.from_bytes(content[at : at + 4], "big")
        frames.append(content[at + 4 : at + 4 + size])
        at += 4 + size
    if not frames:
        return content + b"\0\0\0\1\x0a"
    chosen = random.randrange(len(frames))
    frames[chosen] = mutate_message(frames[chosen], random)
    written = [len(frame).to_bytes(4, "big") + frame for frame in frames]
    if random.random() < 0.2:
        written.insert(chosen, random.choice((written[0], random.randbytes(5), b"\0\0\0\0")))
    return b"".join(written)


def seeds() -> Iterator[bytes]:
    """Yield a recording of each form, and of each program that is read besides."""
    lines = b"".join(_LINES.framed(seed) for seed in json_seeds())
    frames = b"".join(
        _FRAMES.framed(_FRAMES.message(read_request(seed).groups, number + 1))
        for number, seed in enumerate(protobuf_seeds())
    )
    jaeger = {
        "data": [{"traceID": "1" * 32, "processes": {"p1": {"serviceName": "s", "tags": []}}, "spans": [{
            "traceID": "1" * 32, "spanID": "2" * 16, "operationName": "o", "startTime": 1, "duration": 2,
            "processID": "p1", "references": [{"refType": "CHILD_OF", "traceID": "1" * 32, "spanID": "3" * 16}],
            "tags": [{"key": "span.kind", "type": "string", "value": "client"}],
            "logs": [{"timestamp": 1, "fields": [{"key": "event", "type": "string", "value": "e"}]}],
        }]}]
    }  # fmt: skip
    zipkin = [{
        "traceId": "1" * 32, "id": "2" * 16, "parentId": "3" * 16, "name": "n", "timestamp": 1, "duration": 2,
        "kind": "SERVER", "tags": {"a": "b"}, "annotations": [{"timestamp": 1, "value": "v"}],
        "localEndpoint": {"serviceName": "s", "ipv4": "192.0.2.1"},
    }]  # fmt: skip
    documents = [json.dumps(document).encode() for document in (jaeger, zipkin)]
    for name, content in enumerate((lines, frames, documents[0], documents[1])):
        yield bytes([name, 7]) + content
    for name, content in ((4, gzip.compress(lines, mtime=0)), (7, zstandard.compress(frames))):
        yield bytes([name, 9]) + content


PARSER = Parser(
    check, seeds, mutate,
    words=(
        b"\0\0\0\1\x0a", b"\xc1\x3e", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08", b'{"resourceSpans"', b'{"data":[', b"[{",
        b'"arrivalTimeUnixNano":"', b'"processes"', b'"traceID"', b'"spans"', b"\n", b'{"total":', b"}\n{",
    ),
)  # fmt: skip
