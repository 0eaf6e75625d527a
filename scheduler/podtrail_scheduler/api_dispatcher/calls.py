"""The kinds of calls and how two of them for the same Pod become one."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from enum import Enum

from podtrail_scheduler.framework.client import Client, PodCondition
from podtrail_scheduler.objects import Pod

NOT_READY_FOR_SCHEDULING = "NotReadyForScheduling"
"""Reason of the condition PodScheduled=False, and of the Event, of a Pod that PreEnqueue rejects (KEP-5501)."""

Known = tuple[str, str, str]
"""Status, reason and message of a condition."""
Believed = Callable[[Pod, str], Known | None]
"""What a condition of a Pod is, as far as is known: as the watch showed it, or as it was written since."""


class CallType(Enum):
    """The label `call_type` in metrics. Of two calls for one Pod the more relevant one is made."""

    POD_STATUS_PATCH = "pod_status_patch"
    POD_BINDING = "pod_binding"

    @property
    def relevance(self) -> int:
        """The higher, the more relevant."""
        return 2 if self is CallType.POD_BINDING else 1


def _nothing() -> None:
    """Does nothing."""


@dataclass(slots=True, eq=False)
class PodBinding:
    """Binds a Pod to a node; `annotations` go along in the same request."""

    pod: Pod
    node_name: str
    annotations: Mapping[str, str]

    type = CallType.POD_BINDING

    @property
    def conditions_touched(self) -> Set[str]:
        """The types of conditions that it writes."""
        return frozenset()

    def take_over(self, older: "APICall") -> None:
        """A later binding takes the place of an earlier one."""

    def sync(self, pod: Pod) -> None:
        """What the watch shows does not matter to a binding."""

    def is_no_op(self, believed: Believed) -> bool:  # noqa: ARG002
        """A binding always does something."""
        return False

    def settle(self, believed: Believed) -> None:
        """Does nothing: a binding has no part that another call could make needless."""

    async def execute(self, client: Client) -> None:
        """Sends the request.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        await client.bind(self.pod, self.node_name, self.annotations)


@dataclass(slots=True, eq=False)
class PodStatusPatch:
    """Writes conditions and the nominated node (None: leaves it) into a Pod's status.

    `conditions` are by type; None takes PodScheduled away if its reason is NotReadyForScheduling.
    """

    pod: Pod
    """As the watch last showed it: what there is to change depends on it."""
    conditions: Mapping[str, PodCondition | None]
    nominated_node: str | None = None
    on_first_try: Callable[[], None] = _nothing
    on_give_up: Callable[[], None] = _nothing

    type = CallType.POD_STATUS_PATCH

    @property
    def conditions_touched(self) -> Set[str]:
        """The types of conditions that it writes."""
        return self.conditions.keys()

    def take_over(self, older: "APICall") -> None:
        """Adds what the earlier patch would have done and this one says nothing about."""
        assert isinstance(older, PodStatusPatch)
        if self.nominated_node is None:
            self.nominated_node = older.nominated_node
        if older.conditions and not older.conditions_touched & self.conditions_touched:
            self.on_first_try, self.on_give_up = older.on_first_try, older.on_give_up
        self.conditions = {**older.conditions, **self.conditions, **_not_cleared(older.conditions, self.conditions)}

    def sync(self, pod: Pod) -> None:
        """Takes `pod` as the Pod's newest state, as the watch shows it."""
        self.pod = pod

    def is_no_op(self, believed: Believed) -> bool:
        """Whether the Pod's status is so already."""
        if self.nominated_node is not None and self.nominated_node != self.pod.nominated_node_name:
            return False
        return not any(_changes(condition, believed(self.pod, name)) for name, condition in self.conditions.items())

    def settle(self, believed: Believed) -> None:
        """Leaves out what the Pod's status has already; for just before it is sent."""
        self.conditions = {
            name: condition
            for name, condition in self.conditions.items()
            if _changes(condition, believed(self.pod, name))
        }

    async def execute(self, client: Client) -> None:
        """Sends it, a request for each condition.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        on_first_try, self.on_first_try = self.on_first_try, _nothing
        on_first_try()
        nominated_node = self.nominated_node
        for name, condition in self.conditions.items():
            if condition is None:
                await client.remove_pod_condition(self.pod, name)
            else:
                await client.patch_pod_status(self.pod, condition, nominated_node)
                nominated_node = None
        if nominated_node is not None:
            await client.patch_pod_status(self.pod, None, nominated_node)


APICall = PodBinding | PodStatusPatch


def _not_cleared(
    older: Mapping[str, PodCondition | None], newer: Mapping[str, PodCondition | None]
) -> dict[str, PodCondition]:
    """What was to be written and is not of the kind that is taken away."""
    return {
        name: condition
        for name, condition in older.items()
        if condition is not None and condition.reason != NOT_READY_FOR_SCHEDULING and newer.get(name, condition) is None
    }


def _changes(condition: PodCondition | None, known: Known | None) -> bool:
    if condition is None:
        return known is not None and known[1] == NOT_READY_FOR_SCHEDULING
    return known != (condition.status, condition.reason, condition.message)
