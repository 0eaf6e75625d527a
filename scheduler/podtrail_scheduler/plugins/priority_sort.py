"""PrioritySort: the highest priority first, among equals the one that has waited longest in the active queue."""

from podtrail_scheduler.queueing.entry import QueuedPod


class PrioritySort:
    """Orders the active queue."""

    name = "PrioritySort"

    def sort_key(self, entry: QueuedPod) -> tuple[int, ...]:
        """Smallest first."""
        return (-entry.pod.priority, entry.queued_at)
