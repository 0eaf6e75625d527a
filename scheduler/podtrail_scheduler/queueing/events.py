"""What happens in the cluster, as far as it may make a refused Pod schedulable, and the hints that tell."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from podtrail_scheduler.objects import Node, Pod


class Hint(Enum):
    """A plugin's opinion on whether an event is worth another attempt."""

    SKIP = "QueueSkip"
    QUEUE = "Queue"


class ClusterEvent(Enum):
    """Kinds of events."""

    ASSIGNED_POD_ADD = "AssignedPodAdd"
    ASSIGNED_POD_DELETE = "AssignedPodDelete"
    NODE_ADD = "NodeAdd"
    NODE_UPDATE = "NodeUpdate"
    POD_UPDATE = "UnscheduledPodUpdate"
    TIMEOUT = "UnschedulableTimeout"


class Happening(NamedTuple):
    """One event and the objects before and after it (None: there was or is none)."""

    event: ClusterEvent
    old: Pod | Node | None = None
    new: Pod | Node | None = None


HintFunction = Callable[[Pod, Happening], Hint]


def always(pod: Pod, happening: Happening) -> Hint:  # noqa: ARG001
    """The hint of a plugin that need not look closer."""
    return Hint.QUEUE


class Registration(NamedTuple):
    """An event that a plugin wants to hear of, and how it looks at it closer."""

    event: ClusterEvent
    hint: HintFunction
