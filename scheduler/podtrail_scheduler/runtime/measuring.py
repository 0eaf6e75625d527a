"""What the scheduler tells metrics of, in the terms of kube-scheduler's; durations are nanoseconds."""

from typing import Protocol

from podtrail_scheduler.framework.queued_pod import QueuedPod


class FrameworkMetrics(Protocol):
    """What a framework reports of extension points and plugins."""

    def records_plugins(self) -> bool:
        """Whether the plugins of the scheduling cycle that begins now are measured one by one."""
        ...

    def extension_point(self, point: str, status: str, profile: str, duration: int) -> None:
        """All plugins of `point` have run for one Pod, which took `duration` in all."""
        ...

    def plugin(self, plugin: str, point: str, status: str, duration: int) -> None:
        """A plugin has run at `point`; only told in attempts whose plugins are measured."""
        ...

    def evaluated(self, plugin: str, point: str, profile: str) -> None:
        """A plugin was asked in PreFilter, Filter, PreScore or Score."""
        ...

    def permit_wait(self, status: str, duration: int) -> None:
        """A Pod has waited for permission."""
        ...


class AttemptMetrics(FrameworkMetrics, Protocol):
    """What the scheduler reports of attempts, besides what its frameworks do."""

    def attempt(self, result: str, profile: str, duration: int) -> None:
        """An attempt is over; `result` is Success, Unschedulable or Error."""
        ...

    def algorithm(self, duration: int) -> None:
        """A node was found for a Pod, or none."""
        ...

    def scheduled(self, entry: QueuedPod, now: int) -> None:
        """A Pod was bound."""
        ...

    def binding(self, change: int) -> None:
        """A binding cycle began (1) or ended (-1)."""
        ...
