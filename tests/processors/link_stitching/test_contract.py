"""Whatever comes in whatever order: nothing is lost or leaves twice, deadlines hold, the memory is bounded."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.lifecycle.config import LifecycleSettings
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context, Taken
from podtrail.config.types import MILLISECOND, SECOND
from podtrail.otlp import (
    Batch,
    Decision,
    Group,
    Link,
    SpanView,
    Verdict,
    encode_span,
    frame,
    resource_header,
    scope_header,
    split,
)
from podtrail.otlp.moving import move_span
from podtrail.testing.attempts import START, MadeAttempt
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large

RESOURCE, SCOPE = resource_header({"service.name": "any"}), scope_header("any")
IDS = [number.to_bytes(8, "big") for number in range(1, 6)]
NAMES = [
    "syncPod",
    "syncTerminatedPod",
    "runtime.v1.RuntimeService/StartContainer",
    "POST /api/v1/namespaces/{:namespace}/pods/{:name}/binding",
    "reconcile",
    "SchedulePod",
]
UIDS = ["uid-1", "uid-2", "", "x" * 500]

links = st.builds(lambda trace, span: Link(trace * 2, span, {}), st.sampled_from(IDS), st.sampled_from([*IDS, b""]))
attributes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "k8s.pod.uid": st.sampled_from(UIDS),
        "k8s.pod.name": st.just("web-0"),
        "k8s.pod.namespace": st.just("default"),
        "url.path": st.just("/api/v1/namespaces/default/pods/web-0/binding"),
        "scheduler.attempts": st.integers(-1, 5),
        "scheduler.result": st.sampled_from(["Success", "Error"]),
    }
)
starts = st.integers(0, 20).map(lambda second: START + second * SECOND)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    """A group of one of few traces, so that spans meet; span ids may well repeat."""
    trace_id = draw(st.sampled_from(IDS)) * 2
    spans = [
        encode_span(
            trace_id=trace_id,
            span_id=draw(st.sampled_from(IDS)),
            name=draw(st.sampled_from(NAMES)),
            kind=draw(st.integers(1, 2)),
            start=(start := draw(starts)),
            end=start + SECOND,
            attributes=draw(attributes),
            links=draw(st.lists(links, max_size=2)),
        )
        for _ in range(draw(st.integers(1, 3)))
    ]
    return Group(RESOURCE, SCOPE, trace_id, frame(spans), len(spans))


decisions: st.SearchStrategy[Decision] = st.sampled_from(["sampled", "not_sampled", "dropped"])
verdicts = st.builds(
    lambda group, decision: Verdict(
        group.trace_id, decision, "policy", "reason", START, START, group.span_count, groups=[group]
    ),
    groups(),
    decisions,
)


@st.composite
def arrivals(draw: st.DrawFn) -> Sequence[Arrival]:
    now = START
    made = []
    for _ in range(draw(st.integers(0, 6))):
        now += draw(st.integers(0, 4000)) * MILLISECOND
        batch = Batch(draw(st.lists(groups(), max_size=4)), now, draw(st.lists(verdicts, max_size=2)))
        made.append(Arrival(now, batch))
    return made


configs = st.builds(
    Config,
    mode=st.sampled_from(["link", "lifecycle"]),
    lifecycle=st.builds(
        LifecycleSettings,
        timeout=st.sampled_from([SECOND, 5 * SECOND]),
        wait=st.sampled_from([0, 2 * SECOND]),
        max_pods=st.integers(1, 3),
        max_parts_per_pod=st.just(8),
        max_waiting_calls=st.integers(1, 3),
    ),
    reorder_wait=st.sampled_from([0, SECOND, 5 * SECOND]),
    ttl=st.just(8 * SECOND),
    max_pods=st.integers(1, 3),
    max_attempts=st.integers(2, 5),
    max_attempts_per_pod=st.just(2),
    max_traces=st.integers(1, 5),
    max_waiting_links=st.integers(1, 3),
    amendments=st.booleans(),
)


@settings(max_examples=large(25, 150))
@given(configs, arrivals())
def test_any_arrivals_keep_the_contract_of_processors(config: Config, arriving: Sequence[Arrival]) -> None:
    check_processor(lambda context: LinkStitching(config, context), arriving)


@settings(max_examples=large(40, 100))
@given(configs, arrivals())
def test_memory_stays_within_its_bounds_and_ends_with_its_ttl(config: Config, arriving: Sequence[Arrival]) -> None:
    context = Context(id="link_stitching")
    processor = LinkStitching(config, context)
    for now, batch in arriving:
        processor.add(batch, now)
        remembered = context.metrics.snapshot()["otelcol_processor_link_stitching_remembered"]
        assert remembered["pipeline=,processor=link_stitching,what=pod"] <= config.max_pods
        assert remembered["pipeline=,processor=link_stitching,what=attempt"] <= config.max_attempts
        assert remembered["pipeline=,processor=link_stitching,what=trace"] <= config.max_traces
        assert remembered["pipeline=,processor=link_stitching,what=link"] <= config.max_waiting_links
        lives = context.metrics.snapshot().get("otelcol_processor_link_stitching_lifecycle_remembered", {})
        assert lives.get("pipeline=,processor=link_stitching,what=pod", 0) <= config.lifecycle.max_pods
        assert lives.get("pipeline=,processor=link_stitching,what=call", 0) <= config.lifecycle.max_waiting_calls
    processor.drain(START + 100 * SECOND)
    processor.add(Batch((), START), START + 200 * SECOND)
    processor.add(Batch((), START), START + 300 * SECOND)
    assert set(context.metrics.snapshot()["otelcol_processor_link_stitching_remembered"].values()) == {0}
    (left,) = context.metrics.snapshot()["otelcol_processor_link_stitching_memory_bytes"].values()
    roots = 0 if config.mode == "link" else 8 * config.lifecycle.max_pods
    assert left <= 270 * roots, "whose roots were sent is known for longer"


class Unmoved:
    """`mode: merge`, with what was moved put back to the trace that it says it came from."""

    def __init__(self, config: Config, context: Context) -> None:
        self._merging = LinkStitching(config.model_copy(update={"mode": "merge"}), context)
        self.held, self.held_since = self._merging.held, self._merging.held_since
        self.deadline = self._merging.deadline
        self.state_version = self._merging.state_version
        self.save_state, self.restore_state = self._merging.save_state, self._merging.restore_state

    def add(self, batch: Batch, now: int) -> Taken:
        taken = self._merging.add(batch, now)
        return Taken(self._back(taken.out), taken.rest)

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        return self._back(self._merging.expire(now, limit))

    def drain(self, now: int) -> Sequence[Batch]:
        return self._back(self._merging.drain(now))

    def take_over(self, predecessor: "Unmoved", now: int) -> None:
        self._merging.take_over(predecessor._merging, now)

    def _back(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        return [Batch([*map(self._unmoved, batch.groups)], batch.arrived, batch.verdicts) for batch in batches]

    def _unmoved(self, group: Group) -> Group:
        came = SpanView(split(group.spans)[0]).attributes.get("podtrail.original.trace_id")
        if not isinstance(came, str):
            return group
        trace = bytes.fromhex(came)
        spans = [move_span(raw, trace, b"", {}, lambda _: b"") for raw in split(group.spans)]
        return group._replace(trace_id=trace, spans=frame(spans))


@settings(max_examples=large(20, 100))
@given(configs, arrivals())
def test_any_arrivals_keep_the_contract_when_they_are_merged(config: Config, arriving: Sequence[Arrival]) -> None:
    check_processor(lambda context: Unmoved(config, context), arriving)


def test_a_successor_goes_on_counting_and_linking() -> None:
    first = LinkStitching(Config(), Context(id="link_stitching"))
    first.add(MadeAttempt(number=1).batch(), START)
    second = LinkStitching(Config(reorder_wait=SECOND), Context(id="link_stitching"))
    second.take_over(first, START + SECOND)
    assert (first.held(), second.deadline()) == (0, START + 5 * SECOND)
    second.add(MadeAttempt(number=2, start=START + SECOND, attributes={"podtrail.attempt.number": -1}).batch(), START)
    (batch,) = second.drain(START)
    assert batch.arrived == MadeAttempt().batch().arrived
    assert [group.trace_id for group in batch.groups] == [MadeAttempt(number=n).trace_id for n in (2, 1)]
    assert b"previous-attempt" in batch.groups[0].spans
    assert b"next-attempt" in batch.groups[1].spans


def test_a_successor_with_less_room_remembers_the_youngest_and_goes_on_counting() -> None:
    first = LinkStitching(Config(), Context(id="link_stitching"))
    for number in range(1, 6):
        for uid in ("old", "young"):
            first.add(MadeAttempt(uid=uid, number=number, start=START + number).batch(), START + number)
    first.expire(START + 6 * SECOND, 1000)
    context = Context(id="link_stitching")
    second = LinkStitching(Config(max_pods=1, max_attempts=2, max_attempts_per_pod=2), context)
    second.take_over(first, START + 7 * SECOND)
    remembered = context.metrics.snapshot()["otelcol_processor_link_stitching_remembered"]
    assert {label.rpartition("=")[2]: count for label, count in remembered.items() if count} == {
        "pod": 1,
        "attempt": 2,
        "trace": 10,
        "pod_name": 1,
        "place": 1,
        "pod_trace": 4,
    }
    second.add(
        MadeAttempt(uid="young", number=6, start=START + 6, attributes={"podtrail.attempt.number": -1}).batch(),
        START + 8 * SECOND,
    )
    (batch,) = second.drain(START + 9 * SECOND)
    root = SpanView(split(batch.groups[0].spans)[0])
    assert root.attributes["podtrail.attempt.number"] == 6
    assert [link.span_id for link in root.links] == [MadeAttempt(uid="young", number=5).root_id]
