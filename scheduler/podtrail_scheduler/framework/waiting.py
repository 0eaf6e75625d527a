"""Pods that Permit plugins have told to wait."""

from collections.abc import Mapping

from podtrail_instrumentation.steps import go_duration

from podtrail_scheduler.objects import Pod

from .clock import SchedulerClock
from .status import Status, error, unschedulable


class WaitingPod:
    """A Pod that is allowed when every plugin it waits for has said so, and refused when one says no or time is up.

    Plugins say so from any thread.
    """

    def __init__(self, pod: Pod, node_name: str, clock: SchedulerClock, timeouts: Mapping[str, int]) -> None:
        """Waits from now on; `timeouts` is each plugin's patience in nanoseconds."""
        self.pod = pod
        self.node_name = node_name
        self.refused_by = ""
        self.status: Status | None = None
        """None when allowed (or still waiting), else why not."""
        self._clock = clock
        self._since = clock.now()
        self._timeouts = dict(timeouts)
        self._decision = clock.signal()

    @property
    def decided(self) -> bool:
        """Whether there is nothing left to wait for."""
        return not self._timeouts or self.status is not None

    def allow(self, plugin: str) -> None:
        """`plugin` has no objection any more."""
        if not self.decided:
            self._timeouts.pop(plugin, None)
            self._tell()

    def reject(self, plugin: str, message: str) -> bool:
        """`plugin` refuses the Pod; False when that was too late."""
        return self._stop(plugin, unschedulable(message))

    def preempt(self, plugin: str, message: str) -> bool:
        """The Pod gives way to one of higher priority, which is no refusal: it is tried again after back-off."""
        return self._stop(plugin, error(message))

    async def wait(self) -> None:
        """Returns when it is decided, or when the first plugin's patience has ended."""
        while not self.decided:
            self._decision = self._clock.signal()
            left = list(self._timeouts.items())
            if self.decided:  # said in another thread before there was this signal
                return
            plugin, patience = min(left, key=lambda each: each[1])
            if not await self._decision.wait(self._since + patience - self._clock.now()):
                waited = go_duration(patience)
                self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")

    def _stop(self, plugin: str, status: Status) -> bool:
        if self.decided:
            return False
        self.refused_by, self.status = plugin, status
        self._tell()
        return True

    def _tell(self) -> None:
        if self.decided:
            self._decision.set()
