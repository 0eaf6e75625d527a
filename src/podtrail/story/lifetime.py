"""A Pod's life from its creation to its end, as moments in order, and where the time until it ran went."""

from collections.abc import Iterator
from typing import NamedTuple

from podtrail.otlp import Why
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe
from podtrail.story.node_record import NodeStep
from podtrail.story.on_node import NodeStory
from podtrail.story.pod import PodStory, who_said_no
from podtrail.story.pod_end import PHASES, PreemptingAttempt, disruption_words
from podtrail.story.pod_requests import PodRequest
from podtrail.story.words import ago, clock, duration, several

_NAME = 60
_NEAR = 2_000_000_000
"""Nanoseconds within which a container's end explains that its Pod is not ready: both have whole seconds."""


class LifeMoment(NamedTuple):
    """One thing in a Pod's life."""

    at_unix_nano: int
    what: str
    """Harmless, in one line."""
    took: int | None
    """Nanoseconds; None for what takes no time."""
    trace_id: bytes
    """Of the span that tells it."""
    bad: bool = False
    times: int = 1


def lifetime(
    pod: PodStory,
    created: PodRequest | None,
    deleted: PodRequest | None,
    preemptor: PreemptingAttempt | None = None,
) -> list[LifeMoment]:
    """Return the moments of a Pod's life in order: what repeats itself stands once, where it began."""
    moments: list[LifeMoment] = []
    told = {step.kind: step for step in reversed(pod.on_node.steps)} if pod.on_node else {}
    if created is None and "created" in told:
        # The watch shows a Pod some milliseconds after its scheduler has it.
        at = min([told["created"].start_unix_nano, *(attempt.start_unix_nano for attempt in pod.attempts[:1])])
        moments.append(LifeMoment(at, "created", None, told["created"].trace_id))
    if deleted is None and (seen := told.get("seen deleting")):
        held = f", finalizers {safe(seen.what, 120)}" if seen.what else ""
        moments.append(LifeMoment(seen.start_unix_nano, f"deletion asked for{held}", None, seen.trace_id))
    if created is not None:
        by = f" by {safe(created.who, _NAME)}" if created.who else ""
        moments.append(LifeMoment(created.start_unix_nano, f"created{by}", created.took, created.trace_id))
    moments += _attempts(pod)
    if pod.on_node is not None:
        moments += _on_node(pod.on_node, deleted)
        moments += _disruptions(pod.on_node, preemptor)
    if deleted is not None:
        by = f" by {safe(deleted.who, _NAME)}" if deleted.who else ""
        asked = f"{deleted.asked} asked for{by}"
        moments.append(LifeMoment(deleted.start_unix_nano, asked, deleted.took, deleted.trace_id))
    return sorted(moments, key=lambda moment: moment.at_unix_nano)


def _attempts(pod: PodStory) -> Iterator[LifeMoment]:
    failed = [attempt for attempt in pod.attempts if attempt.result not in ("Success", "")]
    if failed:
        first, last = failed[0], failed[-1]
        which = f"attempt {first.number}" if first is last else f"attempts {first.number} to {last.number}"
        no = who_said_no(first.why)
        why = f": {safe(no)}{_only_reason(first.why)}" if no else ""
        took = max(last.end_unix_nano - first.start_unix_nano, 0)
        yield LifeMoment(
            first.start_unix_nano, f"{which}: {safe(first.result, _NAME)}{why}", took, first.trace_id, bad=True
        )
    for attempt in pod.attempts:
        if attempt.result == "Success":
            node = f", {safe(attempt.selected_node, _NAME)}" if attempt.selected_node else ""
            yield LifeMoment(
                attempt.start_unix_nano, f"attempt {attempt.number}: bound{node}", attempt.duration, attempt.trace_id
            )


def _only_reason(why: Why) -> str:
    """Return what the one plugin that refused nodes said, where all said no for one reason."""
    told = {refusal.reason for refusal in why.rejections if refusal.plugin}
    return f" ({safe(told.pop(), _NAME)})" if len(why.rejections) == 1 and any(told) else ""


def _disruptions(story: NodeStory, preemptor: PreemptingAttempt | None) -> Iterator[LifeMoment]:
    """Yield why it was to go, and how its resources were changed in place."""
    for step in story.of("disrupted"):
        yield LifeMoment(step.start_unix_nano, disruption_words(step, preemptor), None, step.trace_id, bad=True)
    for kind, words in (("resize pending", "resize waits"), ("resizing", "resize begins"), ("resized", "resized")):
        for step in story.of(kind):
            of = f" of {safe(step.what, _NAME)}" if step.what else ""
            said = ": ".join(safe(text, 120) for text in (step.reason, step.error) if text)
            yield LifeMoment(
                step.start_unix_nano,
                f"{words}{of}{': ' if said else ''}{said}",
                None,
                step.trace_id,
                bad=kind == "resize pending",
            )
    for step in story.of("not ready"):
        if _is_unready(story, step.start_unix_nano):
            said = f": {safe(step.error, 160)}" if step.error else ""
            yield LifeMoment(step.start_unix_nano, f"no longer ready{said}", None, step.trace_id, bad=True)


