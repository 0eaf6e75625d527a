"""Statistics of recordings: counts are right, and bounded where a recording is long or hostile."""

import tracemalloc
from collections.abc import Iterable
from pathlib import Path

from podtrail.otlp import Group, encode_span, frame, resource_header, scope_header, write_request
from podtrail.otlp.arrival import with_arrival
from podtrail.recording import Record, RecordingDecoder
from podtrail.recording.statistics import Names, Statistics, Traces
from podtrail.testing.attempts import START, MadeAttempt, No

SECOND = 1_000_000_000
HEADERS = resource_header({"service.name": "kube-scheduler"}), scope_header("s")


def group(trace: int, *spans: tuple[int, int], start: int = START, end: int = START + 5) -> Group:
    """Return spans, each an id and its parent's."""
    id = trace.to_bytes(16, "big")
    raw = [
        encode_span(
            trace_id=id, span_id=span.to_bytes(8, "big"), parent_span_id=parent.to_bytes(8, "big"), name="n",
            start=start, end=end,
        )
        for span, parent in spans
    ]  # fmt: skip
    return Group(*HEADERS, id, frame(raw), len(raw))


def count(requests: Iterable[tuple[int | None, list[Group]]]) -> Statistics:
    decoder = RecordingDecoder("r.otlp")
    found = Statistics()
    for arrival, groups in requests:
        raw = write_request(groups) if arrival is None else with_arrival(write_request(groups), arrival)
        for record in decoder.feed(len(raw).to_bytes(4, "big") + raw):
            assert isinstance(record, Record)
            found.add(record)
    return found


def test_orphans_and_duplicates_are_found_across_requests() -> None:
    found = count(
        [
            (START + 10, [group(1, (1, 0), (2, 1), (3, 9))]),
            (START + 20, [group(1, (1, 0)), group(2, (1, 7))]),
            (START + 30, [group(2, (7, 0))]),
        ]
    )
    assert (found.traces.count, found.traces.duplicates, found.traces.orphans) == (2, 1, 1)
    assert found.traces.let_go == 0


def test_clocks_that_differ_and_requests_out_of_order_are_found() -> None:
    found = count(
        [
            (START + 10 * SECOND, [group(1, (1, 0))]),
            (START + 5 * SECOND, [group(2, (1, 0), end=START + 17 * SECOND)]),
            (None, [group(3, (1, 0), end=START + SECOND)]),
            (START + 20 * SECOND, [group(4, (1, 0), start=START + 9, end=START)]),
        ]
    )
    assert (found.put_off, found.early, found.earliest) == (1, 1, 7 * SECOND)
    assert (found.untimed, found.odd_times) == (1, 1)
    assert (found.arrivals.first, found.arrivals.last) == (START + 10 * SECOND, START + 20 * SECOND)


def test_attempts_and_rejections_are_counted() -> None:
    full = No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=["node-1"])
    helpless = No(plugin="DefaultPreemption", reason="no victims", nodes=(), point="postFilter")
    message = "0/3 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint(s)."
    made = [
        MadeAttempt(result="Unschedulable", refusals=[full, full, helpless]),
        MadeAttempt(number=2, result="Unschedulable", message=message),
        MadeAttempt(number=3, namespace="shop", uid="other"),
    ]
    found = count([(START + 60 * SECOND, attempt.groups()) for attempt in made])
    assert found.attempts == 3
    assert found.results.counts == {"Unschedulable": 2, "Success": 1}
    assert found.namespaces.counts == {"default": 2, "shop": 1}
    assert len(found.pods.counts) == 2
    assert found.rejections.counts == {"NodeResourcesFit": 3, "TaintToleration": 1}


def test_names_beyond_the_bound_are_counted_together() -> None:
    names = Names(most=2)
    for name in ("a", "b", "c", "a", "d"):
        names.add(name)
    assert (names.counts, names.others) == ({"a": 2, "b": 1}, 2)


def test_traces_that_rest_longest_are_let_go_and_their_orphans_stay_counted() -> None:
    traces = Traces(most_spans=3)
    found = count([])
    found.traces = traces
    for trace in (1, 2, 1, 3):
        one = group(trace, (trace * 10 + traces.count, 5))
        record = next(iter(RecordingDecoder("r.otlp").feed(_framed(one))))
        assert isinstance(record, Record)
        found.add(record)
    assert (traces.count, traces.let_go, traces.orphans) == (3, 1, 4)


def _framed(one: Group) -> bytes:
    raw = write_request([one])
    return len(raw).to_bytes(4, "big") + raw


def test_a_trace_without_end_takes_bounded_memory() -> None:
    def peak(spans: int) -> int:
        found = Statistics(traces=Traces(most_spans=1000))
        record = next(iter(RecordingDecoder("r.otlp").feed(_framed(group(1, (1, 0))))))
        assert isinstance(record, Record)
        requests = [group(1, *((at + n, 1) for n in range(100))) for at in range(1, spans, 100)]
        tracemalloc.start()
        for one in requests:
            found._group(one, record)
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found.spans == spans
        return highest

    assert peak(10_000) < 1.5 * peak(3000)


def test_a_real_recording_is_what_it_is() -> None:
    data = Path(__file__).parents[1] / "data" / "recordings"
    decoder = RecordingDecoder("apiserver.otlp")
    found = Statistics()
    for record in decoder.feed((data / "apiserver.otlp").read_bytes()):
        assert isinstance(record, Record)
        found.add(record)
    assert (found.requests, found.spans, found.traces.count, found.attempts) == (10, 180, 57, 0)
    assert found.services.counts == {"etcd": 100, "apiserver": 80}
