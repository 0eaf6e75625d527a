"""What plugins of others are given, so that they can't change it: they would for the attempts of all Pods."""

from dataclasses import replace
from typing import Any

from .node_info import NodeInfo
from .queued_pod import QueuedPod


def shown(given: Any) -> Any:
    """Return an argument of a plugin's method as a plugin of others is given it."""
    if isinstance(given, NodeInfo):
        return given.view
    if isinstance(given, list | tuple) and given and isinstance(given[0], NodeInfo):
        return tuple([node.view for node in given])
    return replace(given) if isinstance(given, QueuedPod) else given
