"""Any bytes, in any pieces, after any pause: read through, counted, and held in bounded memory."""

import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podtrail.reconstruction import Session
from tests.sizes import large

SECOND = 1_000_000_000
START = 1_795_259_500 * SECOND
MIB = 1 << 20

FRAGMENTS = [
    b"\n",
    b"\n",
    b"\r\n",
    b"\x00\xff\xfe",
    b"I1121 11:12:07.005373    4385 schedule_one.go:117] ",
    b"E0231 25:61:61.999999 1 a.go:1] ",
    b"I1121 11:12:07.00",
    b'"Attempting to schedule pod" pod="default/a"',
    b'"Unable to schedule pod; no fit; waiting" pod="default/a" err="',
    b'"Error scheduling pod; retrying" err=<',
    b'"Successfully bound pod to node" pod="default/b" node="n" evaluatedNodes=99999999999999999999',
    b'"Plugin scored node for pod" pod="default/a" plugin="P" node="n" score=-1',
    b"Attempting to schedule pod: default/a",
    b"Unable to schedule default/a: no fit: 0/0 nodes are available: ; waiting",
    b"\t",
    b" >",
    b"=<",
    b'"',
    b"\\",
    b"\\x",
    b"\\u12",
    b"0/3 nodes are available: 1 ",
    b"0/99999999999999999999999 nodes are available: ",
    b"Trace[1]: ",
    b'Trace[1]: "Scheduling" namespace:default,name:a (21-Nov-2026 06:04:54.252) (total time: 154ms):',
    b'Trace[1]: ---"Computing predicates done" 99999999999ms (06:04:00.407)',
    b"Trace[1]: [9999999999999999h1ns] [1s] END",
    b"Trace[99999999999999999999]: ",
    b'{"ts":1795260024579.57,"msg":"',
    b'{"ts":1e999,"msg":"Attempting to schedule pod","pod":{"name":"a","namespace":"default"}}',
    b'{"ts":1795260024579.57,"msg":"Successfully bound pod to node","pod":{"name":"c","namespace":"default"},"v":2}',
    b'{"ts":1795260024579.57,"msg":"Attempting to schedule pod","pod":' + b"[" * 2000,
    b'{"log":"',
    b'{"log":"I1121 11:12:07.005373 1 a.go:1] \\"Attempting to schedule pod\\" pod=\\"default/a\\"","time":3}',
    b"2026-11-21T11:12:07.0054Z stderr P ",
    b"2026-11-21T11:12:07.0054Z stderr F ",
    b"9999-99-99T99:99:99Z stdout F ",
    b'"Starting Kubernetes Scheduler"',
    b'"Successfully acquired lease" lock="l"',
    b'"Leaderelection lost"',
]


@settings(max_examples=large(50, 100))
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(FRAGMENTS) | st.binary(max_size=12), max_size=20), st.integers(0, 9 * SECOND)
        ),
        max_size=15,
    ),
    st.booleans(),
)
def test_fragments_of_every_form_in_any_pieces_never_fail(pieces: list[tuple[list[bytes], int]], rotated: bool) -> None:
    session, now = Session(START), START
    for fragments, pause in pieces:
        now += pause
        session.log("log", b"".join(fragments), now)
        session.expire(now)
        if rotated:
            session.end_of_log("log", now)
    session.drain(now)
    counts = session.line_counts["log"]
    lines = counts.used + counts.other + counts.continued + counts.unknown.total()
    assert lines == counts.lines


@settings(max_examples=large(20, 100))
@given(st.integers(0, 1 << 32), st.sampled_from(["v2-text.log", "v5-json.log"]))
def test_a_real_log_with_bytes_changed_cut_out_and_doubled_is_read_through(runs: Any, seed: int, name: str) -> None:
    rng = random.Random(seed)
    log = bytearray(b"\n".join(runs.lines(name)[340:560]))
    for _ in range(rng.randrange(200)):
        at = rng.randrange(len(log))
        match rng.randrange(3):
            case 0:
                log[at] = rng.randrange(256)
            case 1:
                del log[at : at + rng.randrange(300)]
            case 2:
                log[at:at] = log[at : at + rng.randrange(300)]
    session, now = Session(START), START + 60 * SECOND
    while log:
        size = rng.randrange(1, 9000)
        session.log("log", bytes(log[:size]), now)
        session.expire(now)
        del log[:size]
        now += rng.randrange(SECOND)
    session.drain(now)
    counts = session.line_counts["log"]
    assert counts.lines == counts.used + counts.other + counts.continued + counts.unknown.total()


def endless_line() -> Iterator[bytes]:
    yield from (b"x" * 65_536 for _ in range(256))


def parts_without_end() -> Iterator[bytes]:
    yield from (b"2026-11-21T11:12:07.0054Z stderr P " + b"x" * 16_000 + b"\n" for _ in range(1000))


def value_without_end() -> Iterator[bytes]:
    yield b'E1121 11:12:09.000000 4385 s.go:1] "Error scheduling pod; retrying" err=<\n'
    yield from (b"\t" + b"x" * 16_000 + b"\n" for _ in range(1000))


def traces_without_end() -> Iterator[bytes]:
    for number in range(4_000):
        yield b'I1121 11:12:07.000000 1 trace.go:1] Trace[%d]: "Scheduling" namespace:d,name:a%d ' % (number, number)
        yield b"(21-Nov-2026 11:12:07.000) (total time: 154ms):\n"
        yield b'Trace[%d]: ---"%s" 4ms (06:04:00.256)\n' % (number, b"s" * 500)


def attempts_without_end() -> Iterator[bytes]:
    for number in range(9_500):
        yield b'I1121 11:12:07.%06d 1 s.go:1] "Attempting to schedule pod" pod="d/p%d"\n' % (number, number)


def scores_without_end() -> Iterator[bytes]:
    for number in range(10_000):
        line = (
            b'I1121 11:12:07.000000 1 s.go:1] "Plugin scored node for pod" pod="d/p" plugin="P%d" node="%s%d" score=1\n'
        )
        yield line % (number % 500, b"n" * 200, number)


def in_pieces(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield parts joined to pieces as a file is read."""
    piece = bytearray()
    for part in parts:
        piece += part
        if len(piece) >= 1 << 16:
            yield bytes(piece)
            piece.clear()
    yield bytes(piece)


FLOODS: list[Callable[[], Iterator[bytes]]] = [
    endless_line,
    parts_without_end,
    value_without_end,
    traces_without_end,
    attempts_without_end,
    scores_without_end,
]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
def test_what_never_ends_is_held_in_bounded_memory(flood: Callable[[], Iterator[bytes]]) -> None:
    session, now = Session(START), START + 60 * SECOND
    tracemalloc.start()
    try:
        for piece in in_pieces(flood()):
            now += SECOND // 100
            session.log("log", piece, now)
            session.expire(now)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 24 * MIB
