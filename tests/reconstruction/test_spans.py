"""The traces that attempts become: tree, names, what is inferred, ids."""

import json
from collections import Counter
from typing import Any

import pytest

from podtrail.otlp import SpanView, attempt_of, read_request, split, write_request
from podtrail.reconstruction import Rebuilt, trace


def spans_of(one: Rebuilt) -> list[SpanView]:
    return [SpanView(raw) for raw in split(trace(one).spans)]


def names(one: Rebuilt) -> dict[str, str]:
    """Return each span's parent by name."""
    spans = spans_of(one)
    of = {span.span_id: span.name for span in spans}
    return {span.name: of.get(span.parent_span_id, "") for span in spans}


ALL = ("log", "pods", "events")


@pytest.mark.parametrize("run", ["v2-text", "v10-text", "v5-json"])
@pytest.mark.parametrize("sources", [ALL, ("log",), ("pods", "events")])
def test_every_trace_is_a_tree_within_its_root(runs: Any, run: str, sources: tuple[str, ...]) -> None:
    for one in runs.of(run, *sources).attempts:
        spans = spans_of(one)
        ids = {span.span_id for span in spans}
        (root,) = [span for span in spans if not span.parent_span_id]
        assert len(ids) == len(spans)
        for span in spans:
            assert span is root or span.parent_span_id in ids
            assert root.start <= span.start <= span.end <= root.end


def test_the_root_tells_what_podtrail_reads(runs: Any) -> None:
    last = runs.of("v2-text", *ALL).of("default/frozen-1")[-1]
    attempt = attempt_of(read_request(write_request([trace(last)])).groups)
    assert attempt is not None
    assert (attempt.namespace, attempt.name, attempt.result) == ("default", "frozen-1", "Success")
    assert (attempt.profile, attempt.declared) == ("bin-packing", 4)
    assert attempt.pod_uid == last.identity.uid
    (root,) = [span for span in spans_of(last) if span.name == "SchedulePod"]
    assert root.attributes["scheduler.selected_node"] == "tight1"


def test_a_log_at_ten_gives_phases_plugins_and_scores(runs: Any) -> None:
    one = runs.of("v10-text", "log").of("default/sluggish-0")[0]
    tree = names(one)
    assert tree["filter"] == tree["score"] == "schedulingCycle"
    assert tree["bind"] == "bindingCycle"
    assert tree["plugin: NodeResourcesFit"] == "score"
    (score,) = [span for span in spans_of(one) if span.name == "score"]
    assert score.attributes["scheduler.score.selected"] == 562
    assert score.duration == 193_000_000


def test_refusals_name_plugin_count_and_at_ten_the_nodes(runs: Any) -> None:
    one = runs.of("v10-text", "log").of("default/pre-boss")[0]
    told = {span.name: event.attributes for span in spans_of(one) for event in span.events}
    assert told["plugin: NodeAffinity"]["scheduler.nodes.count"] == 9
    assert told["plugin: TaintToleration"]["scheduler.nodes.names"] == ["gpu0", "gpu1"]


def test_a_refused_bind_is_an_error_of_the_binding_cycle(runs: Any) -> None:
    one = runs.of("v5-json", "log").of("default/frozen-0")[0]
    failed = {span.name for span in spans_of(one) if span.status.code == 2}
    assert failed == {"SchedulePod", "bindingCycle", "bind", "plugin: DefaultBinder"}


def test_what_is_inferred_says_how(runs: Any) -> None:
    (quiet,) = runs.of("v2-text", "log").of("default/hello")
    (told,) = runs.of("v5-json", *ALL).of("default/traced-admin")
    inferred = next(span for span in spans_of(quiet) if span.name == "SchedulePod").attributes["podtrail.inferred"]
    assert isinstance(inferred, list)
    assert any(str(line).startswith("start: the first line") for line in inferred)
    assert "podtrail.inferred" not in next(span for span in spans_of(told) if span.name == "SchedulePod").attributes


def test_ids_follow_from_uid_and_number_where_that_is_certain(runs: Any) -> None:
    with_log = {
        (one.identity.uid, one.identity.number): one.identity.trace_id
        for one in runs.of("v2-text", *ALL).attempts
        if one.identity.counted
    }
    without = [one.identity for one in runs.of("v2-text", "pods", "events").attempts if one.identity.counted]
    assert len(without) > 300
    for identity in without:
        assert with_log.get((identity.uid, identity.number), identity.trace_id) == identity.trace_id
    assert max(Counter(with_log.values()).values()) == 1


