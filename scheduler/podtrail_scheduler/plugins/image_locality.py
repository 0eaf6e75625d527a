# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""ImageLocality: prefers nodes that have the Pod's images already."""

from collections.abc import Sequence

from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import MAX_SCORE
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Status
from podtrail_scheduler.objects import Pod

MIN_BYTES = 23 * 1024**2
MAX_BYTES_PER_IMAGE = 1000 * 1024**2


class ImageLocality:
    """Scores by the summed size of the images that are there."""

    name = "ImageLocality"

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Skips when no node has any of them."""
        known = any(image in node.node.images for image in pod.images for node in nodes)
        return None if known else SKIP

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0 up to 23 MiB, 100 from 1000 MiB an image."""
        present = sum(node.node.images.get(image, 0) for image in pod.images)
        most = MAX_BYTES_PER_IMAGE * len(pod.images)
        return MAX_SCORE * (min(max(present, MIN_BYTES), most) - MIN_BYTES) // (most - MIN_BYTES)
