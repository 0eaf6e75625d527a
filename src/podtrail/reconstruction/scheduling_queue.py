"""Where Pods were in the scheduler's queue, by its log: how long they waited before an attempt."""

from typing import Final

from podtrail.lru import Lru
from podtrail.reconstruction.attempt_draft import Draft

_MOST: Final = 65_536
_ADDED: Final = ""


class ObservedQueue:
    """Remembers, bounded, each Pod's latest move."""

    def __init__(self) -> None:
        self._moves: Lru[str, tuple[int, str]] = Lru(_MOST)

    def move(self, pod: str, time: int, queue: str = _ADDED) -> None:
        """Note that a Pod came, or was moved to a queue: `Active`, `Backoff` or `Unschedulable`."""
        self._moves.put(pod, (time, queue))

    def leave(self, pod: str) -> None:
        """Note that a Pod is bound or gone."""
        self._moves.pop(pod, None)

    def wait(self, draft: Draft, until: int) -> None:
        """Set how long an attempt's Pod waited until its attempt began, where that is known."""
        time, queue = self._moves.get(draft.pod, (until + 1, _ADDED))
        if time > until:
            return
        if queue == "Active":
            draft.wait = until - time
        elif queue == _ADDED:
            draft.wait = until - time
            draft.inferred["queue wait"] = "since the Pod came to the scheduler: no line tells when it became active"
        elif queue == "Backoff":
            draft.wait = 0
            draft.inferred["queue wait"] = "taken from the back-off queue, without a wait in the active one"
