"""Two attempts of one Pod side by side: who said no, which nodes changed, the time by plugin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podtrail.story.attempt import AttemptStory
from podtrail.story.words import clock, duration

_MOST_NODES = 200
_MOST_PLUGINS = 40


class ComparedFact(NamedTuple):
    """A line of both."""

    what: str
    one: str
    other: str

    @property
    def same(self) -> bool:
        """Whether both say the same."""
        return self.one == self.other


class ComparedRefusal(NamedTuple):
    """How many nodes a plugin refused in each, and why."""

    plugin: str
    """Its name; the reason where only the scheduler's message tells."""
    one: int
    other: int
    reasons: tuple[str, ...]
    """Of both."""


class ChangedNode(NamedTuple):
    """A node that another plugin, or none, refused in the other attempt."""

    node: str
    one: str
    """The plugin that refused it first; "" for none that tells its name."""
    other: str


class ComparedTime(NamedTuple):
    """What a plugin took in each, in nanoseconds; None where it was not asked, or no span tells."""

    point: str
    plugin: str
    one: int | None
    other: int | None

    @property
    def most(self) -> int:
        """The longer of both."""
        return max(self.one or 0, self.other or 0)


@dataclass(frozen=True, slots=True)
class AttemptComparison:
    """Two attempts in columns."""

    one: AttemptStory
    other: AttemptStory
    facts: tuple[ComparedFact, ...]
    refusals: tuple[ComparedRefusal, ...]
    nodes: tuple[ChangedNode, ...]
    more_nodes: int
    """Changed nodes that are not listed."""
    names_cut: bool
    """Not all refused nodes are named, so that more may have changed."""
    times: tuple[ComparedTime, ...]
    """Those that took most in either first."""
    untimed: tuple[int, ...]
    """Numbers of the attempts whose spans are not here, so that no plugin's time is known."""


def compare_attempts(
    one: AttemptStory,
    other: AttemptStory,
    times: tuple[Mapping[tuple[str, str], int] | None, Mapping[tuple[str, str], int] | None] = (None, None),
) -> AttemptComparison:
    """Return two attempts side by side.

    Args:
        one: What stands on the left.
        other: What stands on the right.
        times: What each plugin took in each, by extension point and name; None where their spans are not here.
    """
    nodes = _changed_nodes(one, other)
    return AttemptComparison(
        one,
        other,
        tuple(_facts(one, other)),
        tuple(_refusals(one, other)),
        tuple(nodes[:_MOST_NODES]),
        max(0, len(nodes) - _MOST_NODES),
        names_cut=any(_names_cut(attempt) for attempt in (one, other)),
        times=tuple(_times(*times)),
        untimed=tuple(attempt.number or 0 for attempt, told in zip((one, other), times, strict=True) if told is None),
    )


def decision_of(attempt: AttemptStory) -> str:
    """Return what was decided about an attempt in a few words."""
    match attempt.decision:
        case "":
            return "-"
        case "sampled":
            return f"kept: {attempt.policy}" if attempt.policy else "kept"
        case "dropped":
            return f"dropped: {attempt.policy}"
        case _:
            return "not kept"


def _facts(one: AttemptStory, other: AttemptStory) -> list[ComparedFact]:
    facts = [
        ComparedFact("started (UTC)", clock(one.start_unix_nano), clock(other.start_unix_nano)),
        ComparedFact("result", one.result or "-", other.result or "-"),
    ]
    for what, first, second in (
        ("queue wait", one.queue_wait, other.queue_wait),
        ("took", one.duration, other.duration),
        ("scheduling", one.cycle, other.cycle),
        ("binding", one.binding, other.binding),
    ):
        facts.append(ComparedFact(what, duration(first), duration(second)))
    facts.append(ComparedFact("nodes that fit / all", _fit(one), _fit(other)))
    if one.selected_node or other.selected_node:
        facts.append(ComparedFact("node", one.selected_node or "-", other.selected_node or "-"))
    if one.generation or other.generation:
        facts.append(ComparedFact("configuration", one.generation or "-", other.generation or "-"))
    facts.append(ComparedFact("decision", decision_of(one), decision_of(other)))
    return facts


def _refusals(one: AttemptStory, other: AttemptStory) -> list[ComparedRefusal]:
    mine, theirs = _counts(one), _counts(other)
    told: dict[str, dict[str, None]] = {}
    for no in (*one.why.rejections, *other.why.rejections):
        if no.reason and no.plugin:
            told.setdefault(no.plugin, {})[no.reason] = None
    return [
        ComparedRefusal(who, mine.get(who, 0), theirs.get(who, 0), tuple(told.get(who, ())))
        for who in dict.fromkeys((*mine, *theirs))
    ]


def _counts(attempt: AttemptStory) -> dict[str, int]:
    """Return how many nodes each plugin refused."""
    counts: dict[str, int] = {}
    for no in attempt.why.rejections:
        if no.nodes is not None:
            who = no.plugin or no.reason
            counts[who] = counts.get(who, 0) + no.nodes
    return counts


def _changed_nodes(one: AttemptStory, other: AttemptStory) -> list[ChangedNode]:
    mine, theirs = _by_node(one), _by_node(other)
    if not mine and not theirs:
        return []
    nodes = dict.fromkeys((*mine, *theirs))
    changed = [ChangedNode(node, mine.get(node, ""), theirs.get(node, "")) for node in nodes]
    return sorted(change for change in changed if change.one != change.other)


def _by_node(attempt: AttemptStory) -> dict[str, str]:
    """Return the first plugin that refused each node that is named."""
    told: dict[str, str] = {}
    for no in attempt.why.rejections:
        for name in no.names:
            told.setdefault(name, no.plugin or no.reason)
    return told


def _names_cut(attempt: AttemptStory) -> bool:
    return any((no.nodes or 0) > len(no.names) for no in attempt.why.rejections)


def _times(
    mine: Mapping[tuple[str, str], int] | None, theirs: Mapping[tuple[str, str], int] | None
) -> Sequence[ComparedTime]:
    mine, theirs = mine or {}, theirs or {}
    rows = [ComparedTime(*key, mine.get(key), theirs.get(key)) for key in dict.fromkeys((*mine, *theirs))]
    return sorted(rows, key=lambda row: -row.most)[:_MOST_PLUGINS]


def _fit(attempt: AttemptStory) -> str:
    if attempt.why.nodes is None and attempt.why.feasible is None:
        return "-"
    return f"{_count(attempt.why.feasible)} / {_count(attempt.why.nodes)}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
