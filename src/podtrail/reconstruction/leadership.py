"""Which schedulers lead, by their logs: what happens while none of them does, another replica does."""

from typing import Final

_MOST: Final = 64
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
        self.since = 0
        """Before this moment a replica whose log is not read may have been the leader."""

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
        if leads and not self._leading:
            self.since = time
        self._leading[origin] = leads
        if len(self._leading) > _MOST:
            del self._leading[next(iter(self._leading))]

    def begin_anew(self) -> None:
        """Note that a scheduler has started: what was said before was said by one that is gone."""
        self._leading.clear()
