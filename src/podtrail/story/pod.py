"""A Pod's story as it is shown: its state, its attempts in order, why it waits."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from podtrail.otlp import Rejection, Why, read_message
from podtrail.story.attempt import AttemptStory
from podtrail.story.bind import BIND, read_bind_refusal
from podtrail.story.on_node import NodeStory
from podtrail.story.pod_facts import PodFacts
from podtrail.story.pod_state import POD_STATES, PodState
from podtrail.story.slow_part import slow_words
from podtrail.story.words import several

GATES: Final = "SchedulingGates"
"""The plugin that keeps a gated Pod from being tried."""
_URGENCY = {state: at for at, state in enumerate(POD_STATES)}

_MAY_BE_SLOW = frozenset({"scheduled", "starting", "running"})
"""States in which how long an attempt took is the worst that can be said."""
_NO_NODE_FITS = frozenset({"unschedulable", "preempting"})
_READY_WITHIN = 30_000_000_000
"""Nanoseconds from its last start that are left to a Pod to be ready, until it is to be looked at."""
_WORTH = 10
"""A plugin that takes less than this part of an attempt did not make it slow."""
_BY_CONDITION: Final[Mapping[str, PodState]] = {"Unschedulable": "unschedulable", "SchedulerError": "error"}
"""States of a Pod without a known attempt, by the reason of its condition."""
_STILL_PREEMPTING = "terminating pod on the nominated node"


@dataclass(frozen=True)
class PodStory:
    """What page, API and terminal say about one Pod."""

    key: str
    uid: str
    namespace: str
    name: str
    state: PodState
    slow: bool
    """Scheduled, but an attempt took longer than it should."""
    since_unix_nano: int | None
    """When it began to wait for a node, as far as its attempts tell."""
    until_unix_nano: int | None
    """When it was scheduled; None while it waits."""
    tries: int
    last_try_unix_nano: int | None
    node: str
    """The node it runs on, was to be bound to or is nominated for; "" for none."""
    gates: tuple[str, ...]
    headline: str
    """Why, in one line."""
    same: int
    """The latest attempts in a row that gave the same answer."""
    seen: int
    """Attempts whose answer is known."""
    forgotten: int
    attempts: tuple[AttemptStory, ...]
    """By start; the oldest but the first are forgotten where there were too many."""
    on_node: NodeStory | None = None
    """What its node tells; None until a span of the kubelet or the container runtime does."""
    life_trace_id: bytes = b""
    """Of the trace of its life; b"" where none was seen."""
    cluster: str = ""
    """`k8s.cluster.name` of the resource of its spans; "" where none says it."""
    several_clusters: bool = False
    """Whether Pods of several clusters are known, so that a name alone may be that of several."""
    gated_since_unix_nano: int | None = None
    """Since when gates held it, where somebody told, also once they are gone."""
    gated_until_unix_nano: int | None = None
    """Until when gates held it; None while they do, or where that is unknown."""
    past_gates: tuple[str, ...] = ()
    """The gates that held it last, once they are gone."""
    condition_message: str = ""
    """Of its condition `PodScheduled` while that is False; "" where no watch shows one."""
    held_by: str = ""
    """What keeps the scheduler from trying it beside its gates; "" for nothing."""
    scheduler: str = ""
    """The scheduler that it asks for; "" where that is unknown."""
    deleted_unix_nano: int | None = None
    """When it was deleted; None while it exists, as far as is known."""
    left_as: PodState | None = None
    """The state in which it was deleted; None while it exists."""

    def waiting(self, now: int) -> int | None:
        """Return for how many nanoseconds it has waited for a node, at `now`; None where that is not known."""
        if self.since_unix_nano is None or (self.state == "scheduled" and self.until_unix_nano is None):
            return None
        return max(0, (now if self.until_unix_nano is None else self.until_unix_nano) - self.since_unix_nano)

    def unready(self, now: int) -> bool:
        """Return whether at `now` it has run for long and somebody who would tell that it is ready does not."""
        story = self.on_node
        return (
            story is not None
            and (self.state == "running" or (self.state == "starting" and bool(story.initializing)))
            and story.watched
            and story.ready_unix_nano is None
            and now - story.since_unix_nano >= _READY_WITHIN
        )

    @property
    def since_its_first(self) -> bool:
        """Whether its creation or its first attempt is known; else it waits longer than since its first known one."""
        if not self.attempts or (self.attempts[0].number or 1) == 1:
            return True
        return (self.since_unix_nano or 0) < _queued(self.attempts[0])

    @property
    def last(self) -> AttemptStory | None:
        """The latest attempt."""
        return self.attempts[-1] if self.attempts else None

    @cached_property
    def plugins(self) -> frozenset[str]:
        """Plugins that refused it or took a tenth of an attempt."""
        found = {no.plugin for attempt in self.attempts for no in attempt.why.rejections}
        for attempt in self.attempts:
            least = (attempt.duration or 0) / _WORTH
            found.update(phase.plugin for phase in attempt.phases if phase.plugin_took and phase.plugin_took >= least)
        if self.gates and not self.attempts:
            found.add(GATES)
        if self.last and self.last.bind_error:
            found.add(read_bind_refusal(self.last.bind_error).plugin or BIND)
        return frozenset(found - {""})

    @cached_property
    def explained(self) -> AttemptStory | None:
        """The latest attempt, or one with the same answer whose spans tell more about it."""
        return _explained(self.attempts)

    @property
    def blocker(self) -> Rejection | None:
        """The refusal that stood on most nodes."""
        return max(self.explained.why.rejections, key=lambda r: r.nodes or 0, default=None) if self.explained else None

    @property
    def reason(self) -> str:
        """What the plugin said that refused most nodes, where no node fits; "" elsewhere."""
        return self.blocker.reason if self.state in _NO_NODE_FITS and self.blocker else ""


def tell_pod(
    facts: PodFacts,
    attempts: Sequence[AttemptStory],
    slow_after: int,
    on_node: NodeStory | None = None,
    *,
    several_clusters: bool = False,
) -> PodStory:
    """Return the story of a Pod from its attempts in any order; `slow_after` is nanoseconds of one attempt."""
    told = _numbered(_of_this_pod(facts, attempts), facts.forgotten)
    deleted = _deletion(facts, told)
    last = told[-1] if told else None
    left_as = None if deleted is None or on_node else _state(facts, told)
    state = on_node.state if on_node else "deleted" if left_as else _state(facts, told)
    slow = state in _MAY_BE_SLOW and any((attempt.duration or 0) >= slow_after for attempt in told)
    return PodStory(
        key=facts.key,
        uid=facts.uid,
        namespace=facts.namespace,
        name=facts.name,
        state=state,
        slow=slow,
        since_unix_nano=_since(facts, told),
        until_unix_nano=_until(facts, last, deleted),
        tries=max(facts.forgotten + len(told), (last.number or 0) if last else 0),
        last_try_unix_nano=last.start_unix_nano if last else None,
        node=(on_node.node if on_node else "") or _node(told, state) or facts.node,
        gates=facts.gates,
        headline=_headline(facts, told, left_as or state, slow) if on_node is None or slow else _headline_on(on_node),
        same=_same(told),
        seen=len(told),
        forgotten=facts.forgotten,
        attempts=tuple(told),
        on_node=on_node,
        life_trace_id=facts.life_trace_id,
        cluster=facts.cluster,
        several_clusters=several_clusters,
        gated_since_unix_nano=facts.gated_since,
        gated_until_unix_nano=facts.gated_until,
        past_gates=facts.past_gates,
        condition_message=facts.condition_message,
        held_by=facts.held_by,
        scheduler=facts.scheduler,
        deleted_unix_nano=deleted,
        left_as=left_as,
    )


def slow_attempt(pod: PodStory) -> AttemptStory | None:
    """Return the attempt that took longest."""
    return max(pod.attempts, key=lambda attempt: attempt.duration or 0, default=None)


def begun(pod: PodStory) -> float:
    """Return when a Pod was first heard of, Unix nanoseconds; of Pods of one name the one made last is the latest."""
    steps = pod.on_node.steps[:1] if pod.on_node else ()
    moments = [step.start_unix_nano for step in steps]
    return min([*moments, *([] if pod.since_unix_nano is None else [pod.since_unix_nano])], default=math.inf)


def urgency(pod: PodStory) -> tuple[int, bool, int, str]:
    """Return what Pods are ordered by: state, then who waits longest."""
    return (_URGENCY[pod.state], not pod.slow, pod.since_unix_nano or 0, pod.key)


def _numbered(attempts: Sequence[AttemptStory], forgotten: int) -> list[AttemptStory]:
    """Give every attempt its place: as counted in the pipeline where its spans carry it, else behind the one before."""
    told: list[AttemptStory] = []
    for attempt in sorted(attempts, key=lambda one: (one.start_unix_nano, one.span_id)):
        before = told[-1].number or 0 if told else 0
        if len(told) == 1:
            before += forgotten
        told.append(replace(attempt, number=max(attempt.number or 0, before + 1)))
    return told


def _of_this_pod(facts: PodFacts, attempts: Sequence[AttemptStory]) -> Sequence[AttemptStory]:
    """Return the attempts without those of an earlier Pod: without uids, one and its successor share a key."""
    if facts.uid:
        return attempts
    if facts.follows is not None:
        attempts = [one for one in attempts if one.start_unix_nano > facts.follows]
    return [one for one in attempts if one.start_unix_nano > (facts.deleted or 0)] or attempts


def _deletion(facts: PodFacts, told: Sequence[AttemptStory]) -> int | None:
    """Return when the Pod was deleted; None where its attempts show that another Pod of its name followed."""
    if facts.deleted is None or facts.uid:
        return facts.deleted
    return None if told and told[0].start_unix_nano > facts.deleted else facts.deleted


def _is_bound(facts: PodFacts, told: Sequence[AttemptStory]) -> bool:
    """Return whether the Pod has a node by other sources than its attempts."""
    if facts.uid or not facts.bound or not told:
        return facts.bound
    return told[-1].start_unix_nano <= (facts.bound_at or 0)  # else a later Pod of its name was tried


def _state(facts: PodFacts, told: Sequence[AttemptStory]) -> PodState:
    if _is_bound(facts, told) and (not told or told[-1].result != "Success"):
        return "scheduled"
    if facts.held_by and (not told or told[-1].result != "Success"):
        return "gated"
    if not told:
        return "gated" if facts.gates else _BY_CONDITION.get(facts.condition, "waiting")
    last = told[-1]
    match last.result:
        case "Success":
            return "scheduled"
        case "Error":
            return "bind refused" if last.bind_error else "error"
        case "":
            return "binding" if last.selected_node else "waiting"
        case _:
            preempting = last.nominated_node or _STILL_PREEMPTING in last.message
            return "preempting" if preempting else "unschedulable"


def _until(facts: PodFacts, last: AttemptStory | None, deleted: int | None) -> int | None:
    """Return when it had a node, or no longer needed one; None while it waits, or where that is unknown."""
    if last is not None and last.result == "Success":
        return last.end_unix_nano
    return facts.bound_at if _is_bound(facts, (last,) if last else ()) else deleted


def _since(facts: PodFacts, told: Sequence[AttemptStory]) -> int | None:
    if not told:
        return facts.created or facts.gated_since
    return min(_queued(told[0]), facts.created or _queued(told[0]))


def _queued(attempt: AttemptStory) -> int:
    """Return when a Pod came into the queue for an attempt, as far as that is known."""
    return attempt.start_unix_nano - (attempt.queue_wait or 0)


def _node(told: Sequence[AttemptStory], state: PodState) -> str:
    if state == "preempting":
        return next((attempt.nominated_node for attempt in reversed(told) if attempt.nominated_node), "")
    return told[-1].selected_node if told else ""


def answer(attempt: AttemptStory) -> tuple[object, ...]:
    """Return what makes two attempts have the same outcome."""
    # Told from a message, the same refusals look different than told from spans; the message itself does not.
    return (attempt.result, attempt.selected_node if attempt.result == "Success" else "", attempt.message)


def _explained(told: Sequence[AttemptStory]) -> AttemptStory | None:
    for attempt in reversed(told):
        if answer(attempt) != answer(told[-1]):
            break
        if not attempt.why.message_only:
            return attempt
    return told[-1] if told else None


def _same(told: Sequence[AttemptStory]) -> int:
    count = 0
    for attempt in reversed(told):
        if answer(attempt) != answer(told[-1]):
            break
        count += 1
    return count


def who_said_no(why: Why, most: int = 2) -> str:
    """Return refusals in one line, most nodes first: `31 NodeAffinity, 2 NodeResourcesFit, 1 more`."""
    counts: dict[str, int] = {}
    for rejection in why.rejections:
        who = rejection.plugin or rejection.reason
        counts[who] = counts.get(who, 0) + (rejection.nodes or 0)
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    parts = [f"{count:,} {who}" if count else who for who, count in ordered[:most]]
    if len(ordered) > most:
        parts.append(f"{len(ordered) - most} more")
    return ", ".join(parts)


def _headline(facts: PodFacts, told: Sequence[AttemptStory], state: PodState, slow: bool) -> str:
    last = told[-1] if told else None
    match state:
        case "gated" if not facts.gates:
            return facts.held_by
        case "gated":
            more = f", {len(facts.gates) - 1} more" if len(facts.gates) > 1 else ""
            return f"gates: {facts.gates[0]}{more}"
        case "bind refused":
            return str(read_bind_refusal(last.bind_error)).removeprefix(f"{BIND}: ") if last else ""
        case "preempting":
            node = _node(told, state)
            return f"nominated {node}" if node else "waits for Pods to go"
        case _ if slow:
            return slow_words(max(told, key=lambda attempt: attempt.duration or 0))
        case "scheduled":
            node = (last.selected_node if last and last.result == "Success" else "") or facts.node
            return f"on {node}" if node else ""
        case _:
            explained = _explained(told)
            why = explained.why if explained else read_message(facts.condition_message)
            return who_said_no(why) or ("" if explained else facts.condition_message)


def _headline_on(story: NodeStory) -> str:
    if story.failing and story.failure is not None:
        reason = f"{story.failure.reason}: " if story.failure.reason else ""
        return f"{reason}{story.failure.error}"
    ended = [step for step in story.of("finished") if step.reason not in ("", "Succeeded", "Failed")]
    if ended:
        return f"{ended[-1].reason}: {ended[-1].error}" if ended[-1].error else ended[-1].reason
    again = f", {several(story.restarts, 'restart')}" if story.restarts else ""
    if story.finalizers:
        return f"finalizers: {story.finalizers}"
    return f"on {story.node}{again}" if story.node else again.removeprefix(", ")
