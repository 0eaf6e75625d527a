"""What the author of components tests: the contract of processors, what an exporter answers, what a receiver makes."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from example_components import group_by_trace, job_log, line_tcp, short_spans

from podtrail.component import Context, Lost, Permanent, Refused, Retryable, StartError
from podtrail.config.types import MILLISECOND, SECOND
from podtrail.otlp import Batch, Group, SpanView, Verdict, encode_span, frame, resource_header, scope_header, split
from podtrail.testing.contracts import Arrival, check_processor

CONTEXT = Context(id="tested", log=logging.LoggerAdapter(logging.getLogger("tested")))


def group(trace: int, *durations: int) -> Group:
    """Return spans of one trace that took so many nanoseconds."""
    id = trace.to_bytes(16, "big")
    spans = [
        encode_span(
            trace_id=id, span_id=(at + 1).to_bytes(8, "big"), name=f"span-{at}", start=SECOND, end=SECOND + took
        )
        for at, took in enumerate(durations)
    ]
    return Group(resource_header({"service.name": "test"}), scope_header("test"), id, frame(spans), len(spans))


def verdict(trace: int) -> Verdict:
    """Return what a sampler says about a trace."""
    id = trace.to_bytes(16, "big")
    return Verdict(id, "sampled", "failed", "it failed", decided_at=2 * SECOND, arrived=SECOND, spans=1)


ARRIVALS = [
    Arrival(1 * SECOND, Batch([group(1, 5, 2 * SECOND), group(2, 7)], SECOND)),
    Arrival(1 * SECOND, Batch([group(1, SECOND)], SECOND, [verdict(3)])),
    Arrival(4 * SECOND, Batch([group(4, SECOND, SECOND)], 4 * SECOND)),
    Arrival(4 * SECOND, Batch([group(5, SECOND), group(6, SECOND)], 4 * SECOND)),
]


@pytest.mark.parametrize(
    "create",
    [
        lambda context: short_spans.ShortSpans(short_spans.Config(attributes={"env": "test"}), context),
        lambda context: group_by_trace.GroupByTrace(group_by_trace.Config(), context),
        lambda context: group_by_trace.GroupByTrace(group_by_trace.Config(num_traces=1), context),
    ],
)
def test_processors_keep_the_contract(create: Callable[[Context], Any]) -> None:
    check_processor(create, ARRIVALS)


def test_short_spans_are_dropped_and_counted_and_the_others_edited() -> None:
    context = Context(id="short_spans")
    config = short_spans.Config(shorter_than=10 * MILLISECOND, attributes={"env": "test"})
    [out] = short_spans.ShortSpans(config, context).add(ARRIVALS[0].batch, SECOND).out

    [span] = [SpanView(raw) for group in out.groups for raw in split(group.spans)]
    assert (span.name, span.attributes) == ("span-1", {"env": "test"})
    assert context.ledger.sampled_out == 2


def test_a_trace_leaves_as_one_and_what_there_is_no_room_for_is_in_the_ledger() -> None:
    context = Context(id="group_by_trace")
    processor = group_by_trace.GroupByTrace(group_by_trace.Config(num_traces=1), context)
    for arrival in ARRIVALS[:2]:
        processor.add(arrival.batch, arrival.now)

    assert context.ledger.dropped == {"group_by_trace_full": 3}
    assert processor.deadline() == 2 * SECOND
    [batch] = processor.expire(2 * SECOND, limit=1000)
    assert [group.trace_id[-1] for group in batch.groups] == [1]
    assert processor.held() == 0


async def sent(batch: Batch, answer: str | None, *, decisions: bool = False) -> tuple[int, Sequence[str]]:
    """Send a batch to somebody who answers so; return what `send` returns and the lines that came."""
    came: list[str] = []

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := (await reader.readline()).decode().strip():
            came.append(line)
        writer.write(f"{answer}\n".encode())
        writer.close()

    async with await asyncio.start_server(take, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        if answer is None:
            server.close()
        config = line_tcp.Config(endpoint=f"127.0.0.1:{port}", decisions=decisions)
        async with line_tcp.LineTcp(config, CONTEXT) as exporter:
            return await exporter.send(batch), came


def test_spans_and_decisions_leave_as_lines_and_rejected_spans_are_counted() -> None:
    batch = Batch([group(1, 5)], SECOND, [verdict(1)])
    rejected, lines = asyncio.run(sent(batch, "ok 1", decisions=True))
    trace = f"{1:032x}"
    assert lines == [f"span {trace} {1:016x} 'span-0'", f"decision {trace} sampled failed 'it failed'"]
    assert rejected == 1


@pytest.mark.parametrize(("answer", "error"), [("busy 7", Retryable), ("never", Permanent), (None, Retryable)])
def test_what_the_other_side_answers_decides_whether_it_is_worth_another_try(
    answer: str | None, error: type[Exception]
) -> None:
    with pytest.raises(error) as raised:
        asyncio.run(sent(ARRIVALS[0].batch, answer))
    if isinstance(raised.value, Retryable) and answer is not None:
        assert raised.value.after == 7


def test_a_job_is_a_span_and_is_offered_until_it_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "jobs.jsonl"
    jobs = [{"job": "backup", "start": 1, "seconds": 0.5}, {"job": "mail", "start": 2, "seconds": 1, "error": "no"}]
    path.write_text("\n".join(["nonsense", *map(json.dumps, jobs)]), encoding="utf-8")
    answers: list[Exception | None] = [Refused("full", after=0.001), None, Lost(1)]
    came: list[Batch] = []

    async def consume(batch: Batch) -> None:
        came.append(batch)
        if (answer := answers.pop(0)) is not None:
            raise answer

    async def run() -> None:
        async with job_log.JobLog(job_log.Config(path=str(path)), CONTEXT) as receiver:
            await receiver.run(consume)

    asyncio.run(run())
    spans = [SpanView(raw) for batch in came for group in batch.groups for raw in split(group.spans)]
    assert [(span.name, span.duration, span.status.code) for span in spans] == [
        ("backup", SECOND // 2, 0),
        ("backup", SECOND // 2, 0),
        ("mail", SECOND, 2),
    ]


def test_a_log_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    async def enter() -> None:
        async with job_log.JobLog(job_log.Config(path=str(tmp_path / "none")), CONTEXT):
            pass

    with pytest.raises(StartError, match="No such file"):
        asyncio.run(enter())
