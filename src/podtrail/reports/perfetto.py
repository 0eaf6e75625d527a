"""Traces as trace events (the JSON that Perfetto and chrome://tracing open): a process a service, links as arrows.

Spans that lie within each other share a thread, as the format wants it; one that overlaps another stands on a thread
of its own. Times are microseconds since the first start, which `otherData` tells: a double can't hold today's in
nanoseconds.
"""

import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from podtrail.otlp import Group, Link, SpanView, split
from podtrail.story import is_back_link, link_type, stamp
from podtrail.story.span import SpanStory, tell_span

_MOST_SPANS: Final = 50_000


class DrawnTrace(NamedTuple):
    """A trace to be drawn."""

    title: str
    """What its threads are called: `attempt 3`."""
    groups: Sequence[Group]


class _Event(NamedTuple):
    start: int
    end: int
    span: SpanStory
    links: Sequence[Link]
    title: str
    trace_id: bytes


@dataclass(slots=True)
class _Lanes:
    """The threads of one trace in one service. Spans are placed by start, of equal starts the longest first."""

    stacks: list[list[tuple[int, bytes]]] = field(default_factory=list)
    """Of each thread the spans that are open: end and id."""
    free: list[tuple[int, int]] = field(default_factory=list)
    """When each thread is free, and which it is."""
    of_span: dict[bytes, int] = field(default_factory=dict)

    def place(self, event: _Event) -> int:
        """Return the thread of a span: its parent's where it lies within it and nothing else is open there."""
        above = self.of_span.get(event.span.parent_span_id)
        if above is not None:
            stack = self.stacks[above]
            while stack and stack[-1][0] <= event.start and stack[-1][1] != event.span.parent_span_id:
                stack.pop()
            if stack and stack[-1][1] == event.span.parent_span_id and event.end <= stack[-1][0]:
                return self._put(above, event)
        if self.free and self.free[0][0] <= event.start:
            lane = heapq.heappop(self.free)[1]
            self.stacks[lane] = []
        else:
            lane = len(self.stacks)
            self.stacks.append([])
        heapq.heappush(self.free, (event.end, lane))
        return self._put(lane, event)

    def _put(self, lane: int, event: _Event) -> int:
        self.stacks[lane].append((event.end, event.span.span_id))
        self.of_span[event.span.span_id] = lane
        return lane


def to_perfetto(traces: Sequence[DrawnTrace]) -> bytes:
    """Return traces as one JSON object; spans beyond 50,000 are left out, and counted in `otherData`."""
    events = sorted(_events(traces), key=lambda one: (one.start, -one.end))
    left_out = max(0, len(events) - _MOST_SPANS)
    events = events[:_MOST_SPANS]
    first = events[0].start if events else 0
    written = list(_written(events, first))
    other = {"start": stamp(first), "startUnixNano": str(first), "spansLeftOut": left_out}
    whole = {"displayTimeUnit": "ns", "otherData": other, "traceEvents": written}
    return json.dumps(whole, separators=(",", ":"), allow_nan=False).encode()


def _events(traces: Sequence[DrawnTrace]) -> Iterator[_Event]:
    seen: set[tuple[bytes, bytes]] = set()
    for trace in traces:
        for group in trace.groups:
            for raw in split(group.spans):
                view = SpanView(raw)
                span = tell_span(raw, group)
                if (group.trace_id, span.span_id) not in seen:
                    seen.add((group.trace_id, span.span_id))
                    end = span.start_unix_nano + max(0, span.duration or 0)
                    yield _Event(span.start_unix_nano, end, span, view.links, trace.title, group.trace_id)


def _written(events: Sequence[_Event], first: int) -> Iterator[dict[str, Any]]:
    processes: dict[str, int] = {}
    threads: dict[tuple[str, bytes, int], int] = {}
    lanes: dict[tuple[str, bytes], _Lanes] = {}
    places: dict[tuple[bytes, bytes], dict[str, Any]] = {}
    for event in events:
        service = event.span.service or "no service name"
        lane = lanes.setdefault((service, event.trace_id), _Lanes()).place(event)
        if service not in processes:
            processes[service] = len(processes) + 1
            yield _named("process_name", processes[service], 0, service)
        place = service, event.trace_id, lane
        if place not in threads:
            threads[place] = len(threads) + 1
            yield _named("thread_name", processes[service], threads[place], f"{event.title} {event.trace_id.hex()[:8]}")
        at = {"pid": processes[service], "tid": threads[place], "ts": (event.start - first) / 1_000}
        places[event.trace_id, event.span.span_id] = at
        yield {
            "name": event.span.name or "(no name)",
            "cat": event.span.kind,
            "ph": "X",
            **at,
            "dur": (event.end - event.start) / 1_000,
            "args": _arguments(event),
        }
    yield from _arrows(events, places)


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _arguments(event: _Event) -> dict[str, str]:
    span = event.span
    told = {"trace_id": event.trace_id.hex(), "span_id": span.span_id.hex(), "status": span.status}
    told |= {"message": span.message} if span.message else {}
    return {**{f"attribute {key}": value for key, value in span.attributes}, **told}


def _arrows(events: Sequence[_Event], places: dict[tuple[bytes, bytes], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the links between drawn spans, from the earlier to the later."""
    number = 0
    for event in events:
        here = places[event.trace_id, event.span.span_id]
        for link in event.links:
            there = places.get((link.trace_id, link.span_id))
            if there is None or is_back_link(link):
                continue
            number += 1
            begin, end = sorted((here, there), key=lambda at: float(at["ts"]))
            common = {"cat": "link", "name": link_type(link) or "link", "id": number}
            yield {"ph": "s", **common, **begin}
            yield {"ph": "f", "bp": "e", **common, **end}
