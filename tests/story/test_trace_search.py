import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.otlp import Group, Status, encode_span, frame, resource_header, scope_header
from podtrail.story import Library, SearchError, TraceStore
from podtrail.story.trace_search import TRACE_LANGUAGE, find_traces, read_trace_search, trace_row, with_pods
from podtrail.testing.attempts import START, MadeAttempt, no_room

DOCS = Path(__file__).parents[2] / "docs" / "finding.md"
S = 10**9
NOW = START + 3_600 * S


def span(trace: int, at: int, parent: int = 0, *, start: int = 0, took: int = S, error: bool = False) -> bytes:
    return encode_span(
        trace_id=trace.to_bytes(16, "big"),
        span_id=at.to_bytes(8, "big"),
        parent_span_id=parent.to_bytes(8, "big") if parent else b"",
        name=f"span {at}",
        start=START + start * S,
        end=START + start * S + took,
        status=Status(2, "no") if error else None,
    )


def group(trace: int, *spans: bytes, service: str = "kubelet") -> Group:
    header = resource_header({"service.name": service})
    return Group(header, scope_header("s"), trace.to_bytes(16, "big"), frame(list(spans)), len(spans))


@pytest.fixture(scope="module")
def library() -> Library:
    told = Library()
    told.keep(no_room().groups(), START)
    told.decide("traces", no_room().batch())
    told.keep(MadeAttempt(uid="slow", name="api-0", start=NOW - 60 * S, duration=5 * S).groups(), START)
    told.keep([group(7, span(7, 1, took=90 * S), span(7, 2, 1, error=True))], START)
    return told


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", {"web-0", "api-0", "span 1"}),
        ("name:schedulepod", {"web-0", "api-0"}),
        ("service:kube*", {"web-0", "api-0", "span 1"}),
        ("service:kubelet", {"span 1"}),
        ("default/API", {"api-0"}),
        ("state:error", {"web-0", "span 1"}),
        ("state:unschedulable", {"web-0"}),
        ("state:ok,success", {"api-0"}),
        ("slower:1s", {"api-0", "span 1"}),
        ("decision:Kept", {"web-0"}),
        ("policy:fail*", {"web-0"}),
        ("decision:not-sampled", set()),
        ("longer:6s", {"span 1"}),
        ("spans:>2 -name:x", {"web-0", "api-0"}),
        ("since:2m", {"api-0"}),
        (f"{7:032x}"[:20], {"span 1"}),
    ],
)
def test_traces_are_found_by_root_service_pod_state_and_duration(
    library: Library, search: str, found: set[str]
) -> None:
    told = find_traces(with_pods(library, library.store.outlines().items()), read_trace_search(search, NOW), "time")
    rows = [trace_row(library, one) for one in told.traces]
    assert {row.pod_name or row.name for row in rows} == found
    assert told.held == 3


def test_a_trace_is_listed_with_its_pod_and_decision(library: Library) -> None:
    told = find_traces(
        with_pods(library, library.store.outlines().items()), read_trace_search("", NOW), "duration"
    ).traces
    rows = [trace_row(library, one) for one in told]
    assert [row.duration for row in rows] == [90 * S, 5 * S, 9_000_000]
    assert (rows[2].pod_name, rows[2].result, rows[2].policy) == ("web-0", "Unschedulable", "failed")
    assert (rows[0].service, rows[0].errors, rows[0].spans, rows[0].pod_key) == ("kubelet", 1, 2, "")


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("state:bad", "There is no state bad. "),
        ("decision:lost", "Decision is one of sampled, kept, not_sampled, not_kept, dropped."),
        ("nam:a", "There is no key nam:. Did you mean name:? Keys: name:, service:, state:, "),
    ],
)
def test_a_search_that_is_not_understood_is_told(search: str, words: str) -> None:
    with pytest.raises(SearchError) as caught:
        read_trace_search(search, NOW)
    assert str(caught.value).startswith(words)


@given(st.permutations([span(1, 1), span(1, 2, 1, start=-3), span(1, 3, 9, start=-5, took=2 * S), span(1, 4, start=2)]))
def test_a_trace_is_named_after_its_first_root_in_whatever_order_spans_come(spans: list[bytes]) -> None:
    store = TraceStore(1 << 20)
    for one in spans:
        store.put([group(1, one)])
    (outline,) = store.outlines().values()
    assert (outline.name, outline.rooted, outline.spans) == ("span 1", True, 4)
    assert (outline.start_unix_nano, outline.duration) == (START - 5 * S, 8 * S)


def test_a_trace_without_its_root_is_named_after_its_earliest_span() -> None:
    store = TraceStore(1 << 20)
    store.put([group(1, span(1, 2, 1), span(1, 3, 1, start=-1))])
    (outline,) = store.outlines().values()
    assert (outline.name, outline.rooted) == ("span 3", False)


def test_every_key_for_traces_is_documented_and_understood() -> None:
    _, part = DOCS.read_text().split("Traces are searched by")
    shown = re.findall(r"`([a-z]+:[^`]*)`", part.split("\n\n")[0])
    assert {term.partition(":")[0] for term in shown} == set(TRACE_LANGUAGE.names)
    for term in shown:
        if not term.endswith(":"):
            read_trace_search(term, NOW)
