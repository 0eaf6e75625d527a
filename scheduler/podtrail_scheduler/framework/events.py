"""What happens in the cluster, as far as it may make a refused Pod schedulable, and the hints that tell.

The kinds are kube-scheduler's (`framework.ClusterEvent`): a resource and what was done to it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, IntFlag
from functools import cache
from typing import NamedTuple, Protocol

from podtrail_scheduler.objects import ApiObject, Pod


class Hint(Enum):
    """A plugin's answer to whether an event is worth another attempt (`fwk.QueueingHint`)."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"


class EventResource(Enum):
    """What something happened to. `POD` stands for the three kinds of Pods together."""

    POD = "Pod"
    ASSIGNED_POD = "AssignedPod"
    UNSCHEDULED_POD = "UnscheduledPod"
    """A Pod without a node other than the one that waits."""
    TARGET_POD = "TargetPod"
    """The Pod that waits, itself."""
    NODE = "Node"
    PERSISTENT_VOLUME = "PersistentVolume"
    PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_NODE = "storage.k8s.io/CSINode"
    CSI_DRIVER = "storage.k8s.io/CSIDriver"
    VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
    CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
    STORAGE_CLASS = "storage.k8s.io/StorageClass"
    RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
    RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
    DEVICE_CLASS = "resource.k8s.io/DeviceClass"
    WILDCARD = "*"


class ActionType(IntFlag):
    """What was done to it; several at once are several bits."""

    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    """The taints or `spec.unschedulable`."""
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_SCALE_UP = 1024
    UPDATE_POD_TOLERATION = 2048
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 4096
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 8192
    UPDATE = 16380
    """Any of the updates above."""
    ALL = 16383


class ClusterEvent(NamedTuple):
    """Kinds of events: to a plugin's registration, or of one happening."""

    resource: EventResource
    action: ActionType
    custom_label: str = ""

    @property
    def label(self) -> str:
        """The text in logs and in `scheduler_queue_incoming_pods_total{event}`."""
        return self.custom_label or _label(self.resource, self.action)

    @property
    def is_wildcard(self) -> bool:
        """Whether it concerns every Pod, whichever plugins refused it."""
        return self.resource is EventResource.WILDCARD and self.action == ActionType.ALL

    def covers(self, happened: "ClusterEvent") -> bool:
        """Whether who registered for this hears of `happened`, which must be as specific or more."""
        return self.is_wildcard or (
            happened.action in self.action
            and (
                self.resource is happened.resource
                or self.resource is EventResource.WILDCARD
                or (self.resource is EventResource.POD and happened.resource in _PODS)
            )
        )


@cache
def _label(resource: EventResource, action: ActionType) -> str:
    name = "Update" if action == ActionType.UPDATE else "All" if action == ActionType.ALL else (action.name or "")
    return f"{resource.value}{''.join(part[:1].upper() + part[1:].lower() for part in name.split('_'))}"


_PODS = frozenset((EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD, EventResource.TARGET_POD))

POD_ADD = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD)
POD_UPDATE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.UPDATE)
POD_DELETE = ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(EventResource.ASSIGNED_POD, ActionType.DELETE)
NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
NODE_UPDATE = ClusterEvent(EventResource.NODE, ActionType.UPDATE)
TARGET_POD_UPDATE = ClusterEvent(EventResource.TARGET_POD, ActionType.UPDATE)
TIMEOUT = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ForceActivate")
CONFIGURATION_CHANGE = ClusterEvent(EventResource.WILDCARD, ActionType.ALL, "ConfigurationChange")


class Happening(NamedTuple):
    """One event and the objects before and after it (None: there was or is none)."""

    event: ClusterEvent
    old: ApiObject | None = None
    new: ApiObject | None = None


HintFunction = Callable[[Pod, Happening], Hint]
Hints = Mapping[ClusterEvent, Sequence[tuple[str, HintFunction]]]
"""What the plugins of a profile registered: for each kind of event their names and hints."""


def always(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    """The hint of a plugin that need not look closer."""
    return Hint.QUEUE


class Registration(NamedTuple):
    """Events that a plugin wants to hear of (its actions may be several), and how it looks at one closer."""

    event: ClusterEvent
    hint: HintFunction = always


class Hinting(Protocol):
    """A plugin that registers for events."""

    @property
    def name(self) -> str:
        """The plugin's name."""
        ...

    def events_to_register(self) -> Sequence[Registration]:
        """The events to hear of, each with its hint."""
        ...


_EVERYTHING = tuple(
    Registration(ClusterEvent(resource, ActionType.ALL))
    for resource in EventResource
    if resource not in (EventResource.POD, EventResource.WILDCARD)
)


def hints_of(hinting: Iterable[Hinting], others: Iterable[str] = ()) -> Hints:
    """The hints of plugins; `others` have no say of their own: every event may help against their refusals."""
    hints: dict[ClusterEvent, list[tuple[str, HintFunction]]] = {}
    for plugin in hinting:
        for registration in plugin.events_to_register():
            hints.setdefault(registration.event, []).append((plugin.name, registration.hint))
    for name in others:
        for registration in _EVERYTHING:
            hints.setdefault(registration.event, []).append((name, registration.hint))
    return hints
