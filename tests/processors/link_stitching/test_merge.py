"""`mode: merge` on the recordings of a real node: a Pod's spans are one tree, with the ids that they came with."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.lifecycle.ids import root_id_of
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Group, SpanView, Value, encode_span, frame, resource_header, scope_header, split
from podtrail.testing import Run, replay
from podtrail.testing.attempts import START
from tests.sizes import large

RECORDINGS = Path(__file__).parents[2] / "data/recordings/node"
RECORDED = ["podtrail", "stock"][: large(1, 2)]
"""The stock scheduler's has no spans of attempts; test_recorded_story.py joins both."""
CONFIG = """
receivers: {otlp: {protocols: {grpc: {}}}}
processors:
  link_stitching: {mode: MODE}
exporters: {debug: {}}
service: {pipelines: {traces: {receivers: [otlp], processors: [link_stitching], exporters: [debug]}}}
"""


@cache
def run(mode: str, recording: str) -> Run:
    return replay(CONFIG.replace("MODE", mode), RECORDINGS / recording / "spans.otlp.zst")


def spans(mode: str, recording: str) -> list[SpanView]:
    return [each.span for each in run(mode, recording).exported["debug"]]


def moved(recording: str) -> Mapping[bytes, Sequence[SpanView]]:
    """The lives, by trace id."""
    found: dict[bytes, list[SpanView]] = defaultdict(list)
    roots = {span.trace_id for span in spans("merge", recording) if span.name == "PodLifecycle"}
    for span in spans("merge", recording):
        if span.trace_id in roots:
            found[span.trace_id].append(span)
    return found


@pytest.mark.parametrize("recording", RECORDED)
def test_each_life_is_one_tree(recording: str) -> None:
    lives = moved(recording)
    assert len(lives) == 10
    for life in lives.values():
        by_id = {span.span_id: span for span in life}
        assert len(by_id) == len(life)
        roots = [span for span in life if not span.parent_span_id]
        assert [span.name for span in roots] == ["PodLifecycle"]
        assert [span.name for span in life if span.parent_span_id and span.parent_span_id not in by_id] == []
        assert len(life) > 40


@pytest.mark.parametrize("recording", RECORDED)
def test_no_span_is_lost_and_the_ids_it_came_with_are_in_its_attributes(recording: str) -> None:
    def original(span: SpanView) -> tuple[str, str]:
        kept = span.attributes.get("podtrail.original.trace_id"), span.attributes.get("podtrail.original.span_id")
        return (str(kept[0]), str(kept[1])) if kept[0] else (span.trace_id.hex(), span.span_id.hex())

    def of_others(mode: str) -> list[SpanView]:
        made = {("PodLifecycle"), "queued", "podtrail.amendment"}
        return [span for span in spans(mode, recording) if span.name not in made]

    before = Counter((span.trace_id.hex(), span.span_id.hex()) for span in of_others("link"))
    assert Counter(map(original, of_others("merge"))) == before


@pytest.mark.parametrize("recording", RECORDED)
def test_links_lead_to_where_their_targets_are_now(recording: str) -> None:
    left = {(span.trace_id, span.span_id) for span in spans("merge", recording)}
    before = {(span.trace_id, span.span_id) for span in spans("link", recording)}
    resolved = [(link.trace_id, link.span_id) for span in spans("link", recording) for link in span.links]
    now = [(link.trace_id, link.span_id) for span in spans("merge", recording) for link in span.links]
    assert [target for target in now if target not in left and target in before] == []
    assert len([target for target in now if target in left]) >= len([target for target in resolved if target in before])


def test_a_parent_stays_a_parent() -> None:
    for life in moved("podtrail").values():
        by_id = {span.span_id: span for span in life}
        for span in life:
            if span.name == "schedulingCycle":
                assert by_id[span.parent_span_id].name == "SchedulePod"
            if span.name == "SchedulePod":
                assert by_id[span.parent_span_id].name == "PodLifecycle"
            if span.name == "cri.sandbox.run":
                assert by_id[span.parent_span_id].name.endswith("/RunPodSandbox")


def leaving(*groups: Group, later: Sequence[Group] = ()) -> dict[bytes, bytes]:
    """The trace that each span left in, by span id; `later` came when the others had left."""
    stitching = LinkStitching(Config(mode="merge"), Context(id="link_stitching"))
    stitching.add(Batch(groups, START), START)
    out = [*stitching.expire(START + 6 * SECOND, 1000)]
    stitching.add(Batch(later, START), START + 7 * SECOND)
    out += stitching.drain(START + 8 * SECOND)
    views = [SpanView(raw) for batch in out for group in batch.groups for raw in split(group.spans)]
    return {view.span_id: view.trace_id for view in views}


