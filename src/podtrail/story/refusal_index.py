"""Who refuses Pods, and where they were bound: sums over the attempts held."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from podtrail.otlp import Rejection
from podtrail.story.attempt import AttemptStory
from podtrail.story.bind import BIND, read_bind_refusal


@dataclass(slots=True)
class GivenReason:
    """How often a plugin gave a reason."""

    attempts: int = 0
    nodes: int = 0
    """Summed over the attempts, as far as they tell."""


@dataclass(slots=True)
class NodeRefusals:
    """What is known of a node by attempts; sources name about ten nodes of each refusal."""

    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By plugin and reason, attempts in which it was named among the nodes refused."""
    bound: int = 0
    """Attempts that ended with it."""
    since: int = 1 << 63
    """When the first attempt began that names it, Unix nanoseconds."""
    mentions: int = 0
    """Attempts that name it."""
    in_all: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Of the attempts in which every node was refused, those that name it, by whom that is counted for."""
    named: int = 0
    """Of the attempts that do not name all nodes that they refused, those that name it."""


class NodeCount(NamedTuple):
    """How often a node was refused."""

    refused: Counter[tuple[str, str]]
    """By plugin and reason; both "" where the source does not say which plugin refused it."""
    at_least: bool
    """Whether there are refusals whose nodes are not all named: it may be among these."""


class RefusalIndex:
    """Is told of every attempt that is held, and let go of: its sums are those of the attempts held."""

    def __init__(self) -> None:
        self._plugins: dict[str, dict[str, GivenReason]] = {}
        self._attempts = Counter[str]()
        self._nodes: dict[str, NodeRefusals] = {}
        self._all: dict[tuple[str, str], list[int]] = {}
        """When attempts began in which every node was refused, in order, by plugin and reason if it was one."""
        self._incomplete = 0
        """Other attempts that do not name all nodes that they refused."""

    def note(self, before: AttemptStory | None, after: AttemptStory | None) -> None:
        """Count an attempt as it is now known instead of as it was; None: not yet, or no longer."""
        if before is not None and after is not None and _told(before) == _told(after):
            return
        if before is not None:
            self._count(before, -1)
        if after is not None:
            self._count(after, 1)

    def plugins(self) -> Mapping[str, Mapping[str, GivenReason]]:
        """Return what each plugin refused, by reason."""
        return self._plugins

    def attempts(self, plugin: str) -> int:
        """Return in how many attempts a plugin said no, for whatever reasons."""
        return self._attempts[plugin]

    def nodes(self) -> Mapping[str, NodeRefusals]:
        """Return what is known of each node by the attempts that name it."""
        return self._nodes

    def count_of(self, name: str) -> NodeCount:
        """Return how often a node was refused, with the attempts in which every node was."""
        node = self._nodes.get(name)
        if node is None:  # nobody knows since when it is there
            return NodeCount(Counter(), at_least=bool(self._all) or self._incomplete > 0)
        refused = Counter(node.refused)
        for told, starts in self._all.items():
            more = len(starts) - bisect_left(starts, node.since) - node.in_all[told]
            if more > 0:
                refused[told] += more
        return NodeCount(refused, at_least=self._incomplete > node.named)

    def _count(self, story: AttemptStory, step: int) -> None:
        for plugin in plugins_that_refused(story):
            self._attempts[plugin] += step
            if not self._attempts[plugin]:
                del self._attempts[plugin]
        every = refused_by_all(story)
        incomplete = every is None and names_some(story)
        self._incomplete += step * incomplete
        if every is not None:
            self._count_all(every, story.start_unix_nano, step)
        told_of: dict[str, list[tuple[str, str]]] = {}
        for plugin, reason, nodes, names in _refusals(story):
            told = plugin, reason
            self._count_plugin(told, nodes, step)
            for name in names:
                told_of.setdefault(name, []).append(told)
        for name, by in told_of.items():
            node = self._mention(name, story.start_unix_nano, step)
            for told in by:
                _add(node.refused, told, step)
            if every is not None and every in (_SEVERAL, *by):
                _add(node.in_all, every, step)
            node.named += step * incomplete
            self._clear(name)
        if story.result == "Success" and story.selected_node:
            self._mention(story.selected_node, story.start_unix_nano, step).bound += step
            self._clear(story.selected_node)

    def _mention(self, name: str, start: int, step: int) -> NodeRefusals:
        node = self._nodes.setdefault(name, NodeRefusals())
        node.mentions += step
        node.since = min(node.since, start)
        return node

    def _count_all(self, told: tuple[str, str], start: int, step: int) -> None:
        starts = self._all.setdefault(told, [])
        if step > 0:
            insort(starts, start)
            return
        del starts[bisect_left(starts, start)]
        if not starts:
            del self._all[told]

    def _count_plugin(self, told: tuple[str, str], nodes: int, step: int) -> None:
        plugin, reason = told
        reasons = self._plugins.setdefault(plugin, {})
        count = reasons.setdefault(reason, GivenReason())
        count.attempts += step
        count.nodes += step * nodes
        if not count.attempts:
            del reasons[reason]
        if not reasons:
            del self._plugins[plugin]

    def _clear(self, name: str) -> None:
        if not self._nodes[name].mentions:
            del self._nodes[name]


def _add(counter: Counter[tuple[str, str]], told: tuple[str, str], step: int) -> None:
    counter[told] += step
    if not counter[told]:
        del counter[told]


def _told(story: AttemptStory) -> tuple[object, ...]:
    why = story.why
    return (why.rejections, why.nodes, why.feasible, story.bind_error, story.result, story.selected_node)


_SEVERAL: Final = ("", "")
"""In the place of plugin and reason where several plugins together refused every node."""


def refused_by_all(story: AttemptStory) -> tuple[str, str] | None:
    """Return by whom every node was refused in an attempt, two empty texts for several plugins; None if a node fitted.

    A scheduler that finds no node has looked at all of them.
    """
    why = story.why
    if story.result != "Unschedulable" or not why.nodes or why.feasible or story.bind_error:
        return None
    told = list(_refusals(story))
    alone = [(plugin, reason) for plugin, reason, nodes, _ in told if nodes >= why.nodes]
    if len(told) == 1 and not told[0][2]:  # PreFilter refuses them all, without a count
        alone = [told[0][:2]]
    return alone[0] if alone else _SEVERAL


def names_some(story: AttemptStory) -> bool:
    """Return whether an attempt refused nodes whose names its source does not give, or not all of them."""
    return any(len(no.names) < (no.nodes or 0) for no in story.why.rejections)


def refusals_of(story: AttemptStory) -> tuple[Rejection, ...]:
    """Return who said no in an attempt: to its bind, or else to nodes."""
    if story.bind_error:
        refusal = read_bind_refusal(story.bind_error)
        return (Rejection(refusal.plugin or BIND, "bind", "", refusal.why, None),)
    return story.why.rejections


def plugins_that_refused(story: AttemptStory) -> frozenset[str]:
    """Return which plugins said no in an attempt, to its bind, or else to nodes: this is what is counted."""
    return frozenset(no.plugin for no in refusals_of(story) if no.plugin)


def _refusals(story: AttemptStory) -> Iterator[tuple[str, str, int, tuple[str, ...]]]:
    """Yield plugin, reason, count of nodes and their names, once for each plugin and reason."""
    told: dict[tuple[str, str], tuple[int, tuple[str, ...]]] = {}
    for no in refusals_of(story):
        if no.plugin:
            nodes, names = told.get((no.plugin, no.reason), (0, ()))
            told[no.plugin, no.reason] = (nodes + (no.nodes or 0), names + no.names)
    for (plugin, reason), (nodes, names) in told.items():
        yield plugin, reason, nodes, tuple(dict.fromkeys(names))
