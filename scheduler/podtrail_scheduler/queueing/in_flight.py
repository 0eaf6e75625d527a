"""Pods that are being tried or bound, and the events that came meanwhile."""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from itertools import islice

from podtrail_scheduler.framework.events import Happening
from podtrail_scheduler.framework.queued_pod import QueuedPod

POD_POPPED = "PodPopped"
"""What stands for the Pods themselves in `scheduler_inflight_events{event}`."""


class InFlight:
    """Pods under way, and each event until every Pod that was popped before it has been given back or is done."""

    def __init__(self) -> None:
        self._events: deque[Happening] = deque()
        self._forgotten = 0
        self._pods: OrderedDict[str, tuple[int, QueuedPod]] = OrderedDict()
        self.counts: defaultdict[str, int] = defaultdict(int)
        """Pods (as `PodPopped`) and events that are kept, by label."""

    def take_off(self, entry: QueuedPod) -> None:
        """`entry` was popped: events from now on concern it."""
        self._pods[entry.pod.uid] = (self._forgotten + len(self._events), entry)
        self.counts[POD_POPPED] += 1

    def note(self, happening: Happening) -> None:
        """Keeps an event if anybody is in flight."""
        if self._pods:
            self._events.append(happening)
            self.counts[happening.event.label] += 1

    def since_take_off(self, uid: str) -> Iterator[Happening]:
        """What happened since the Pod was popped."""
        began, _ = self._pods[uid]
        return islice(self._events, began - self._forgotten, None)

    def land(self, uid: str) -> None:
        """The Pod's attempt is over; nothing happens when it has landed already."""
        if self._pods.pop(uid, None) is None:
            return
        self.counts[POD_POPPED] -= 1
        oldest = next(iter(self._pods.values()))[0] if self._pods else self._forgotten + len(self._events)
        while self._forgotten < oldest:
            self.counts[self._events.popleft().event.label] -= 1
            self._forgotten += 1

    def get(self, uid: str) -> QueuedPod | None:
        """The Pod of that uid, None when it is not in flight."""
        found = self._pods.get(uid)
        return None if found is None else found[1]

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods
