"""The test of truth: numbers and links equal what the scheduler itself counted."""

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.processor import LinkStitching

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Decision, SpanView, Value, Verdict, read_attempt, split
from podtrail.testing.attempts import START, MadeAttempt
from tests.sizes import large

WAIT = 5 * SECOND
NUMBER = "podtrail.attempt.number"


def story(pods: int, attempts: int, rng: random.Random, *, declare: bool) -> list[MadeAttempt]:
    """Return what a scheduler counted: attempts of a Pod follow one another."""
    made = []
    for pod in range(pods):
        start = START + rng.randrange(10 * SECOND)
        count = rng.randint(1, attempts)
        for number in range(1, count + 1):
            attributes: dict[str, Value] = {NUMBER: -1}
            if declare:
                attributes["scheduler.attempts"] = number
            result = "Success" if number == count else "Unschedulable"
            uid, name = f"uid-{pod}", f"web-{pod}"
            made.append(
                MadeAttempt(uid=uid, name=name, number=number, start=start, result=result, attributes=attributes)
            )
            start += made[-1].duration + rng.randrange(1, 60 * SECOND)
    return made


def sampled(attempt: MadeAttempt, arrived: int, decision: Decision) -> Batch:
    batch = attempt.batch(decision, policy="sample-5pct", reason="no policy said yes")
    return replace(batch, arrived=arrived)


def stitch(arrivals: list[tuple[int, Batch]], config: Config | None = None) -> list[SpanView]:
    processor = LinkStitching(config or Config(reorder_wait=WAIT), Context(id="link_stitching"))
    out: list[Batch] = []
    for now, batch in arrivals:
        while (due := processor.deadline()) is not None and due <= now:
            out += processor.expire(due, 100)
        out += processor.add(batch, now).out
    out += processor.drain(arrivals[-1][0])
    return [SpanView(raw) for batch in out for group in batch.groups for raw in split(group.spans)]


def check(spans: list[SpanView], attempts: list[MadeAttempt], kept: set[bytes]) -> None:
    truth = {attempt.root_id: attempt for attempt in attempts}
    roots = [span for span in spans if read_attempt(span)]
    assert {span.trace_id for span in roots} == kept
    assert len(roots) == len(kept)
    for span in roots:
        number = truth[span.span_id].number
        assert span.attributes[NUMBER] == number
        links = [link for link in span.links if link.attributes["podtrail.link.type"] == "previous-attempt"]
        assert len(links) == (number > 1)
        for link in links:
            previous = truth[link.span_id]
            assert (previous.uid, previous.number) == (truth[span.span_id].uid, number - 1)
            assert link.trace_id == previous.trace_id
            assert link.attributes["podtrail.link.resolved"] is (previous.trace_id in kept)
            assert link.attributes.get("podtrail.link.target") == (None if previous.trace_id in kept else "dropped")


def back_links(spans: list[SpanView]) -> set[tuple[bytes, bytes]]:
    """Return which span was told of which, on itself or by an amendment below it."""
    return {
        (span.parent_span_id if span.name == "podtrail.amendment" else span.span_id, link.span_id)
        for span in spans
        for link in span.links
        if link.attributes.get("podtrail.link.type") == "next-attempt"
    }


@pytest.mark.parametrize("declare", [False, True])
@pytest.mark.parametrize("keep", [0.05, 0.5, 1.0])
def test_numbers_and_links_equal_what_the_scheduler_counted(keep: float, *, declare: bool) -> None:
    rng = random.Random(7)
    attempts = story(pods=60, attempts=30, rng=rng, declare=declare)
    kept: set[bytes] = {attempt.trace_id for attempt in attempts if rng.random() < keep}
    order = sorted(attempts, key=lambda attempt: attempt.start + rng.randrange(WAIT))
    arrivals, now = [], 0
    for attempt in order:
        now = max(now, attempt.start + WAIT)
        arrivals.append((now, sampled(attempt, now, "sampled" if attempt.trace_id in kept else "not_sampled")))
    spans = stitch(arrivals)
    check(spans, attempts, kept)
    pairs = {(a.uid, a.number): a for a in attempts if a.trace_id in kept}
    followed = {(a.root_id, pairs[uid, n + 1].root_id) for (uid, n), a in pairs.items() if (uid, n + 1) in pairs}
    assert back_links(spans) == followed


