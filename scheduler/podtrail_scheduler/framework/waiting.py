"""Pods that Permit plugins have told to wait."""

from .status import Status, unschedulable


class WaitingPod:
    """A Pod that is allowed when every plugin it waits for has said so, and refused when one says no or time is up.

    `deadlines` has for each plugin when its patience ends, unix nanoseconds.
    """

    def __init__(self, uid: str, deadlines: dict[str, int]) -> None:
        self.uid = uid
        self.refused_by = ""
        self._deadlines = dict(deadlines)
        self._status: Status | None = None

    @property
    def decided(self) -> bool:
        """Whether there is nothing left to wait for."""
        return not self._deadlines or self._status is not None

    @property
    def status(self) -> Status | None:
        """None when allowed (or still waiting), else why not."""
        return self._status

    def deadlines(self) -> list[int]:
        """When `expire` may have something to do."""
        return list(self._deadlines.values())

    def allow(self, plugin: str) -> None:
        """`plugin` has no objection any more."""
        self._deadlines.pop(plugin, None)

    def reject(self, plugin: str, message: str) -> None:
        """`plugin` refuses the Pod."""
        if self._status is None:
            self._status, self.refused_by = unschedulable(message), plugin

    def expire(self, now: int) -> None:
        """Refuses the Pod for the first plugin whose patience has ended by `now`."""
        for plugin, deadline in self._deadlines.items():
            if deadline <= now:
                self.reject(plugin, f"rejected due to timeout after waiting at plugin {plugin}")
                return
