"""On how many nodes each image is, kept up to date with the nodes."""

from typing import NamedTuple

from podtrail_scheduler.objects import Node


class ImageState(NamedTuple):
    """The size that the first node told, in bytes, and how many nodes have the image."""

    size: int
    nodes: int


class ImageStates:
    """Shared by the nodes of a cluster."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}

    def add(self, node: Node) -> None:
        """Counts in a node's images."""
        for name, size in node.images.items():
            state = self._states.get(name)
            self._states[name] = ImageState(size, 1) if state is None else ImageState(state.size, state.nodes + 1)

    def remove(self, node: Node) -> None:
        """Counts out a node's images."""
        for name in node.images:
            state = self._states[name]
            if state.nodes == 1:
                del self._states[name]
            else:
                self._states[name] = ImageState(state.size, state.nodes - 1)

    def clone(self) -> "ImageStates":
        """Return a copy of its own."""
        copy = ImageStates()
        copy._states = self._states.copy()
        return copy

    def get(self, name: str) -> ImageState | None:
        """What is known of the image of that name, None when no node has it."""
        return self._states.get(name)
