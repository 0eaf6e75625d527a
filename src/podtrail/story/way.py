"""A Pod's whole way as one waterfall: request, gates, queue, attempts, binding, node; the gaps are named."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from podtrail.story.attempt import AttemptStory
from podtrail.story.bind import read_bind_refusal
from podtrail.story.lines import safe
from podtrail.story.pod import PodStory, answer, who_said_no
from podtrail.story.pod_requests import PodRequest
from podtrail.story.way_on_node import steps_on_node
from podtrail.story.way_steps import WayStep, wait
from podtrail.story.way_waits import wait_after, wait_between
from podtrail.story.words import duration, several

_NAME = 60
_ANSWER = 160
_LEAST_FOLDED = 5
_MOST_RUNS = 24
"""Runs of equal answers that stand by themselves; of more than these the middle is one step."""
_RUNS_AT_THE_END = 16


@dataclass(frozen=True, slots=True)
class PodWay:
    """Steps in order, on one axis."""

    start_unix_nano: int
    duration: int
    """Nanoseconds from the first moment to the last, or to now where it goes on."""
    open: bool
    """It goes on."""
    steps: tuple[WayStep, ...]


class _Run(NamedTuple):
    """Attempts behind one another that are told alike."""

    attempts: tuple[AttemptStory, ...]
    words: str
    """What is said of those in its middle."""


def tell_way(pod: PodStory, created: PodRequest | None, deleted: PodRequest | None, now: int) -> PodWay | None:
    """Return a Pod's way until `now`; None where nothing of it has a time."""
    steps = [*_creation(pod, created), *_gates(pod, now), *_attempts(pod, created), *steps_on_node(pod, now)]
    if pod.on_node is None and pod.last is not None and pod.last.result != "Success":
        steps += wait_after(pod.last, now)
    if deleted is not None:
        by = f" by {safe(deleted.who, _NAME)}" if deleted.who else ""
        asked = f"{deleted.asked} asked for{by}"
        steps.append(WayStep("request", asked, deleted.start_unix_nano, deleted.took, deleted.trace_id))
    if not steps:
        return None
    steps.sort(key=lambda step: step.start_unix_nano)
    start = steps[0].start_unix_nano
    end = max(step.end for step in steps)
    return PodWay(start, end - start, any(step.open for step in steps), tuple(steps))


def _creation(pod: PodStory, created: PodRequest | None) -> Iterator[WayStep]:
    if created is not None:
        by = f" by {safe(created.who, _NAME)}" if created.who else ""
        yield WayStep("request", f"created{by}", created.start_unix_nano, created.took, created.trace_id)
    elif pod.on_node is not None and (seen := pod.on_node.of("created")):
        yield WayStep("request", "created", seen[0].start_unix_nano, None, seen[0].trace_id)


def _gates(pod: PodStory, now: int) -> Iterator[WayStep]:
    told = pod.on_node.of("gated") if pod.on_node else []
    since = pod.gated_since_unix_nano or (told[0].start_unix_nano if told else None)
    if since is None:
        return
    names = ", ".join(pod.gates or pod.past_gates) or (told[0].what if told else pod.held_by)
    over = pod.gated_until_unix_nano
    queued = _queued(pod.attempts[0]) if pod.attempts else None
    until = min([moment for moment in (over, queued) if moment is not None], default=pod.deleted_unix_nano or now)
    if until >= since:
        yield wait(f"gated{': ' if names else ''}{safe(names, _ANSWER)}", since, until, open_=pod.state == "gated")


def _queued(attempt: AttemptStory) -> int:
    """Return when an attempt's Pod came into the active queue, as far as its root tells."""
    return attempt.start_unix_nano - (attempt.queue_wait or 0)


def _attempts(pod: PodStory, created: PodRequest | None) -> Iterator[WayStep]:
    """Yield attempts with what lies between them, long runs of one answer as one step."""
    before: AttemptStory | None = None
    for run in _shown_runs(_runs(pod.attempts)):
        first, last = run.attempts[0], run.attempts[-1]
        yield from _missing(before, first, created)
        yield from wait_between(before, first) if before else _before_the_first(first, created, pod)
        if len(run.attempts) < _LEAST_FOLDED and not run.words:
            yield from _one(first)
            for one, following in zip(run.attempts, run.attempts[1:], strict=False):
                yield from wait_between(one, following)
                yield from _one(following)
        elif run.words:
            yield _fold(run.attempts, run.words)
        else:
            yield from _one(first)
            yield from wait_between(first, run.attempts[1])
            yield _fold(run.attempts[1:-1], "same answer")
            yield from wait_between(run.attempts[-2], last)
            yield from _one(last)
        before = last


