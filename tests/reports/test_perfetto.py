import json
from collections import defaultdict
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import Group, encode_span, frame, resource_header, scope_header
from podtrail.reports.perfetto import DrawnTrace, to_perfetto
from podtrail.testing.attempts import START, no_room

TRACE = b"t" * 16


def group(*spans: bytes, service: str = "s") -> Group:
    return Group(resource_header({"service.name": service}), scope_header(""), TRACE, frame(list(spans)), len(spans))


def span(number: int, start: int, end: int, parent: int | None = None) -> bytes:
    above = bytes([parent + 1]) * 8 if parent is not None else b""
    return encode_span(
        trace_id=TRACE, span_id=bytes([number + 1]) * 8, parent_span_id=above, name=f"n{number}", start=start, end=end
    )


def drawn(*groups: Group) -> list[dict[str, Any]]:
    told = json.loads(to_perfetto([DrawnTrace("attempt 1", groups)]))
    return [event for event in told["traceEvents"] if event["ph"] == "X"]


def test_times_are_microseconds_since_the_start() -> None:
    told = json.loads(to_perfetto([DrawnTrace("a", no_room().groups())]))
    assert told["otherData"] == {"start": "2026-09-21T14:13:20Z", "startUnixNano": str(START), "spansLeftOut": 0}
    root = next(event for event in told["traceEvents"] if event["name"] == "SchedulePod")
    assert (root["ts"], root["dur"]) == (0, 9000)
    assert root["args"]["attribute k8s.pod.name"] == "web-0"


def test_services_are_processes_and_children_share_the_thread() -> None:
    both = drawn(group(span(0, 0, 100), span(1, 10, 90, parent=0)), group(span(2, 20, 30, parent=1), service="t"))
    assert [event["pid"] for event in both] == [1, 1, 2]
    assert both[0]["tid"] == both[1]["tid"] != both[2]["tid"]


def test_spans_beside_each_other_share_a_thread_and_those_that_overlap_do_not() -> None:
    spans = [span(0, 0, 100), span(1, 10, 30, parent=0), span(2, 30, 60, parent=0), span(3, 40, 80, parent=0)]
    threads = [event["tid"] for event in drawn(group(*spans))]
    assert threads[0] == threads[1] == threads[2] != threads[3]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.none() | st.integers(0, 20)), min_size=1, max_size=20)
)
def test_spans_of_one_thread_lie_within_each_other_or_apart(made: list[tuple[int, int, int | None]]) -> None:
    spans = [span(n, start, start + length, above) for n, (start, length, above) in enumerate(made)]
    events = drawn(group(*spans))
    assert len(events) == len(made)
    threads: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        start = round(event["ts"] * 1000)
        threads[event["tid"]].append((start, start + round(event["dur"] * 1000)))
    for placed in threads.values():
        for n, (start, end) in enumerate(placed):
            for other_start, other_end in placed[n + 1 :]:
                apart = other_start >= end or other_end <= start
                within = start <= other_start and other_end <= end
                assert apart or within


def test_nothing_held_is_an_empty_picture() -> None:
    assert json.loads(to_perfetto([]))["traceEvents"] == []
