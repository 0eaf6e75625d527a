"""Nodes and plugins as they are listed and told: who refuses whom, what was bound, where the time goes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from podtrail.story.attempt import AttemptStory
from podtrail.story.plugin_times import PointTimes, SlowCall, Slowdown
from podtrail.story.pod import GATES, PodStory
from podtrail.story.pod_state import POD_STATES
from podtrail.story.refusal_index import RefusalIndex, refusals_of
from podtrail.story.stories import Stories

MOST_PODS = 100
"""Listed of a node or plugin."""


class NodeRow(NamedTuple):
    """One node in the list."""

    node: str
    pods: int
    """Pods that run on it or are bound to it, as far as is known."""
    bound: int
    """Attempts held that ended with it."""
    refused: int
    """Attempts held that refused it, once for each plugin and reason."""
    plugin: str
    """Who refused it most; "" for nobody, or where the source does not say."""
    reason: str
    at_least: bool = False
    """Whether there are refusals whose nodes are not all named: it may be among these."""

    @property
    def refusals(self) -> str:
        """How often it was refused, in words: `12`, `at least 12`, `unknown`."""
        return count_words(self.refused, at_least=self.at_least)


def count_words(count: int, *, at_least: bool) -> str:
    """Return a count that may be too small, in words."""
    return f"{count:,}" if not at_least else f"at least {count:,}" if count else "unknown"


class NodeRows(NamedTuple):
    """Part of a list of nodes."""

    rows: Sequence[NodeRow]
    matching: int
    """Nodes that were asked for, on whatever page."""
    total: int


@dataclass(frozen=True, slots=True)
class NodeOverview:
    """All that is told of one node."""

    row: NodeRow
    states: Mapping[str, int]
    """Of its Pods."""
    pods: tuple[PodStory, ...]
    """On it, `MOST_PODS` at most."""
    waiting: tuple[PodStory, ...]
    """Pods that wait, and whose latest answer names it among the nodes refused; `MOST_PODS` at most."""


class PluginRow(NamedTuple):
    """One plugin in the list. Lengths of time are nanoseconds, of attempts whose spans were kept."""

    plugin: str
    attempts: int
    """Attempts in which it said no, to their bind, or else to nodes, as far as all are known."""
    nodes: int
    waiting: int
    """Pods that wait for it now."""
    reason: str
    """The one it gave most; "" for none."""
    points: tuple[PointTimes, ...]
    """The extension point that took most of the time first."""

    @property
    def total(self) -> int:
        """Nanoseconds in all."""
        return sum(point.total for point in self.points)

    @property
    def slowdown(self) -> Slowdown | None:
        """Since when it takes longer, at the extension point where that makes most."""
        found = [point.slowdown for point in self.points if point.slowdown]
        return max(found, key=lambda one: one.after - one.before, default=None)


class AttemptOfCall(NamedTuple):
    """A call that took long, with the attempt that it was part of, where that is still held."""

    call: SlowCall
    pod: PodStory | None
    attempt: AttemptStory | None


@dataclass(frozen=True, slots=True)
class PluginOverview:
    """All that is told of one plugin."""

    row: PluginRow
    slowest: tuple[AttemptOfCall, ...]
    pods: tuple[PodStory, ...]
    """Those that wait for it now, `MOST_PODS` at most."""


def pods_on_nodes(pods: Iterable[PodStory]) -> Counter[str]:
    """Return how many of the Pods are on each node; a thread may."""
    return Counter(pod.node for pod in pods if _is_on_node(pod))


_ORDERS: Final[Mapping[str, Callable[[NodeRow], tuple[int | str, ...]]]] = {
    "refusals": lambda row: (-row.refused,),
    "node": lambda row: (row.node.lower(),),
    "pods": lambda row: (-row.pods,),
    "bound": lambda row: (-row.bound,),
}
NODE_SORTS: Final = tuple(_ORDERS)
"""What a list of nodes can be sorted by, the usual order first: the most first, by `node` from a to z."""


def list_nodes(
    stories: Stories,
    on: Counter[str],
    part: str = "",
    after: int = 0,
    most: int | None = None,
    sort: str = "",
) -> NodeRows:
    """Return the nodes that an attempt or a Pod names and that have `part` in their name, after so many."""
    index = stories.refusals
    named = {*index.nodes(), *on} - {""}
    found = [_node_row(name, index, on[name]) for name in named if part.lower() in name.lower()]
    order = _ORDERS[sort or NODE_SORTS[0]]
    found.sort(key=lambda row: (*order(row), row.node))
    return NodeRows(found[after:][:most], len(found), len(named))


def all_nodes(pods: Sequence[PodStory]) -> list[NodeRow]:
    """Return every node as it is listed, those refused most first; it looks at all attempts of these Pods."""
    index = RefusalIndex()
    for pod in pods:
        for attempt in pod.attempts:
            index.note(None, attempt)
    on = pods_on_nodes(pods)
    rows = [_node_row(name, index, on[name]) for name in {*index.nodes(), *on} - {""}]
    return sorted(rows, key=lambda row: (-row.refused, row.node))


def tell_node(stories: Stories, name: str) -> NodeOverview | None:
    """Return all that is known of a node; None for nothing."""
    pods = [pod for pod in stories.pods() if pod.node == name]
    known = stories.refusals.nodes().get(name)
    if not name or (known is None and not pods):
        return None
    on = [pod for pod in pods if _is_on_node(pod)]
    waiting = [pod for pod in stories.pods() if POD_STATES[pod.state].waits and _names(pod, name)] if known else []
    return NodeOverview(
        row=_node_row(name, stories.refusals, len(on)),
        states=dict(Counter[str](pod.state for pod in pods)),
        pods=tuple(pods[:MOST_PODS]),
        waiting=tuple(waiting[:MOST_PODS]),
    )


def list_plugins(stories: Stories) -> list[PluginRow]:
    """Return every plugin that refused or took time, who keeps most Pods waiting first, then who took longest."""
    return with_waiting(plugin_rows(stories), stories.pods())


def plugin_rows(stories: Stories) -> list[PluginRow]:
    """Return every plugin that refused or took time, without the Pods that wait for it."""
    times = {name: tuple(map(_without_minutes, told)) for name, told in stories.plugin_times.plugins().items()}
    past = {plugin for plugin, attempts in stories.past.refused.items() if attempts > 0}
    names = {*stories.refusals.plugins(), *past, *times} - {""}
    return [_plugin_row(stories, name, 0, times.get(name, ())) for name in names]


def with_waiting(rows: Iterable[PluginRow], pods: Iterable[PodStory]) -> list[PluginRow]:
    """Return plugins with how many of these Pods wait for each, as they are listed."""
    waiting = Counter(plugin for pod in _waiting(pods) for plugin in plugins_now(pod) if plugin)
    known = {row.plugin: row for row in rows}
    new = {name: PluginRow(name, 0, 0, 0, "", ()) for name in waiting if name not in known}
    found = [row._replace(waiting=waiting[row.plugin]) for row in (*known.values(), *new.values())]
    return sorted(found, key=lambda row: (-row.waiting, -row.total, -row.attempts, row.plugin))


def tell_plugin(stories: Stories, name: str) -> PluginOverview | None:
    """Return all that is known of a plugin; None for nothing."""
    pods = [pod for pod in _waiting(stories.pods()) if name in plugins_now(pod)]
    row = _plugin_row(stories, name, len(pods), stories.plugin_times.points(name))
    if not (name and (row.attempts or row.points or pods)):
        return None
    calls = stories.plugin_times.slowest(name)
    by_trace = {call.trace_id: call for call in reversed(calls)}  # of each attempt the call that took longest
    calls = tuple(sorted(by_trace.values(), reverse=True))
    slowest = [AttemptOfCall(call, *(stories.attempt(call.trace_id) or (None, None))) for call in calls]
    return PluginOverview(row, tuple(slowest), tuple(pods[:MOST_PODS]))


def plugins_now(pod: PodStory) -> frozenset[str]:
    """Return the plugins that a Pod waits for, as its latest answer has it."""
    if not pod.attempts:
        return frozenset({GATES} if pod.gates else ())
    return frozenset(no.plugin for no in refusals_of(pod.explained)) if pod.explained else frozenset()


def _waiting(pods: Iterable[PodStory]) -> Iterable[PodStory]:
    return (pod for pod in pods if POD_STATES[pod.state].waits)


def _without_minutes(times: PointTimes) -> PointTimes:
    return replace(times, minutes=())


def _is_on_node(pod: PodStory) -> bool:
    return bool(pod.node) and not POD_STATES[pod.state].waits and pod.state != "terminated"


def _names(pod: PodStory, node: str) -> bool:
    return pod.explained is not None and any(node in no.names for no in pod.explained.why.rejections)


def _node_row(name: str, index: RefusalIndex, on: int) -> NodeRow:
    known, (refused, at_least) = index.nodes().get(name), index.count_of(name)
    most = max(refused.items(), key=lambda item: (item[1], bool(item[0][0])))[0] if refused else ("", "")
    return NodeRow(name, on, known.bound if known else 0, refused.total(), *most, at_least=at_least)


def _plugin_row(stories: Stories, name: str, waiting: int, points: tuple[PointTimes, ...]) -> PluginRow:
    reasons = stories.refusals.plugins().get(name, {})
    most = max(reasons, key=lambda reason: reasons[reason].attempts, default="")
    attempts = stories.refusals.attempts(name) + stories.past.refused[name]
    return PluginRow(name, attempts, sum(count.nodes for count in reasons.values()), waiting, most, points)