def sync(uid: str, span: bytes, trace: bytes = b"t" * 16, name: str = "syncPod") -> Group:
    told: dict[str, Value] = {"k8s.pod.uid": uid, "k8s.pod.name": uid[:3], "k8s.namespace.name": "default"}
    raw = encode_span(trace_id=trace, span_id=span, name=name, start=START, end=START + 1, attributes=told)
    return Group(resource_header({"service.name": "kubelet"}), scope_header("k"), trace, frame([raw]), 1)


ONE, OTHER = "1f3c0a52-0000-4000-8000-000000000001", "2f3c0a52-0000-4000-8000-000000000002"


def test_a_trace_about_two_pods_stays_as_it_is() -> None:
    left = leaving(sync(ONE, b"span-one", name="reconcile"), sync(OTHER, b"span-two", name="reconcile"))
    assert (left[b"span-one"], left[b"span-two"]) == (b"t" * 16, b"t" * 16)


def test_what_comes_later_goes_the_same_way() -> None:
    life = bytes.fromhex(ONE.replace("-", ""))
    left = leaving(sync(ONE, b"span-one"), later=[sync("", b"span-two", name="anything")])
    assert (left[b"span-one"], left[b"span-two"]) == (life, life)
    left = leaving(sync("", b"span-one", name="anything"), later=[sync(ONE, b"span-two")])
    assert (left[b"span-one"], left[b"span-two"]) == (b"t" * 16, b"t" * 16)


def test_a_part_that_says_another_pod_after_its_trace_has_moved_stays_as_it_came() -> None:
    life = bytes.fromhex(ONE.replace("-", ""))
    other = sync(OTHER, b"span-two", name="reconcile")
    left = leaving(sync(ONE, b"span-one", name="reconcile"), later=[other])
    assert (left[b"span-one"], left[b"span-two"]) == (life, b"t" * 16)


def test_a_life_that_was_merged_before_stays_as_it_is() -> None:
    life = bytes.fromhex(ONE.replace("-", ""))
    stitching = LinkStitching(Config(mode="merge"), Context(id="link_stitching"))
    told: dict[str, Value] = {"k8s.pod.uid": ONE}
    root = encode_span(
        trace_id=life, span_id=root_id_of(ONE), name="PodLifecycle", start=START, end=START + 1, attributes=told
    )
    group = Group(resource_header({"service.name": "podtrail"}), scope_header("p"), life, frame([root]), 1)
    stitching.add(Batch([group], START), START)
    (left,) = [each for batch in stitching.drain(START + SECOND) for each in batch.groups]
    assert split(left.spans) == [root]


def test_the_ids_remembered_of_one_endless_trace_are_bounded_and_cost_no_other_trace_its_memory() -> None:
    context = Context(id="link_stitching")
    stitching = LinkStitching(Config(mode="merge", max_held_mib=1), context)
    stitching.add(Batch([sync(ONE, b"span-one", trace=b"o" * 16)], START), START)
    for many in range(30):
        ids = [(many * 5000 + one + 1).to_bytes(8) for one in range(5000)]
        raw = [encode_span(trace_id=b"e" * 16, span_id=one, name="x", start=START, end=START) for one in ids]
        group = Group(resource_header({"service.name": "any"}), scope_header("s"), b"e" * 16, frame(raw), len(raw))
        stitching.add(Batch([group], START), START + many)
    snapshot = context.metrics.snapshot()
    assert not snapshot["otelcol_processor_link_stitching_merge_forgotten"]
    assert max(snapshot["otelcol_processor_link_stitching_memory_bytes"].values()) < 4_000_000


def test_what_was_merged_before_is_not_told_once_more() -> None:
    life = bytes.fromhex(ONE.replace("-", ""))
    stitching = LinkStitching(Config(mode="merge"), Context(id="link_stitching"))
    stitching.add(Batch([sync(ONE, b"span-one", trace=life, name="syncTerminatedPod")], START), START)
    left = [raw for batch in stitching.drain(START + SECOND) for group in batch.groups for raw in split(group.spans)]
    assert sorted(SpanView(raw).name for raw in left) == ["PodLifecycle", "syncTerminatedPod"]