@settings(max_examples=large(25, 100))
@given(st.randoms(use_true_random=False), st.booleans())
def test_any_order_within_the_reorder_window_gives_the_same_story(rng: random.Random, declare: bool) -> None:
    attempts = story(pods=3, attempts=6, rng=rng, declare=declare)
    kept = {attempt.trace_id for attempt in attempts if rng.random() < 0.5}
    rng.shuffle(attempts)
    arrivals = []
    now = START
    for attempt in attempts:
        now += rng.randrange(WAIT // len(attempts))
        arrivals.append((now, sampled(attempt, now, "sampled" if attempt.trace_id in kept else "not_sampled")))
    check(stitch(arrivals), attempts, kept)


def test_a_pod_watched_from_its_fourth_attempt_on_counts_on_from_what_the_scheduler_says() -> None:
    attempts = [a for a in story(pods=1, attempts=40, rng=random.Random(3), declare=True) if a.number >= 4]
    spans = stitch([(START + at, sampled(attempt, START, "sampled")) for at, attempt in enumerate(attempts)])
    numbers = [span.attributes[NUMBER] for span in spans if read_attempt(span)]
    assert len(numbers) > 3
    assert numbers == [attempt.number for attempt in attempts]


def test_numbers_go_on_when_the_scheduler_restarts_and_counts_from_one() -> None:
    counted = [1, 2, 3, 1, 2]
    batches = [
        MadeAttempt(number=at, start=START + at * SECOND, attributes={"scheduler.attempts": count}).batch()
        for at, count in enumerate(counted)
    ]
    spans = stitch([(START + at, batch) for at, batch in enumerate(batches)])
    assert [s.attributes[NUMBER] for s in spans if read_attempt(s)] == [1, 2, 3, 4, 5]


def test_there_is_no_link_across_a_gap_of_attempts_nobody_saw() -> None:
    made = [
        MadeAttempt(number=number, start=START + number * SECOND, attributes={"scheduler.attempts": number})
        for number in (1, 2, 5)
    ]
    spans = stitch([(START, attempt.batch()) for attempt in made])
    last = next(span for span in spans if span.span_id == made[-1].root_id)
    assert last.attributes[NUMBER] == 5
    assert not last.links


@pytest.mark.parametrize("nonsense", [-1, 0, True, 2**63 - 1, "seven", 1.5])
def test_a_nonsensical_count_is_ignored(nonsense: int | str | float) -> None:
    batch = MadeAttempt(number=1, attributes={"scheduler.attempts": nonsense}).batch()
    (root,) = [span for span in stitch([(START, batch)]) if read_attempt(span)]
    assert root.attributes[NUMBER] == 1


def test_forgotten_attempts_stay_counted() -> None:
    made = [MadeAttempt(number=n, start=START + n * SECOND, attributes={NUMBER: -1}) for n in range(1, 101)]
    config = Config(reorder_wait=WAIT, max_attempts_per_pod=2)
    spans = stitch([(attempt.start, attempt.batch()) for attempt in made], config)
    check(spans, made, {attempt.trace_id for attempt in made})


def test_an_attempt_that_comes_after_the_window_gets_its_place_and_is_counted_as_late() -> None:
    first, second, third = (MadeAttempt(number=n, start=START + n * SECOND) for n in (1, 2, 3))
    context = Context(id="link_stitching")
    processor = LinkStitching(Config(reorder_wait=WAIT), context)
    processor.add(first.batch(), START)
    processor.add(third.batch(), START)
    processor.expire(START + WAIT, 1000)
    processor.add(second.batch(), START + WAIT)
    (batch,) = processor.drain(START + WAIT)
    root = SpanView(split(batch.groups[0].spans)[0])
    assert (root.span_id, root.attributes[NUMBER]) == (second.root_id, 2)
    assert [link.span_id for link in root.links] == [first.root_id, third.root_id]
    assert context.metrics.snapshot()["otelcol_processor_link_stitching_late_attempts"] == {
        "processor=link_stitching": 1
    }


def test_thousands_of_attempts_of_one_pod_in_reverse_order_are_not_all_remembered() -> None:
    made = [MadeAttempt(number=n, start=START + n) for n in range(3000, 0, -1)]
    context = Context(id="link_stitching")
    processor = LinkStitching(Config(), context)
    for attempt in made:
        processor.add(attempt.batch(), START)
    assert (
        context.metrics.snapshot()["otelcol_processor_link_stitching_remembered"][
            "pipeline=,processor=link_stitching,what=attempt"
        ]
        <= 16 + 500
    )


def test_the_same_attempt_twice_counts_once() -> None:
    first, second = (MadeAttempt(number=n, start=START + n * SECOND) for n in (1, 2))
    spans = stitch([(START, first.batch()), (START, first.batch()), (START, second.batch())])
    assert [s.attributes[NUMBER] for s in spans if read_attempt(s)] == [1, 1, 2]


def test_a_dropped_attempt_is_marked_with_the_policy_and_its_reason() -> None:
    first, second = (MadeAttempt(number=n, start=START + n * SECOND) for n in (1, 2))
    spans = stitch([(START, sampled(first, START, "not_sampled")), (START, second.batch())])
    (link,) = next(span for span in spans if span.span_id == second.root_id).links
    assert link.span_id == first.root_id
    assert link.attributes == {
        "podtrail.link.type": "previous-attempt",
        "podtrail.link.evidence": "pod-uid",
        "podtrail.link.resolved": False,
        "podtrail.link.target": "dropped",
        "podtrail.link.target.policy": "sample-5pct",
        "podtrail.link.target.reason": "no policy said yes",
    }


def test_a_batch_of_verdicts_alone_flows_and_is_learned_from() -> None:
    dropped = Batch((), START, [MadeAttempt(number=1).verdict("dropped")])
    processor = LinkStitching(Config(), Context(id="link_stitching"))
    assert processor.add(dropped, START).out == [dropped]
    (kept,) = [MadeAttempt(number=2, start=START + SECOND).batch()]
    (verdicts_only,) = processor.add(kept, START).out
    assert (list(verdicts_only.groups), verdicts_only.verdicts) == ([], kept.verdicts)
    (batch,) = processor.drain(START)
    root = next(view for view in map(SpanView, split(batch.groups[0].spans)) if read_attempt(view))
    assert root.attributes[NUMBER] == 2


def test_verdicts_need_no_spans_to_mark_a_target() -> None:
    verdict = Verdict(b"t" * 16, "dropped", "", "evicted before its decision: num_traces", START, START, 3)
    processor = LinkStitching(Config(), Context(id="link_stitching"))
    assert processor.add(Batch((), START, [verdict]), START).out[0].verdicts == [verdict]
