"""What the debug exporter shows."""

import asyncio
from typing import Any

import pytest

from podtrail.otlp import Batch, Event, Group, Link, Status, Value, encode_span, frame, resource_header, scope_header
from tests.exporters.conftest import make_batch, make_exporter

TRACE = bytes(15) + b"\x01"


def shown(caplog: pytest.LogCaptureFixture, exporter: Any, *batches: Batch) -> list[str]:
    async def main() -> None:
        async with exporter:
            for batch in batches:
                assert await exporter.send(batch) == 0

    caplog.set_level("INFO")
    asyncio.run(main())
    return [record.message for record in caplog.records if record.name == "podtrail.test"]


def test_shows_a_line_a_batch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert shown(caplog, make_exporter("debug"), make_batch(2, groups=3)) == ["6 spans of 3 traces"]


def test_shows_a_line_a_span(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (text,) = shown(caplog, make_exporter("debug", verbosity="normal"), make_batch(2))
    assert len(text.splitlines()) == 3
    assert "'Filter'" in text


def test_shows_everything_and_lets_nothing_steer_the_terminal(caplog: pytest.LogCaptureFixture) -> None:
    span = encode_span(
        trace_id=TRACE,
        span_id=b"12345678",
        name="\x1b[2Jgone",
        start=0,
        end=9,
        kind=77,
        status=Status(2, "too\nbad"),
        attributes={"k\x1b": "v\x1b"},
        events=[Event(5, "e", {"at": 1})],
        links=[Link(TRACE, b"87654321", {"podtrail.link.type": "creation"})],
    )
    group = Group(resource_header({"service.name": "s"}), scope_header("scope"), TRACE, frame([span]), 1)
    (text,) = shown(caplog, make_exporter("debug", verbosity="detailed"), Batch([group], 0))
    assert "\x1b" not in text
    assert text.splitlines()[1:] == [
        f"Trace ID: {TRACE.hex()}",
        "  \\x1b[2Jgone  duration unknown",
        "       ID: 3132333435363738, Kind: 77",
        "       Start time: 1970-01-01 00:00:00.000000000 +0000 UTC, End time: 1970-01-01 00:00:00.000000009 +0000 UTC",
        "       Status code: Error, Status message: too\\nbad",
        "       Resource attributes:",
        "         -> service.name: Str(s)",
        "       InstrumentationScope scope",
        "       Attributes:",
        "         -> k\\x1b: Str(v\\x1b)",
        "       Event e, Timestamp: 1970-01-01 00:00:00.000000005 +0000 UTC (+5 ns):",
        "         -> at: Int(1)",
        f"       Link to Trace ID: {TRACE.hex()}, ID: 3837363534333231:",
        "         -> podtrail.link.type: Str(creation)",
    ]


def test_spans_stand_below_their_parents_by_start_whatever_the_order_they_came_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def spans(*told: tuple[bytes, bytes, str, int]) -> bytes:
        return frame(
            [
                encode_span(trace_id=TRACE, span_id=own, parent_span_id=parent, name=name, start=at, end=at + 2_500_000)
                for own, parent, name, at in told
            ]
        )

    def id(letter: str) -> bytes:
        return letter.encode() * 8

    scheduler, server = (resource_header({"service.name": name}) for name in ("kube-scheduler", "kube-apiserver"))
    inner = spans((id("c"), id("a"), "late", 30), (id("b"), id("a"), "early", 20), (id("a"), b"", "root", 10))
    outer = spans((id("d"), id("b"), "POST", 25), (id("e"), id("x"), "orphan", 5), (id("f"), id("f"), "own parent", 40))
    groups = [
        Group(scheduler, scope_header("s"), TRACE, inner, 3),
        Group(server, scope_header("s"), TRACE, outer, 3),
    ]
    (text,) = shown(caplog, make_exporter("debug", verbosity="detailed"), Batch(groups, 0))
    names = [line for line in text.splitlines() if line.endswith("2.5 ms")]
    assert names == [
        "  orphan  2.5 ms",
        "  root  2.5 ms",
        "    early  2.5 ms",
        "      POST  2.5 ms",
        "    late  2.5 ms",
        "  own parent  2.5 ms",
    ]
    assert "Parent ID: 7878787878787878, not in this batch" in text
    assert [line.strip() for line in text.splitlines() if "service.name" in line] == [
        "-> service.name: Str(kube-apiserver)",
        "-> service.name: Str(kube-scheduler)",
        "-> service.name: Str(kube-apiserver)",  # of POST, whose parent is the scheduler's
        "-> service.name: Str(kube-apiserver)",
    ]


@pytest.mark.parametrize(
    ("value", "shown_as"),
    [
        (True, "Bool(true)"),
        (5, "Int(5)"),
        (0.25, "Double(0.25)"),
        ("x\n\u202e", "Str(x\\n\\u202e)"),
        (b"\x01\xff", "Bytes(01ff)"),
        (["a", 1], 'Slice(["a", 1])'),
        ({"k": ["v"]}, 'Map({"k": ["v"]})'),
    ],
)
def test_values_say_their_type_as_the_collector_does(
    caplog: pytest.LogCaptureFixture, value: Value, shown_as: str
) -> None:
    span = encode_span(trace_id=TRACE, span_id=b"12345678", name="s", start=1, end=2, attributes={"a": value})
    group = Group(resource_header({}), scope_header("s"), TRACE, frame([span]), 1)
    (text,) = shown(caplog, make_exporter("debug", verbosity="detailed"), Batch([group], 0))
    assert f"-> a: {shown_as}" in text


@pytest.mark.parametrize(("thereafter", "expected"), [(0, 2), (3, 4), (1, 10)])
def test_shows_no_more_than_asked_for(caplog: pytest.LogCaptureFixture, thereafter: int, expected: int) -> None:
    exporter = make_exporter("debug", sampling_initial=2, sampling_thereafter=thereafter)
    lines = shown(caplog, exporter, *[make_batch()] * 10)
    assert expected <= len(lines) <= expected + 2  # a second may end meanwhile
