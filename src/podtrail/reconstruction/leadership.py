"""Which schedulers lead, by their logs: what happens while none of them does, another replica does."""

from collections import deque
from typing import Final

from podtrail.reconstruction.pods import FOREVER

_MOST: Final = 64
_WHOLE: Final = 1_500_000_000
"""Nanoseconds by which the time of an Event may be off."""
_OTHERS: Final = ("controller", "manager", "operator", "etcd", "k3s", "rke2", "vip", "csi", "provisioner", "apiserver")
"""Parts of the names of leases that other components of a combined log hold, as in k3s and MicroK8s."""


class Leadership:
    """By scheduler. One that elects no leader says nothing, and counts as leading."""

    def __init__(self) -> None:
        self._leading: dict[str, bool] = {}
        self._named = False
        """Whether a lease was heard of that is a scheduler's by its name: then no other name is one's."""
        self.elected = False
        """Whether one of them was ever heard to take part in an election: then there are others."""
        self._last = 0
        """When a scheduler of the logs became leader last."""
        self._seen: deque[tuple[int, str]] = deque(maxlen=_MOST)
        """Events of processes that became leader: when, and the identity, `HOST_UUID`."""
        self.since = 0
        """Before this moment a replica whose log is not read may have been the leader."""

    def see(self, lock: str, time: int, identity: str) -> None:
        """Take an Event: a process became leader; `time` in Unix nanoseconds, in whole seconds."""
        if self.is_scheduler_lease(lock):
            self._seen.append((time, identity))

    @property
    def own_host(self) -> str:
        """Where the scheduler of the log runs, by the Event of its becoming leader; "" if none shows it."""
        return self._own_identity().rpartition("_")[0]

    def _own_identity(self) -> str:
        own = min(self._seen, key=lambda seen: abs(seen[0] - self._last), default=(FOREVER, ""))
        return own[1] if self._last and abs(own[0] - self._last) <= _WHOLE else ""

    def taken_over_at(self) -> int:
        """Return when, by an Event, another process became leader after the one of the log; `FOREVER` if none did."""
        if not self._last:
            return FOREVER
        identity = self._own_identity()
        others = (time for time, other in self._seen if other != identity and time > self._last + _WHOLE)
        return min(others, default=FOREVER)

    @property
    def elsewhere(self) -> bool:
        """Whether the logs say that none of their schedulers is the leader."""
        return self.elected and not any(self._leading.values())

    def is_scheduler_lease(self, lock: str) -> bool:
        """Return whether `namespace/name` is a scheduler's lease; "" is one: some lines do not name it.

        The name is set by `leaderElection.resourceName` and need not contain "scheduler".
        """
        name = lock.rpartition("/")[2].lower()
        if "sched" in name:
            self._named = True
            return True
        return not name or not (self._named or any(part in name for part in _OTHERS))

    def change(self, origin: str, time: int, *, leads: bool) -> None:
        """Take the word of a scheduler that it leads, or that it does not; `time` in Unix nanoseconds."""
        self.elected = True
        self._leading.pop(origin, None)
        if leads:
            self._last = time
            if not self._leading:
                self.since = time
        self._leading[origin] = leads
        if len(self._leading) > _MOST:
            del self._leading[next(iter(self._leading))]

    def begin_anew(self) -> None:
        """Note that a scheduler has started: what was said before was said by one that is gone."""
        self._leading.clear()
