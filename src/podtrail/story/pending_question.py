"""Who waits, grouped by the whole reason."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2s
from typing import NamedTuple

from podtrail.story.attempt import AttemptStory
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe, strong
from podtrail.story.pod import PodStory
from podtrail.story.pod_facts import pod_title
from podtrail.story.pod_state import POD_STATES, PodState
from podtrail.story.waiting import waits_for
from podtrail.story.words import duration, several, shell_word

_SHOWN = 8
_SAID_OTHERWISE = frozenset({"gated", "preempting", "bind refused", "error"})
"""States in which a Pod waits for something else than what its refusals say."""
_NAMED = 50


@dataclass(frozen=True, slots=True)
class PodsAlike:
    """Pods that wait for the same reason, in the same state."""

    state: PodState
    reason: str
    """All of it: every plugin that says no, with what it says."""
    pods: int
    since_unix_nano: int | None
    """Since when the one waits that waits longest."""
    namespaces: tuple[str, ...]
    names: tuple[str, ...]
    """Who waits longest first; at most 50."""
    command: str
    """Tells more of the one that waits longest."""
    alike: str
    """As `alike_key` has it."""


class WaitingPods(NamedTuple):
    """Pods that wait for the same reason, in short, as `podtrail top` and the summary name them."""

    pods: int
    reason: str
    """As `PodsAlike` has it."""
    namespace: str
    name: str
    key: str
    """One of them, as an example."""
    gated: bool = False
    """They have not been tried: no span tells of them."""
    cluster: str = ""
    """Of the example, where there are several."""


def whole_reason(pod: PodStory) -> str:
    """Return all that a Pod waits for, without what is its own: who says no, and what.

    How many nodes, and which, is left out: these change while nodes come and go.
    """
    explained = pod.explained
    if explained is None and pod.state == "waiting":
        return "its first attempt: none is told of yet"
    if pod.state not in _SAID_OTHERWISE and explained and explained.why.rejections:
        said = {f"{plugin}: " if plugin else "": reasons for plugin, reasons in _refusers(explained).items()}
        return "; ".join(f"{who}{', '.join(reasons)}" for who, reasons in said.items())
    reason = waits_for(pod)
    own = {f"{pod.namespace}/{pod.name}": "…", f'"{pod.name}"': '"…"'} if pod.name else {}
    for name, stand_in in own.items():
        reason = reason.replace(name, stand_in)
    return reason


def _refusers(attempt: AttemptStory) -> dict[str, list[str]]:
    """Return what each plugin said, in order; a message has one by one what a span tells together."""
    said: dict[str, list[str]] = {}
    for refusal in attempt.why.rejections:
        reasons = said.setdefault(refusal.plugin, [])
        reasons += [part for part in refusal.reason.split(", ") if part not in reasons]
    return said


def alike_key(pod: PodStory) -> str:
    """Return what Pods have in common that wait for the same, and no others: 12 hexadecimal digits."""
    said = "\0".join((pod.state, *sorted(_parts(pod))))
    return blake2s(said.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _parts(pod: PodStory) -> frozenset[str]:
    # Spans and messages tell the same in another order.
    return frozenset(whole_reason(pod).split("; "))


def pods_alike(pods: Iterable[PodStory]) -> tuple[PodsAlike, ...]:
    """Return the Pods that wait, by state and reason: the most first."""
    groups = [_alike(state, alike) for state, alike in _grouped(pods)]
    return tuple(sorted(groups, key=lambda one: (-one.pods, one.since_unix_nano or 0)))


def waiting_pods(pods: Iterable[PodStory]) -> list[WaitingPods]:
    """Return the same in short: the most first."""
    groups = [_in_short(state, alike) for state, alike in _grouped(pods)]
    return sorted(groups, key=lambda one: -one.pods)


def _grouped(pods: Iterable[PodStory]) -> list[tuple[PodState, list[PodStory]]]:
    found: dict[tuple[PodState, frozenset[str]], list[PodStory]] = {}
    for pod in pods:
        if POD_STATES[pod.state].waits:
            found.setdefault((pod.state, _parts(pod)), []).append(pod)
    return [(state, alike) for (state, _), alike in found.items()]


def _in_short(state: PodState, pods: Sequence[PodStory]) -> WaitingPods:
    one = pods[0]
    cluster = one.cluster if one.several_clusters else ""
    reason = whole_reason(_told_by_spans(pods))
    return WaitingPods(len(pods), reason, one.namespace, one.name, one.key, state == "gated", cluster)


def _told_by_spans(pods: Sequence[PodStory]) -> PodStory:
    return next((pod for pod in pods if pod.explained and not pod.explained.why.message_only), pods[0])


def _alike(state: PodState, pods: list[PodStory]) -> PodsAlike:
    pods.sort(key=lambda pod: (pod.since_unix_nano is None, pod.since_unix_nano or 0, pod.key))
    namespaces = tuple(sorted({pod.namespace for pod in pods}))
    titles = tuple(map(pod_title, pods[:_NAMED]))
    reason = whole_reason(_told_by_spans(pods))
    since, key = pods[0].since_unix_nano, alike_key(pods[0])
    return PodsAlike(state, reason, len(pods), since, namespaces, titles, why_command(pods[0]), key)


def why_command(pod: PodStory) -> str:
    """Return the command that tells of a Pod."""
    if not pod.name or (pod.several_clusters and not pod.cluster):
        return f"podtrail why pod {shell_word(pod.key)}"
    of = f"--cluster {shell_word(pod.cluster)} " if pod.several_clusters else ""
    return f"podtrail why pod {of}{shell_word(f'{pod.namespace}/{pod.name}')}"


def pending_lines(groups: Sequence[PodsAlike], now: int, when: Line) -> tuple[list[Line], list[Line]]:
    """Return who waits in words, and the Pods by name."""
    if not groups:
        return [line("No Pod waits for a node.", *when)], []
    total = sum(group.pods for group in groups)
    since = [group.since_unix_nano for group in groups if group.since_unix_nano is not None]
    oldest = f", the oldest for {duration(max(0, now - min(since)))}" if since else ""
    for_what = " for the same reason" if len(groups) == 1 else f" for {len(groups):,} reasons"
    wait = " waits" if total == 1 else f" wait{for_what}"
    lines = [line(strong(several(total, "Pod")), f"{wait}{oldest}.", *when)]
    rows = [_row(group, now) for group in groups[:_SHOWN]]
    for told, group in zip(columns(rows, right=1), groups, strict=False):
        lines += [told, line("       ", TextPiece(group.command, "command"))]
    more = groups[_SHOWN:]
    if more:
        lines.append(line(dim(f"and {sum(group.pods for group in more):,} more for {len(more):,} other reasons: -v")))
    return lines, _details(groups, now)


def _row(group: PodsAlike, now: int, width: int = 160) -> tuple[str | TextPiece, ...]:
    state = TextPiece(group.state, POD_STATES[group.state].style)
    waits = "-" if group.since_unix_nano is None else duration(max(0, now - group.since_unix_nano))
    return strong(f"{group.pods:,}"), state, waits, safe(group.reason, width)


def _details(groups: Sequence[PodsAlike], now: int) -> list[Line]:
    lines: list[Line] = []
    for group in groups:
        rest = f" and {group.pods - len(group.names):,} more" if group.pods > len(group.names) else ""
        lines += columns([_row(group, now, 1_000)], indent=0)
        lines.append(line("  ", ", ".join(safe(name, 120) for name in group.names), rest))
    return lines
