"""Who refuses a node, or what a plugin refuses: counted over attempts, by the reason."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from podtrail.otlp import Rejection
from podtrail.story.attempt import AttemptStory
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe, strong
from podtrail.story.pending_question import why_command
from podtrail.story.pod import PodStory
from podtrail.story.pod_state import POD_STATES
from podtrail.story.words import ago, several

_SHOWN = 6


class RefusedFor(NamedTuple):
    """By whom, where and for what."""

    plugin: str
    """"" where the source does not name it."""
    point: str
    reason: str


@dataclass(frozen=True, slots=True)
class RefusalCount:
    """How often a plugin refused for one reason."""

    plugin: str
    point: str
    reason: str
    pods: int
    waiting: int
    """Of these, Pods that wait now and whose latest answer says so."""
    attempts: int
    last_unix_nano: int
    command: str
    """Tells more of one of the Pods, of one that waits if there is one."""


@dataclass(slots=True)
class _Refused:
    pods: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)
    attempts: int = 0
    last: int = 0
    example: PodStory | None = None

    def count(self, key: str, attempt: AttemptStory) -> None:
        self.attempts += 1
        self.pods.add(key)
        self.last = max(self.last, attempt.start_unix_nano)

    def note(self, pod: PodStory, attempt: AttemptStory) -> None:
        self.count(pod.key, attempt)
        waits = attempt is pod.explained and POD_STATES[pod.state].waits
        if self.example is None or (waits and not self.waiting):
            self.example = pod
        if waits:
            self.waiting.add(pod.key)


class RefusalTally:
    """Counts refusals of attempts."""

    def __init__(self) -> None:
        self._found: dict[RefusedFor, _Refused] = {}

    def note(self, pod: PodStory, attempt: AttemptStory, refusals: Iterable[Rejection]) -> None:
        """Count what an attempt met, each reason once."""
        for what in {RefusedFor(each.plugin, each.point, each.reason) for each in refusals}:
            self._found.setdefault(what, _Refused()).note(pod, attempt)

    def note_past(self, key: str, attempt: AttemptStory, refusals: Iterable[Rejection]) -> None:
        """Count what an attempt met that is no longer held with its Pod, by the Pod's key."""
        for what in {RefusedFor(each.plugin, each.point, each.reason) for each in refusals}:
            self._found.setdefault(what, _Refused()).count(key, attempt)

    def told(self) -> tuple[RefusalCount, ...]:
        """Return the counts: what Pods wait for first, then by attempts; those without a plugin's name at the end."""
        counts = [
            RefusalCount(
                *what,
                pods=len(found.pods),
                waiting=len(found.waiting),
                attempts=found.attempts,
                last_unix_nano=found.last,
                command=why_command(found.example) if found.example else "",
            )
            for what, found in self._found.items()
        ]
        return tuple(
            sorted(counts, key=lambda one: (not one.plugin, -one.waiting, -one.attempts, one.plugin, one.reason))
        )


def refusal_lines(
    counts: tuple[RefusalCount, ...], now: int, *, by_plugin: bool, most: int = _SHOWN, width: int = 110
) -> list[Line]:
    """Return counts as lines, each with a command that tells more; `by_plugin`: who refused is said as well."""
    rows: list[tuple[str | TextPiece, ...]] = []
    for one in counts[:most]:
        who = (one.plugin or "-",) if by_plugin else (one.point or "-",)
        rows.append(
            (
                strong(f"{one.waiting:,}") if one.waiting else dim("0"),
                f"{one.pods:,}",
                f"{one.attempts:,}",
                *(safe(each, 60) for each in who),
                ago(one.last_unix_nano, now),
                safe(one.reason, width),
            )
        )
    head = (dim("WAIT"), dim("PODS"), dim("TRIES"), dim("PLUGIN" if by_plugin else "POINT"), dim("LAST"), dim("REASON"))
    lines: list[Line] = columns([head, *rows], right=3) if rows else []
    if counts and counts[0].command:
        lines.append(line("  e.g. ", TextPiece(counts[0].command, "command")))
    if len(counts) > most:
        lines.append(line(dim(f"  and {several(len(counts) - most, 'other reason')}: -v")))
    return lines
