"""The extension points, in the order in which they run. A plugin has a `name` and the methods of those it serves.

A method returns None for success. Nodes are what the cluster looked like when the attempt began; a plugin never
changes them. `permit`, `pre_bind`, `bind` and `post_bind` may also be coroutine functions; they await only what the
`Handle` gives them (its client, its clock), so that they run in virtual time as well.
"""

from collections.abc import Awaitable, Hashable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from podtrail_scheduler.objects import Pod

from .cycle_state import CycleState
from .events import Registration
from .node_info import NodeInfo
from .queued_pod import QueuedPod
from .status import Status

MAX_SCORE = 100

Answer = TypeVar("Answer")
MaybeAsync: TypeAlias = "Answer | Awaitable[Answer]"


class Plugin(Protocol):
    """What every plugin has.

    A class that says `in_tree = True` comes with the scheduler: its plain methods wait for nobody and answer as they
    should, so they are called in place and believed. What others make of it by inheritance is theirs.
    """

    @property
    def name(self) -> str:
        """The name in configurations, statuses and spans."""
        ...


def is_in_tree(plugin: Plugin) -> bool:
    """Whether the plugin comes with the scheduler."""
    return vars(type(plugin)).get("in_tree") is True


@runtime_checkable
class EventsPlugin(Plugin, Protocol):
    """Says which events of the cluster may turn a refusal of its own."""

    def events_to_register(self) -> Sequence[Registration]:
        """The events and, for each, the hint that looks closer."""
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Keeps a Pod out of the active queue (gated) until it says otherwise."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Whether `pod` may be scheduled at all yet."""
        ...


@runtime_checkable
class QueueSortPlugin(Plugin, Protocol):
    """Orders the active queue; a profile has exactly one."""

    def sort_key(self, entry: QueuedPod) -> tuple[int, ...]:
        """The Pod with the smallest key is next."""
        ...


class PreFilterResult(NamedTuple):
    """Success, with the only nodes that are worth a look."""

    node_names: frozenset[str]


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Looks at Pod and cluster once an attempt; Skip spares the plugin's Filter, a refusal ends the attempt."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | PreFilterResult | None:
        """Prepares `filter`."""
        ...


@runtime_checkable
class PreFilterExtensions(PreFilterPlugin, Protocol):
    """Keeps what `pre_filter` wrote right while Pods are tried on and taken off nodes (preemption, nominations)."""

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status | None:
        """`added` is now counted on `node`."""
        ...

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status | None:
        """`removed` is no longer counted on `node`."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says whether a Pod fits a node."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """None when it fits."""
        ...


@runtime_checkable
class LocalFilterPlugin(FilterPlugin, Protocol):
    """A filter that looks at the Pod and at the one node only: its answers are remembered until the node changes."""

    def filter_key(self, pod: Pod) -> Hashable:
        """All of the Pod that the answer depends on: Pods of equal keys get equal answers from the same node."""
        ...


@runtime_checkable
class ColumnFilterPlugin(FilterPlugin, Protocol):
    """A filter that answers for many nodes at once, faster than one by one and to the same effect."""

    def filter_nodes(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[Status | None]:
        """An answer for each of `nodes`, in their order."""
        ...


class PostFilterResult(NamedTuple):
    """What came of trying to make room: the text about it and the node that will have some.

    `nominated_node` is empty to give up an earlier nomination, None to leave it.
    """

    status: Status | None
    nominated_node: str | None = ""


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Tries to make room when no node fits."""

    def post_filter(
        self, state: CycleState, pod: Pod, refusals: Mapping[str, Status]
    ) -> "MaybeAsync[PostFilterResult]":
        """`refusals` has the status of each node that was looked at."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Looks at the nodes that fit, once; Skip spares the plugin's Score."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Prepares `score`."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Scores nodes that fit."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0 to 100, or anything if the plugin normalizes."""
        ...


@runtime_checkable
class LocalScorePlugin(ScorePlugin, Protocol):
    """A score that looks at the Pod and at the one node only: it is remembered until the node changes."""

    def score_key(self, pod: Pod) -> Hashable:
        """All of the Pod that the score depends on: Pods of equal keys get equal scores from the same node."""
        ...


@runtime_checkable
class ColumnScorePlugin(ScorePlugin, Protocol):
    """A score that is found for many nodes at once, faster than one by one and to the same effect."""

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        """A score for each of `nodes`, in their order."""
        ...


@runtime_checkable
class NormalizeScorePlugin(ScorePlugin, Protocol):
    """Brings its scores to 0 to 100 when all are known."""

    def normalize(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Sequence[int]) -> list[int]:
        """The scores in the order of `nodes`."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Keeps something for a Pod on the chosen node."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Reserves; anything but success undoes all reservations of the attempt."""
        ...

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Gives it back; also called when `reserve` was not."""
        ...


class PermitResult(NamedTuple):
    """The answer, and with Wait for how long at most (nanoseconds)."""

    status: Status | None
    timeout: int = 0


@runtime_checkable
class PermitPlugin(Plugin, Protocol):
    """Lets a Pod bind, refuses it, or has it wait."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> "MaybeAsync[PermitResult]":
        """Success lets the Pod bind, Wait has its binding cycle wait up to the timeout, a refusal ends the attempt."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Does what must be done before a Pod can run on the node."""

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> "MaybeAsync[Status | None]":
        """May take its time: other Pods are scheduled meanwhile."""
        ...


@runtime_checkable
class PreBindPreFlight(PreBindPlugin, Protocol):
    """Says beforehand whether `pre_bind` has anything to do, so that others can be told which node it will be."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Success when it has, Skip when not; `pre_bind` is then not called."""
        ...


@runtime_checkable
class BindPlugin(Plugin, Protocol):
    """Binds a Pod, or passes it to the next binder with Skip."""

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> "MaybeAsync[Status | None]":
        """Binds the Pod to the node; Skip passes it to the next binder."""
        ...


@runtime_checkable
class PostBindPlugin(Plugin, Protocol):
    """Is told of a bound Pod."""

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> "MaybeAsync[None]":
        """Cleans up after a binding; nothing it does changes the outcome."""
        ...
