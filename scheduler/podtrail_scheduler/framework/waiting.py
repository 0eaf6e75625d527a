"""Pods that Permit plugins have told to wait."""

from collections.abc import Mapping

from podtrail_instrumentation.steps import go_duration

from .status import Status, unschedulable


class WaitingPod:
    """A Pod that is allowed when every plugin it waits for has said so, and refused when one says no or time is up."""

    def __init__(self, uid: str, since: int, timeouts: Mapping[str, int]) -> None:
        """`since` is unix nanoseconds, `timeouts` each plugin's patience in nanoseconds."""
        self.uid = uid
        self.refused_by = ""
        self.status: Status | None = None
        """None when allowed (or still waiting), else why not."""
        self._since = since
        self._timeouts = dict(timeouts)

    @property
    def decided(self) -> bool:
        """Whether there is nothing left to wait for."""
        return not self._timeouts or self.status is not None

    def deadlines(self) -> list[int]:
        """When `expire` may have something to do."""
        return [self._since + timeout for timeout in self._timeouts.values()]

    def allow(self, plugin: str) -> None:
        """`plugin` has no objection any more."""
        self._timeouts.pop(plugin, None)

    def reject(self, plugin: str, message: str) -> None:
        """`plugin` refuses the Pod."""
        if not self.decided:
            self.status, self.refused_by = unschedulable(message), plugin

    def expire(self, now: int) -> None:
        """Refuses the Pod for the first plugin whose patience has ended by `now`."""
        for plugin, timeout in self._timeouts.items():
            if self._since + timeout <= now:
                waited = go_duration(timeout)
                self.reject(plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}")
                return