def _is_unready(story: NodeStory, at: int) -> bool:
    """Return whether it stopped being ready at a moment while its containers ran on."""
    ends = [each.start_unix_nano for kind in ("terminating", "seen deleting", "finished") for each in story.of(kind)]
    if not any(each.start_unix_nano < at for each in story.of("ready")) or any(end - _NEAR <= at for end in ends):
        return False
    return not any(abs(each.start_unix_nano - at) <= _NEAR for each in story.of("exited"))


def _on_node(story: NodeStory, deleted: PodRequest | None) -> Iterator[LifeMoment]:
    """Yield what kubelet and runtime did."""
    syncs = story.of("sync")
    if syncs:
        whose = f" of {safe(story.node, _NAME)}" if story.node else ""
        yield LifeMoment(syncs[0].start_unix_nano, f"kubelet{whose} takes it on", None, syncs[0].trace_id)
    for step in story.of("sandbox"):
        network = next(
            (each for each in story.of("network") if step.start_unix_nano <= each.start_unix_nano <= step.end), None
        )
        within = f", its network {duration(network.took)}" if network else ""
        yield _moment(step, f"sandbox{within}", "sandbox fails")
    yield from _repeated(story.of("pull"), "image {} pulled", "pull of image {} fails")
    yield from _repeated(story.of("start"), "container {} started", "start of container {} fails", story.restarts)
    for step in story.of("gated")[:1]:
        yield LifeMoment(step.start_unix_nano, f"gated: {safe(step.what)}", None, step.trace_id)
    for step in story.of("ready")[:1]:
        yield LifeMoment(step.start_unix_nano, "ready", None, step.trace_id)
    yield from _exits(story)
    failures: dict[tuple[str, str], list[NodeStep]] = {}
    for step in story.of("failed"):
        failures.setdefault((step.reason, step.what), []).append(step)
    for (reason, what), steps in failures.items():
        times = f", {several(len(steps), 'time')}" if len(steps) > 1 else ""
        of = f" of {safe(what, _NAME)}" if what else ""
        words = f"{safe(reason, _NAME) or 'sync failed'}{of}{times}"
        yield LifeMoment(steps[0].start_unix_nano, words, None, steps[0].trace_id, bad=True, times=len(steps))
    told = story.stopped or not story.ran or not story.of("exited")
    for step in story.of("terminating")[:1] if told else []:
        words = "its containers are stopped" if story.stopped else "its containers have ended"
        words = "terminating" if story.stopped is None else words if story.ran else "given up"
        over = max(each.end for each in story.of("terminating")) - step.start_unix_nano
        yield LifeMoment(step.start_unix_nano, words, over, step.trace_id)
    for step in story.of("terminated")[-1:]:
        gone = is_gone(story, deleted) and not _deleted_later(story)
        words = "gone from its node" if gone else "its node has cleaned up"
        yield LifeMoment(step.start_unix_nano, words, step.took, step.trace_id)


def is_gone(story: NodeStory, deleted: PodRequest | None) -> bool:
    """Return whether the Pod no longer exists: one that has completed stays until somebody deletes it."""
    if story.watched:
        return bool(story.of("deleted"))  # finalizers may keep what its node has cleaned up
    return bool(story.of("terminated")) and deleted is not None


def _deleted_later(story: NodeStory) -> bool:
    """Return whether the Pod existed on after its node had cleaned up, as one does that has completed."""
    return any(
        step.start_unix_nano - cleaned.end > _NEAR
        for step in story.of("deleted")[:1]
        for cleaned in story.of("terminated")[-1:]
    )


def _exits(story: NodeStory) -> Iterator[LifeMoment]:
    """Yield how containers ended, and the Pod with them, and when the API server forgot it."""
    exits: dict[tuple[str, str], list[NodeStep]] = {}
    for step in story.of("exited") if story.ran else []:
        exits.setdefault((step.what, step.reason), []).append(step)
    for (what, reason), steps in exits.items():
        times = f", {several(len(steps), 'time')}" if len(steps) > 1 else ""
        words = f"container {safe(what, _NAME)} exited with {safe(reason, _NAME)}{times}"
        first, bad = steps[0].start_unix_nano, not reason.startswith("0")
        yield LifeMoment(first, words, None, steps[0].trace_id, bad=bad, times=len(steps))
    for step in story.of("finished")[:1]:
        why = step.reason not in PHASES
        if why or not exits:
            words = f"{'failed' if why else 'finished'}: {safe(step.reason, _NAME) or 'no phase told'}"
            yield LifeMoment(step.start_unix_nano, words, None, step.trace_id, bad=why)
    for step in story.of("deleted")[:1] if not story.of("terminated") or _deleted_later(story) else []:
        yield LifeMoment(step.start_unix_nano, "gone from the API server", None, step.trace_id)


