"""A heap of queued Pods in which any of them can be found, changed and removed."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count

from podtrail_scheduler.framework.queued_pod import QueuedPod

_SPARE = 64
"""How many outdated tickets are kept at least before the heap is made anew."""

Key = tuple[int, ...]
Ticket = tuple[Key, int, QueuedPod]


class EntryHeap:
    """Pods by uid, the one with the smallest key first, equal ones in the order of their arrival.

    A removed or changed Pod leaves an outdated ticket behind, which is skipped when it comes up.
    """

    def __init__(self, key: Callable[[QueuedPod], Key]) -> None:
        self._key = key
        self._order = count()
        self._heap: list[Ticket] = []
        self._tickets: dict[str, Ticket] = {}

    def put(self, entry: QueuedPod) -> None:
        """Adds a Pod, or finds its place anew."""
        key = self._key(entry)
        uid = entry.pod.uid
        known = self._tickets.get(uid)
        if known is not None and known[0] == key and known[2] is entry:
            return
        ticket = (key, next(self._order), entry)
        self._tickets[uid] = ticket
        heapq.heappush(self._heap, ticket)
        if len(self._heap) > 2 * len(self._tickets) + _SPARE:
            self._heap = list(self._tickets.values())
            heapq.heapify(self._heap)

    def remove(self, uid: str) -> QueuedPod | None:
        """Takes the Pod of that uid out, None when there is none."""
        ticket = self._tickets.pop(uid, None)
        return None if ticket is None else ticket[2]

    def get(self, uid: str) -> QueuedPod | None:
        """The Pod of that uid, None when there is none."""
        ticket = self._tickets.get(uid)
        return None if ticket is None else ticket[2]

    def peek(self) -> QueuedPod | None:
        """The first Pod, None when there is none."""
        while self._heap:
            ticket = self._heap[0]
            if self._tickets.get(ticket[2].pod.uid) is ticket:
                return ticket[2]
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        """Takes the first Pod out, None when there is none."""
        entry = self.peek()
        if entry is not None:
            heapq.heappop(self._heap)
            del self._tickets[entry.pod.uid]
        return entry

    def __iter__(self) -> Iterator[QueuedPod]:
        return (ticket[2] for ticket in self._tickets.values())

    def __len__(self) -> int:
        return len(self._tickets)

    def __contains__(self, uid: str) -> bool:
        return uid in self._tickets
