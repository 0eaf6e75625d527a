"""What the queue counts for metrics."""

from collections import Counter, defaultdict

from podtrail_scheduler.framework.queued_pod import QueuedPod

from .interest import Strategy

_MEANT_FOR = {
    Strategy.SKIP: "unschedulable",
    Strategy.AFTER_BACKOFF: "backoff",
    Strategy.IMMEDIATELY: "active",
}


class QueueCounts:
    """Counters of one queue; metrics read them when they are scraped."""

    def __init__(self) -> None:
        self.incoming: defaultdict[tuple[str, ...], int] = defaultdict(int)
        """Pods that entered a queue, by queue and event (`scheduler_queue_incoming_pods_total`)."""
        self.incoming_entities: defaultdict[tuple[str, ...], int] = defaultdict(int)
        """The same with their type, without those who came where hints had meant them to go (`..._entities_total`)."""
        self.rejections: Counter[tuple[str, ...]] = Counter()
        """Pods that a plugin refused, by plugin and profile (`scheduler_unschedulable_pods`)."""

    def came(self, queue: str, event: str, strategy: Strategy | None = None) -> None:
        """A Pod entered a queue; `strategy` is what the hints had meant for it."""
        self.incoming[queue, event] += 1
        if strategy is None or _MEANT_FOR[strategy] != queue:
            self.incoming_entities[queue, event, "pod"] += 1

    def refused(self, entry: QueuedPod) -> None:
        """Counts the plugins that refused a Pod which came back."""
        for plugin in entry.rejectors:
            self.rejections[plugin, entry.pod.scheduler_name] += 1

    def refused_by(self, plugin: str, entry: QueuedPod) -> None:
        """One more plugin refuses a Pod that waits."""
        self.rejections[plugin, entry.pod.scheduler_name] += 1

    def left(self, entry: QueuedPod) -> None:
        """Counts out the plugins of a Pod that is tried again or gone."""
        for plugin in entry.rejectors:
            self.rejections[plugin, entry.pod.scheduler_name] -= 1
