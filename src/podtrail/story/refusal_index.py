"""Who refuses Pods, and where they were bound: sums over the attempts held."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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


class RefusalIndex:
    """Is told of every attempt that is held, and let go of: its sums are those of the attempts held."""

    def __init__(self) -> None:
        self._plugins: dict[str, dict[str, GivenReason]] = {}
        self._attempts = Counter[str]()
        self._nodes: dict[str, NodeRefusals] = {}

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
        """Return what is known of each node."""
        return self._nodes

    def _count(self, story: AttemptStory, step: int) -> None:
        for plugin in plugins_that_refused(story):
            self._attempts[plugin] += step
            if not self._attempts[plugin]:
                del self._attempts[plugin]
        for plugin, reason, nodes, names in _refusals(story):
            told = plugin, reason
            self._count_plugin(told, nodes, step)
            for name in names:
                node = self._nodes.setdefault(name, NodeRefusals())
                node.refused[told] += step
                if not node.refused[told]:
                    del node.refused[told]
                self._clear(name)
        if story.result == "Success" and story.selected_node:
            self._nodes.setdefault(story.selected_node, NodeRefusals()).bound += step
            self._clear(story.selected_node)

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
        node = self._nodes[name]
        if not node.refused and not node.bound:
            del self._nodes[name]


def _told(story: AttemptStory) -> tuple[object, ...]:
    return (story.why.rejections, story.bind_error, story.result, story.selected_node)


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