def test_whoever_begins_to_read_later_gives_no_attempt_the_id_of_another(runs: Any) -> None:
    lines, pods = runs.lines("v2-text.log"), runs.lines("v2-text.pods.jsonl")
    half = len(lines) // 2
    whole = {(one.identity.uid, one.draft.end): one.identity for one in runs.of("v2-text", "log", "pods").attempts}
    of_trace = {identity.trace_id: ended for ended, identity in whole.items()}
    late = [one for one in runs.rebuild([lines[half:]], [pods]).attempts if "log" in one.draft.sources]
    assert any(not one.identity.counted for one in late)
    for one in late:
        ended = (one.identity.uid, one.draft.end)
        assert of_trace.get(one.identity.trace_id, ended) == ended


def test_two_that_begin_late_agree_on_the_attempts_that_both_read(runs: Any) -> None:
    lines, pods = runs.lines("v2-text.log"), runs.lines("v2-text.pods.jsonl")
    first, second = (
        {(one.identity.uid, one.draft.end): one.identity for one in runs.rebuild([lines[at:]], [pods]).attempts}
        for at in (450, 500)
    )
    both = [ended for ended in first.keys() & second.keys() if not (first[ended].counted or second[ended].counted)]
    assert len(both) > 10
    assert all(first[ended].trace_id == second[ended].trace_id for ended in both)


def test_no_wait_in_the_queue_is_told_where_the_beginning_is_not_known(runs: Any) -> None:
    stuck, *_ = runs.of("v2-text", *ALL).of("default/vol-stuck")  # it waited in PreBind: a log at -v=2 tells no more
    (root,) = [span for span in spans_of(stuck) if span.name == "SchedulePod"]
    assert stuck.draft.begun is None
    assert "scheduler.queue_wait_ms" not in root.attributes


@pytest.mark.parametrize(
    "annotation",
    [
        "00-ABCDEF00000000000000000000000001-1111000000000001-01",
        "00-00000000000000000000000000000000-1111000000000001-01",
        "00-abcd0000000000000000000000000001-0000000000000000-01",
        "01-abcd0000000000000000000000000001-1111000000000001-01",
        "00-abcd0000000000000000000000000001-1111000000000001-01-more",
        "00-abcd0000000000000000000000000001-1111000000000001-01\n",
        "x" * 10_000,
    ],
)
def test_an_annotation_that_is_no_traceparent_becomes_no_link(runs: Any, annotation: str) -> None:
    lines = [json.loads(line) for line in runs.lines("v5-json.pods.jsonl")]
    for told in lines:
        if pod := told.get("event", {}).get("object"):
            pod["metadata"].setdefault("annotations", {})["tracing.k8s.io/traceparent"] = annotation
    watch = [json.dumps(told).encode() for told in lines]
    result = runs.rebuild([runs.lines("v5-json.log")], [watch])
    kinds = {
        str(link.attributes["podtrail.link.type"])
        for one in result.attempts
        for span in spans_of(one)
        for link in span.links
    }
    assert kinds == {"previous-attempt"}


def test_an_attempt_links_to_the_one_before(runs: Any) -> None:
    first, second, *_ = runs.of("v2-text", *ALL).of("default/giant")
    (root,) = [span for span in spans_of(second) if span.name == "SchedulePod"]
    (link,) = root.links
    assert link.trace_id == trace(first).trace_id
    assert link.span_id == next(span.span_id for span in spans_of(first) if span.name == "SchedulePod")
    assert link.attributes["podtrail.link.type"] == "previous-attempt"


def test_a_traceparent_annotation_is_a_link_that_is_not_trusted(runs: Any) -> None:
    (one,) = runs.of("v2-text", *ALL).of("default/traced-annotated")
    (root,) = [span for span in spans_of(one) if span.name == "SchedulePod"]
    (link,) = root.links
    assert link.attributes == {"podtrail.link.type": "creation", "podtrail.link.trusted": False}
    assert link.trace_id.hex().startswith("abcd")


@pytest.mark.parametrize("run", ["v2-text", "v10-text", "v5-json"])
@pytest.mark.parametrize("sources", [ALL, ("log",), ("log", "events"), ("events",)])
def test_every_link_to_an_attempt_before_leads_to_one(runs: Any, run: str, sources: tuple[str, ...]) -> None:
    seen: set[bytes] = set()
    for one in runs.of(run, *sources).attempts:
        for span in spans_of(one):
            for link in span.links:
                assert link.attributes["podtrail.link.type"] != "previous-attempt" or link.span_id in seen
        seen |= {span.span_id for span in spans_of(one)}
