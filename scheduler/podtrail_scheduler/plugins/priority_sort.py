"""PrioritySort: the highest priority first, among equals the one that has waited longest since its last attempt."""

from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.queued_pod import QueuedPod


class PrioritySort:
    """Orders the active queue."""

    name = "PrioritySort"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        """`handle` and `args` are not used."""

    def sort_key(self, entry: QueuedPod) -> tuple[int, ...]:
        """Higher priority first, then who has waited longer; the smallest key is next."""
        return (-entry.pod.priority, entry.queued_at)