def _before_the_first(first: AttemptStory, created: PodRequest | None, pod: PodStory) -> Iterator[WayStep]:
    """Yield what lies between the request and the first attempt."""
    since = created.start_unix_nano + created.took if created is not None and first.number == 1 else None
    what = "created, until the scheduler has it in its queue"
    if pod.gated_since_unix_nano is not None:
        since, what = pod.gated_until_unix_nano, "free of gates, until the scheduler has it in its queue"
    queued = _queued(first)
    if since is not None and queued > since:
        yield wait(what, since, queued)
    yield from wait_between(None, first)


def _runs(attempts: Sequence[AttemptStory]) -> list[_Run]:
    """Return attempts by equal answers in a row; where some are missing a new run begins."""
    runs: list[_Run] = []
    for _, alike in groupby(attempts, key=answer):
        some: list[AttemptStory] = []
        for one in alike:
            if some and (one.number or 0) > (some[-1].number or 0) + 1:
                runs.append(_Run(tuple(some), ""))
                some = []
            some.append(one)
        runs.append(_Run(tuple(some), ""))
    return runs


def _shown_runs(runs: list[_Run]) -> list[_Run]:
    if len(runs) <= _MOST_RUNS:
        return runs
    ahead = _MOST_RUNS - _RUNS_AT_THE_END - 1
    middle = [one for run in runs[ahead:-_RUNS_AT_THE_END] for one in run.attempts]
    answers = len({answer(one) for one in middle})
    return [*runs[:ahead], _Run(tuple(middle), several(answers, "answer")), *runs[-_RUNS_AT_THE_END:]]


def _missing(before: AttemptStory | None, first: AttemptStory, created: PodRequest | None) -> Iterator[WayStep]:
    """Yield the attempts that are not held before one, if there are any."""
    begins = (before.number or 0) + 1 if before else 1
    ends = (first.number or 1) - 1
    if ends < begins:
        return
    which = f"attempt {begins:,}" if begins == ends else f"attempts {begins:,} to {ends:,}"
    since = before.end_unix_nano if before else created.start_unix_nano + created.took if created else None
    until = _queued(first)
    since = until if since is None else min(since, until)
    yield WayStep("missing", f"{which}: not held here", since, until - since, attempts=(begins, ends))


def _one(attempt: AttemptStory) -> Iterator[WayStep]:
    """Yield an attempt, and its cycles where it came to the binding."""
    result = safe(attempt.result, _NAME) or "no result"
    what = f"attempt {attempt.number}: {result}{_said(attempt)}"
    number = attempt.number or 1
    start, trace_id = attempt.start_unix_nano, attempt.trace_id
    bad = attempt.result not in ("Success", "")
    yield WayStep("attempt", what, start, attempt.duration, trace_id, bad=bad, attempts=(number, number))
    if attempt.binding is None or attempt.duration is None:
        return
    if attempt.cycle is not None:
        yield WayStep("cycle", "scheduling cycle", start, attempt.cycle, trace_id, depth=1)
    bound = max(start, attempt.end_unix_nano - attempt.binding)
    yield WayStep(
        "cycle", "binding cycle", bound, attempt.end_unix_nano - bound, trace_id, depth=1, bad=bool(attempt.bind_error)
    )


def _said(attempt: AttemptStory) -> str:
    if attempt.result == "Success":
        return f", {safe(attempt.selected_node, _NAME)}" if attempt.selected_node else ""
    if attempt.bind_error:
        return f": {safe(read_bind_refusal(attempt.bind_error).why, _ANSWER)}"
    said = who_said_no(attempt.why) or attempt.message
    return f": {safe(said, _ANSWER)}" if said else ""


def _fold(attempts: Sequence[AttemptStory], words: str) -> WayStep:
    first, last = attempts[0], attempts[-1]
    inside = sum(one.duration or 0 for one in attempts)
    which = f"attempts {first.number:,} to {last.number:,}" if len(attempts) > 1 else f"attempt {first.number:,}"
    return WayStep(
        "attempt",
        f"{which}: {words}, {duration(inside)} in attempts, the rest waiting between them",
        first.start_unix_nano,
        max(0, last.end_unix_nano - first.start_unix_nano),
        bad=any(one.result not in ("Success", "") for one in attempts),
        attempts=(first.number or 1, last.number or 1),
    )
