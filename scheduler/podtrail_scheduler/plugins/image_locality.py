# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""ImageLocality: prefers nodes that have the Pod's images already.

An image counts with its size times the share of nodes that have it, so that one node with all of it does not draw
everything. All nodes of a cluster share their `ImageStates`.
"""

from collections.abc import Hashable, Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Pod

MIN_BYTES = 23 * 1024**2
"""Images of less in all score 0 (upstream's `minThreshold`)."""
MAX_BYTES_PER_IMAGE = 1000 * 1024**2
"""Times the number of containers: more scores no higher (upstream's `maxContainerThreshold`)."""


class ImageLocality:
    """Scores by the summed size of the images that are there."""

    name = "ImageLocality"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        self._nodes = handle.nodes

    def score_key(self, pod: Pod) -> Hashable:
        """What each of the Pod's images is worth now, and how many they are."""
        return self._worth(pod), len(pod.images)

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0 up to 23 MiB, 100 from 1000 MiB an image."""
        return self.score_nodes(state, pod, (node,))[0]

    def score_nodes(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
        """As `score`."""
        worth = self._worth(pod)
        if not worth:
            return [0] * len(nodes)
        most = MAX_BYTES_PER_IMAGE * len(pod.images)
        scores = []
        for node in nodes:
            images = node.node.images
            present = min(max(sum(size for name, size in worth if name in images), MIN_BYTES), most)
            scores.append(MAX_SCORE * (present - MIN_BYTES) // (most - MIN_BYTES))
        return scores

    def _worth(self, pod: Pod) -> tuple[tuple[str, int], ...]:
        """The images that some node has, with the bytes that they count as on each of these."""
        nodes = self._nodes()
        worth = []
        for image in pod.images:
            name = normalized(image)
            known = nodes[0].images.get(name)
            if known is not None:
                worth.append((name, int(float(known.size) * (known.nodes / len(nodes)))))
        return tuple(worth)


def normalized(image: str) -> str:
    """The name with the tag that is meant when there is none."""
    return f"{image}:latest" if image.rfind(":") <= image.rfind("/") else image