def _moment(step: NodeStep, good: str, bad: str) -> LifeMoment:
    return LifeMoment(step.start_unix_nano, bad if step.error else good, step.took, step.trace_id, bad=bool(step.error))


def _repeated(steps: list[NodeStep], good: str, bad: str, again: int = 0) -> Iterator[LifeMoment]:
    """Yield for each container or image one moment of success and one of failure; `again` is told with the first."""
    told: dict[tuple[str, bool], list[NodeStep]] = {}
    for step in steps:
        told.setdefault((step.what, bool(step.error)), []).append(step)
    for (what, failed), alike in told.items():
        words = (bad if failed else good).format(safe(what, _NAME) or "of a name not told")
        if len(alike) > 1 or (again and not failed):
            count = max(len(alike), again + 1 if len(told) == 1 else 0)
            words += f", {count} times, last {clock(alike[-1].end)}"
        yield LifeMoment(
            alike[0].start_unix_nano, words, alike[0].took, alike[0].trace_id, bad=failed, times=len(alike)
        )


def lifetime_lines(
    pod: PodStory,
    created: PodRequest | None,
    deleted: PodRequest | None,
    most: int,
    preemptor: PreemptingAttempt | None = None,
) -> list[Line]:
    """Return the life in at most `most` lines: time of day, since the first moment, what, how long it took."""
    moments = lifetime(pod, created, deleted, preemptor)
    if not moments:
        return []
    first = moments[0].at_unix_nano
    shown = moments if len(moments) <= most else _chosen(moments, most - 1)
    rows: list[tuple[str | TextPiece, ...]] = []
    for moment in shown:
        since = f"+{duration(moment.at_unix_nano - first)}" if moment is not moments[0] else ""
        what = TextPiece(moment.what, "bad" if moment.bad else "")
        rows.append((clock(moment.at_unix_nano), since, what, duration(moment.took) if moment.took else ""))
    lines = columns(rows)
    if len(shown) < len(moments):
        at = next((at for at, moment in enumerate(shown) if moment is not moments[at]), len(lines))
        lines.insert(at, line(dim(f"  {len(moments) - len(shown)} more (-v)")))
    return lines


def _chosen(moments: list[LifeMoment], most: int) -> list[LifeMoment]:
    """Return the moments that say most: the first, the last, failures, then those at the beginning."""
    bad = [at for at, moment in enumerate(moments) if moment.bad]
    order = dict.fromkeys([0, len(moments) - 1, *reversed(bad), *range(len(moments))])
    return [moments[at] for at in sorted(list(order)[: max(most, 2)])]


def node_words(pod: PodStory, story: NodeStory, now: int, deleted: PodRequest | None = None) -> str:
    """Return what follows a Pod's state: since when, where, and how often its containers were started anew."""
    on = f" on {safe(pod.node, 80)}" if pod.node else ""
    again = f", {several(story.restarts, 'restart')}" if story.restarts else ""
    tries = f". {several(pod.tries, 'attempt')}" if pod.tries else ""
    match story.state:
        case "terminated":
            how = ", its containers were stopped" if story.stopped else ", its containers had ended"
            how = _result(story) or ("" if story.stopped is None else how)
            ran = f"it ran{on}{how}{again}" if story.ran else f"it never ran{on}"
            gone = "Gone" if is_gone(story, deleted) else "Finished"
            return f": {ran}{tries}. {gone} {ago(story.since_unix_nano, now)}"
        case _:
            return f"{on} since {clock(story.since_unix_nano)} UTC{_readiness(story)}{again}{tries}"


def _readiness(story: NodeStory) -> str:
    """Return since when a Pod is ready or not, or which init container it waits for."""
    if story.ready_unix_nano is not None:
        return f", ready since {clock(story.ready_unix_nano)} UTC"
    if story.state == "starting" and story.initializing:
        name = story.initializing[-1]
        since = next(step.end for step in reversed(story.of("start")) if step.what == name)
        return f", init container {safe(name, _NAME)} since {clock(since)} UTC"
    if story.state != "running":
        return ""
    if story.unready_unix_nano is not None:
        return f", no longer ready ({clock(story.unready_unix_nano)} UTC)"
    return ", not ready yet" if story.watched else ""


def _result(story: NodeStory) -> str:
    """Return the phase that it ended in, where a watch shows one."""
    phases = {"Succeeded": " and succeeded", "Failed": " and failed"}
    reasons = [step.reason for step in story.of("finished") if step.reason]
    return phases.get(reasons[0], f": {safe(reasons[0], _NAME)}") if reasons else ""
