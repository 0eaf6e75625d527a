"""Which schedulers lead, by their logs: what happens while none of them does, another replica does."""

import re
from collections import OrderedDict, deque
from typing import Final

from podtrail.reconstruction.pods import FOREVER

_MOST: Final = 64
_WHOLE: Final = 1_500_000_000
"""Nanoseconds by which the time of an Event may be off."""
_OTHERS: Final = ("controller", "manager", "operator", "etcd", "k3s", "rke2", "vip", "csi", "provisioner", "apiserver")
"""Parts of the names of leases that other components of a combined log hold, as in k3s and MicroK8s."""

_KUBELETS: Final = re.compile(r"(.*/[^/_]+_[^/_]+)_[^/_]+/([^/]+)/\d+\.log(?:\.[^/]*)?")
"""The kubelet's name of a container's log, `NAMESPACE_POD_UID/CONTAINER/RESTARTS.log`."""


class Leadership:
    """By scheduler. One that elects no leader says nothing, and counts as leading."""

    def __init__(self) -> None:
        self._by_logs: OrderedDict[str, _History] = OrderedDict()
        """When each scheduler said that it leads, and that it does not."""
        self._by_metrics = _History()
        self._named = False
        """Whether a lease was heard of that is a scheduler's by its name: then no other name is one's."""
        self.elected = False
        """Whether one of them was ever heard to take part in an election: then there are others."""
        self._led_from: deque[int] = deque(maxlen=_MOST)
        """When schedulers of the logs became leader."""
        self._seen: deque[tuple[int, str]] = deque(maxlen=_MOST)
        """Events of processes that became leader: when, and the identity, `HOST_UUID`."""
        self.since = 0
        """Before this moment a replica whose log is not read may have been the leader."""

    def see(self, lock: str, time: int, identity: str) -> None:
        """Take an Event: a process became leader; `time` in Unix nanoseconds, in whole seconds."""
        if self.is_scheduler_lease(lock):
            self._seen.append((time, identity))

    @property
    def own_hosts(self) -> set[str]:
        """Where schedulers of the logs run, by the Events of their becoming leader."""
        return {identity.rpartition("_")[0] for identity in self._own_identities()} - {""}

    def _own_identities(self) -> set[str]:
        found = set()
        for led in self._led_from:
            time, identity = min(self._seen, key=lambda seen: abs(seen[0] - led), default=(FOREVER, ""))
            if abs(time - led) <= _WHOLE:
                found.add(identity)
        return found

    def taken_over(self, time: int) -> bool:
        """Return whether, by an Event, another process became leader before `time` and after those of the logs."""
        led = max((each for each in self._led_from if each <= time), default=0)
        own = self._own_identities() if led and self._seen else ()
        return bool(led) and any(led + _WHOLE < seen <= time and other not in own for seen, other in self._seen)

    def elsewhere(self, time: int, *, own: bool) -> bool:
        """Return whether none of the schedulers was the leader at `time`, by their logs or by the metrics of one.

        What was before their first word they did not say: it is another's, unless it is known to be their `own`.
        """
        if self._by_logs and all(each.away(time, before=not own) for each in self._by_logs.values()):
            return True
        return len(self._by_logs) < 2 and self._by_metrics.away(time, before=not own)

    def report(self, time: int, *, leads: bool) -> None:
        """Take from a scheduler's metrics at `time` whether it leads."""
        self._by_metrics.add(time, away=not leads)

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
        scheduler = scheduler_of(origin)
        if leads:
            self._led_from.append(time)
            if not self._by_logs.keys() - {scheduler}:
                self.since = time
        self._by_logs.setdefault(scheduler, _History()).add(time, away=not leads)
        self._by_logs.move_to_end(scheduler)
        if len(self._by_logs) > _MOST:
            self._by_logs.popitem(last=False)

    def begin_anew(self, origin: str, time: int) -> None:
        """Note that a scheduler has started: the process is gone that led before."""
        if history := self._by_logs.get(scheduler_of(origin)):
            history.add(time, away=True)


def scheduler_of(origin: str) -> str:
    """Return what is the same for all processes of one scheduler: its log's file, or the kubelet's folder of logs."""
    file = origin.rpartition("#")[0] or origin
    return _KUBELETS.sub(r"\1/\2", file)


class _History:
    """Which of two things held from when on; bounded."""

    def __init__(self) -> None:
        self._changes: deque[tuple[int, bool]] = deque(maxlen=_MOST)

    def add(self, time: int, *, away: bool) -> None:
        """Note what holds from `time` on; times that go back are taken for the latest one."""
        if not self._changes or self._changes[-1][1] is not away:
            self._changes.append((max(time, self._changes[-1][0] if self._changes else 0), away))

    def away(self, time: int, *, before: bool) -> bool:
        """Return what held at `time`; before the first change the same as from then on if `before`, else False."""
        known = next((away for since, away in reversed(self._changes) if since <= time), None)
        if known is None:
            return before and bool(self._changes) and self._changes[0][1]
        return known
