"""What the debug exporter shows."""

import asyncio
from typing import Any

import pytest

from podtrail.otlp import Batch, Event, Group, Link, Status, encode_span, frame, resource_header, scope_header

TRACE = bytes(15) + b"\x01"


def shown(caplog: pytest.LogCaptureFixture, exporter: Any, *batches: Batch) -> list[str]:
    async def main() -> None:
        async with exporter:
            for batch in batches:
                assert await exporter.send(batch) == 0

    caplog.set_level("INFO")
    asyncio.run(main())
    return [record.message for record in caplog.records if record.name == "podtrail.test"]


def test_shows_a_line_a_batch(caplog: pytest.LogCaptureFixture, make_exporter: Any, make_batch: Any) -> None:
    assert shown(caplog, make_exporter("debug"), make_batch(2, groups=3)) == ["6 spans of 3 traces"]


def test_shows_a_line_a_span(caplog: pytest.LogCaptureFixture, make_exporter: Any, make_batch: Any) -> None:
    (text,) = shown(caplog, make_exporter("debug", verbosity="normal"), make_batch(2))
    assert len(text.splitlines()) == 3
    assert "'Filter'" in text


def test_shows_everything_and_lets_nothing_steer_the_terminal(
    caplog: pytest.LogCaptureFixture, make_exporter: Any
) -> None:
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
    assert "unknown" in text.splitlines()[2]
    for part in ("service.name='s'", "kind 77", "status error 'too\\nbad'", "event 'e'", "link to", "='creation'"):
        assert part in text


@pytest.mark.parametrize(("thereafter", "expected"), [(0, 2), (3, 4), (1, 10)])
def test_shows_no_more_than_asked_for(
    caplog: pytest.LogCaptureFixture, make_exporter: Any, make_batch: Any, thereafter: int, expected: int
) -> None:
    exporter = make_exporter("debug", sampling_initial=2, sampling_thereafter=thereafter)
    lines = shown(caplog, exporter, *[make_batch()] * 10)
    assert expected <= len(lines) <= expected + 2  # a second may end meanwhile
