"""Logs of kube-scheduler (klog's text and JSON, with what containers put around lines) to attempts.

The first byte of an input says in how large pieces the log is fed.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from podtrail.otlp import Group, read_request, write_request
from podtrail.reconstruction import Session
from tools.fuzz.parser import Parser

_RECORDED = Path(__file__).parents[3] / "tests/data/kube-scheduler"
_NOW = 1_795_000_000_000_000_000
_LATER = 3600 * 10**9
_LINES = 8
_TAIL = 1500


def check(data: bytes) -> None:
    """Rebuild attempts from a log, whole and in pieces; each line is told of, each attempt is a valid trace."""
    if not data:
        return
    step, log = data[0] or 256, data[1:]
    whole = _rebuilt(log, len(log) or 1)
    assert whole == _rebuilt(log, step), f"in pieces of {step} bytes it tells otherwise"
    written = write_request(whole[0])
    intake = read_request(written)
    assert not intake.rejected, f"an attempt is no valid trace: {intake.reason}"


def _rebuilt(log: bytes, step: int) -> tuple[Sequence[Group], object]:
    session = Session(_NOW)
    for at in range(0, len(log), step):
        session.log("scheduler.log", log[at : at + step], _NOW)
    groups = session.expire(_NOW) + session.expire(_NOW + _LATER)
    kept = json.loads(json.dumps(session.checkpoint(_NOW + _LATER)))
    Session(_NOW + _LATER, kept)
    groups += session.drain(_NOW + _LATER)
    counts = session.line_counts["log"]
    accounted = counts.used + counts.other + counts.continued + counts.unknown.total()
    assert accounted <= counts.lines, f"{accounted} of {counts.lines} lines are told of"
    return groups, (counts.lines, counts.used, counts.other, counts.continued, dict(counts.unknown))


def mutate(data: bytes, random: Random) -> bytes:
    """Double, drop, move or join lines, or exchange words between them."""
    head, lines = data[:1], data[1:].split(b"\n")
    at, other = random.randrange(len(lines)), random.randrange(len(lines))
    words, others = lines[at].split(b" "), lines[other].split(b" ")
    match random.randrange(6):
        case 0:
            del lines[at]
        case 1:
            lines.insert(other, lines[at])
        case 2:
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            lines[at : at + 2] = [b"".join(lines[at : at + 2])]
        case 4:
            words[random.randrange(len(words))] = random.choice(others)
            lines[at] = b" ".join(words)
        case _:
            del words[random.randrange(len(words))]
            lines[at] = b" ".join(words)
    return head + b"\n".join(lines)


def seeds() -> Iterator[bytes]:
    """Yield a few lines of each kind from recorded logs."""
    for path in sorted(_RECORDED.glob("*.log.gz")):
        told: dict[bytes, bytes] = {}
        for line in gzip.decompress(path.read_bytes()).splitlines():
            if b"pod" in line and len(line) < _TAIL:
                told.setdefault(line.partition(b"]")[2][:24] or line[60:100], line)
        lines = [*told.values()]
        for first in range(0, len(lines), _LINES):
            yield b"\x40" + b"\n".join(lines[first : first + _LINES]) + b"\n"


PARSER = Parser(
    check, seeds, mutate,
    words=(
        b"I1121 11:13:12.513652    5042 ", b"E0229 23:59:59.999999", b'pod="', b"err=<\n", b" >", b'"Add event for ',
        b'{"ts":', b'"msg":"', b"stdout F ", b"2026-11-21T11:13:12.5Z stderr P ", b'{"log":"', b"Trace[", b"\\u0000",
        b"node=", b"feasibleNodes=", b"evaluatedNodes=", b"\r\n", b"schedule_one.go:", b'"Unable to schedule pod;',
    ),
)  # fmt: skip
