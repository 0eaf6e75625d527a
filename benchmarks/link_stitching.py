"""What link_stitching costs spans that are no concern of it, against reading their ids, and what an attempt costs."""

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.otlp import Batch, Group, encode_span, frame, raw_span_reader, resource_header, scope_header
from podtrail.recording import Damage
from podtrail.recording.reader import read_recording
from podtrail.testing.attempts import START, MadeAttempt, no_room

SPANS_A_GROUP = 8
GROUPS = 64
ROUNDS = 15
SECONDS_A_ROUND = 0.02
ATTEMPTS = 2_000
NODE = Path(__file__).parents[1] / "tests/data/recordings/node/podtrail/spans.otlp.zst"
Mode = Literal["link", "lifecycle", "merge"]
MODES: tuple[Mode, ...] = ("link", "lifecycle", "merge")
MODE_ROUNDS = 5


def unconcerned() -> Batch:
    """Return 64 groups of eight spans of about 190 bytes, as a web server sends them."""
    resource, scope = resource_header({"service.name": "shop"}), scope_header("http")
    groups = []
    for trace in range(1, GROUPS + 1):
        trace_id = trace.to_bytes(16, "big")
        spans = [
            encode_span(
                trace_id=trace_id,
                span_id=number.to_bytes(8, "big"),
                parent_span_id=b"" if number == 1 else (1).to_bytes(8, "big"),
                name="GET /carts/{id}",
                start=START,
                end=START + 1_000_000,
                attributes={"http.request.method": "GET", "url.path": "/carts/1234", "http.response.status_code": 200},
            )
            for number in range(1, SPANS_A_GROUP + 1)
        ]
        groups.append(Group(resource, scope, trace_id, frame(spans), len(spans)))
    return Batch(groups, START)


def microseconds(work: Callable[[], object], units: int) -> float:
    """Return the CPU microseconds a unit that work on so many takes: the best of several rounds."""
    calls, best = 1, float("inf")
    for _ in range(ROUNDS):
        while True:
            began = time.process_time()
            for _ in range(calls):
                work()
            took = time.process_time() - began
            if took >= SECONDS_A_ROUND:
                break
            calls *= 2
        best = min(best, took / calls / units)
    return best * 1e6


def attempts_cost() -> float:
    """Return the CPU microseconds of an attempt from coming in to leaving, kept, with number and links."""
    batches = [
        no_room(uid=f"uid-{pod}", number=number, start=START + number).batch()
        for pod in range(ATTEMPTS // 10)
        for number in range(1, 11)
    ]
    processor = LinkStitching(Config(), Context(id="link_stitching"))
    gc.collect()
    began = time.process_time()
    for at, batch in enumerate(batches):
        processor.add(batch, START + at)
    processor.drain(START + ATTEMPTS)
    return (time.process_time() - began) / ATTEMPTS * 1e6


def dropped_cost() -> float:
    """Return the CPU microseconds of learning from the verdict on an attempt that was sampled out."""
    batches = [
        MadeAttempt(uid=f"uid-{at // 10}", number=at % 10 + 1, start=START + at).batch("not_sampled")
        for at in range(ATTEMPTS)
    ]
    processor = LinkStitching(Config(), Context(id="link_stitching"))
    gc.collect()
    began = time.process_time()
    for at, batch in enumerate(batches):
        processor.add(batch, START + at)
    return (time.process_time() - began) / ATTEMPTS * 1e6


def mode_costs() -> dict[Mode, float]:
    """Return the CPU microseconds of a span of a real node's story, by mode; about one in three is about a Pod."""
    recorded = [each for each in read_recording(NODE) if not isinstance(each, Damage)]
    spans = sum(group.span_count for each in recorded for group in each.intake.groups)
    best: dict[Mode, float] = dict.fromkeys(MODES, float("inf"))
    for _ in range(MODE_ROUNDS):
        for mode in MODES:
            processor = LinkStitching(Config(mode=mode), Context(id="link_stitching"))
            gc.collect()
            began = time.process_time()
            for each in recorded:
                while (due := processor.deadline()) is not None and due <= each.arrival:
                    processor.expire(due, spans)
                processor.add(Batch(each.intake.groups, each.arrival), each.arrival)
            processor.drain(recorded[-1].arrival)
            best[mode] = min(best[mode], (time.process_time() - began) / spans * 1e6)
    return best


def main() -> None:
    """Print the figures of one run."""
    batch = unconcerned()
    processor = LinkStitching(Config(), Context(id="link_stitching"))
    read = raw_span_reader(("span_id",))
    floor = microseconds(lambda: [read(group.spans) for group in batch.groups], GROUPS)
    passing = microseconds(lambda: processor.add(batch, START), GROUPS)
    first = microseconds(lambda: LinkStitching(Config(), Context(id="link_stitching")).add(batch, START), GROUPS)
    print(
        f"spans of no concern pass   {passing:6.2f} us a group of {SPANS_A_GROUP}, {passing / SPANS_A_GROUP:.2f} a span"
    )
    print(f"the first of their trace   {first:6.2f} us a group, {first / SPANS_A_GROUP:.2f} a span")
    print(f"reading their span ids     {floor:6.2f} us a group: passing is {passing / floor:.2f} of that")
    print(f"an attempt kept            {attempts_cost():6.1f} us in all, numbered and linked, its neighbour told")
    print(f"an attempt sampled out     {dropped_cost():6.1f} us to learn from its verdict")
    costs = mode_costs()
    for mode, cost in costs.items():
        print(f"mode: {mode:<20} {cost:6.2f} us a span of a node's story, {cost / costs['link']:.2f} of mode: link")
