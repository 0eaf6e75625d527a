"""How often Pods were tried: a memory of those that have not got a node yet."""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Final

from podtrail.otlp import Attempt
from podtrail.recent import Reason, Recent

_LONGEST_KEY = 128
TRIED_BYTES: Final = 370
"""What a Pod takes at most, with a key of this length; as measured."""


class Tries:
    """The number of each Pod's last attempt, as far as it was seen or the scheduler told it. Bounded in entries.

    Attempts count in the order in which they are decided. What the scheduler itself counted (`scheduler.attempts`)
    holds if it is more: so numbers are right although this memory began later. A Pod is forgotten once it has a node.
    """

    def __init__(self, limit: int, forget_after: int, forgotten: Callable[[str, int, Reason], None]) -> None:
        """Remember so many Pods, each as long as the last attempt is not older than `forget_after` nanoseconds."""
        self._of: Recent[str, int] = Recent(limit, forget_after, forgotten)

    def count(self, attempt: Attempt, cluster: str, now: int) -> int:
        """Count an attempt in a cluster ("": not said), decided at `now`; return its number, 1 for a Pod's first."""
        self._of.expire(now)
        key = _key(attempt, cluster)
        if not key:
            return max(1, attempt.declared)
        number = max((self._of.get(key) or 0) + 1, attempt.declared)
        if attempt.result == "Success":
            self._of.pop(key)
        else:
            self._of.put(key, number, now)
        return number

    def deadline(self) -> int | None:
        """Return when the first Pod is forgotten; None while none is remembered."""
        return self._of.deadline()

    def expire(self, now: int) -> None:
        """Forget Pods whose last attempt is too old."""
        self._of.expire(now)

    def saved(self) -> tuple[tuple[str, int, int], ...]:
        """Return Pods, when they were last tried, and how often."""
        return self._of.saved()

    def restore(self, saved: Iterable[tuple[str, int, int]]) -> None:
        """Remember Pods that were saved."""
        self._of.restore(saved)

    def move_in(self, other: "Tries") -> None:
        """Take what another remembers."""
        self._of.move_in(other._of)


def _key(attempt: Attempt, cluster: str) -> str:
    """Return what tells a Pod from others: its uid, else its place; "" when the root says neither."""
    key = attempt.pod_uid or (f"{cluster}:{attempt.namespace}/{attempt.name}" if attempt.name else "")
    return key if len(key) <= _LONGEST_KEY else blake2b(key.encode(), digest_size=16).hexdigest()
