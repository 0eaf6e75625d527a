"""How a Pod ended, or why it is about to: evicted, preempted, drained, out of time, or a container that failed."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from podtrail.story.lines import Line, line, safe, strong
from podtrail.story.node_record import NodeStep
from podtrail.story.on_node import NodeStory
from podtrail.story.pod_requests import PodRequest
from podtrail.story.words import clock

PHASES: Final = frozenset({"", "Succeeded", "Failed"})
"""Reasons of an end that are no more than the Pod's phase."""
_DISRUPTIONS: Final = {
    "PreemptionByScheduler": "preempted by the scheduler",
    "DeletionByTaintManager": "deleted because it does not tolerate a taint of its node",
    "EvictionByEvictionAPI": "evicted through the API",
    "DeletionByPodGC": "deleted because its node is gone",
    "TerminationByKubelet": "terminated by the kubelet",
}
"""Reasons of the condition `DisruptionTarget` (KEP-3329)."""
_PREEMPTED: Final = "PreemptionByScheduler"
_NAME: Final = 60
_MESSAGE: Final = 300


class PreemptingAttempt(NamedTuple):
    """The attempt that a Pod was preempted for."""

    pod: str
    """`namespace/name` of the preemptor."""
    number: int
    trace_id: bytes
    end_unix_nano: int


def disruption_words(step: NodeStep, preemptor: PreemptingAttempt | None) -> str:
    """Return why a Pod is a target of disruption, by its condition."""
    words = _DISRUPTIONS.get(step.reason, f"a target of disruption ({safe(step.reason, _NAME) or 'no reason given'})")
    return f"{words} for {safe(preemptor.pod, 120)}" if preemptor and step.reason == _PREEMPTED else words


def end_lines(
    story: NodeStory | None, deleted: PodRequest | None, preemptor: PreemptingAttempt | None
) -> Iterator[Line]:
    """Yield why a Pod ended or is about to, and the last failure of a container; nothing where that is not known."""
    finished = story.of("finished")[-1:] if story else []
    for step in finished:
        if step.reason not in PHASES:
            yield line(f"{safe(step.reason, _NAME)}: ", strong(safe(step.error, _MESSAGE) or "no message"))
    disrupted = story.of("disrupted")[-1:] if story else []
    for step in disrupted:
        again = step.error in [each.error for each in finished]
        said = f": {safe(step.error, _MESSAGE).removesuffix('.')}" if step.error and not again else ""
        words = f"{_capital(disruption_words(step, preemptor))}{_by(step, deleted)}"
        yield line(f"{words}, {clock(step.start_unix_nano)} UTC{said}.")
    if not disrupted:
        yield from _without_condition(deleted, preemptor)
    if story and story.finalizers:
        at = clock(story.of("seen deleting")[0].start_unix_nano)
        yield line(
            f"Deletion was asked for at {at} UTC. It waits for finalizers: ", strong(safe(story.finalizers, 300))
        )
    if story and not story.failing:  # the lines of a present failure precede these
        yield from _failed_container(story)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _by(step: NodeStep, deleted: PodRequest | None) -> str:
    """Return the client that asked for an eviction, if that request is known."""
    if step.reason == "EvictionByEvictionAPI" and deleted is not None and deleted.who:
        return f" by {safe(deleted.who, _NAME)}"
    return ""


def _without_condition(deleted: PodRequest | None, preemptor: PreemptingAttempt | None) -> Iterator[Line]:
    if preemptor is not None:
        which = f"attempt {preemptor.number}, trace {preemptor.trace_id.hex()}"
        yield line(f"Preempted by the scheduler for {safe(preemptor.pod, 120)} ({which}).")
    elif deleted is not None and deleted.verb == "evicted":
        by = f" by {safe(deleted.who, _NAME)}" if deleted.who else ""
        yield line(f"Evicted through the API{by}, {clock(deleted.start_unix_nano)} UTC.")


def _failed_container(story: NodeStory) -> Iterator[Line]:
    """Yield how a container failed last."""
    # A stopped container exits with 137 or 143, which is not a failure.
    stops = [each.start_unix_nano for kind in ("seen deleting", "disrupted", "stop") for each in story.of(kind)]
    until = min(stops, default=None)
    exits = [step for step in story.of("exited") if until is None or step.start_unix_nano < until]
    failed = [step for step in exits if step.reason and not step.reason.startswith("0")]
    if failed:
        last = failed[-1]
        said = f": {safe(last.error, _MESSAGE)}" if last.error else ""
        again = f", {len(failed)} times" if len(failed) > 1 else ""
        what = safe(last.what, _NAME) or "of a name not told"
        at = clock(last.start_unix_nano)
        yield line(f"Container {what} exited with ", strong(safe(last.reason, _NAME)), f" at {at} UTC{again}{said}.")
