"""Which Pod was at a place (`namespace/name`) at a time: Pods of a StatefulSet come back under the same name."""

from collections.abc import Iterable
from typing import Final

from podtrail.lru import Lru, forget_oldest

CLOCK_SLACK: Final = 1_000_000_000
"""How far the API server's clock may be ahead of or behind the scheduler's, nanoseconds."""

_MOST_PODS: Final = 8
"""Pods remembered of one place: the latest."""


class Places:
    """Uids by place and by when each was first seen there; bounded, the place not told of longest goes first."""

    def __init__(self, most: int) -> None:
        self._pods: Lru[str, dict[str, int]] = Lru(most)

    def __len__(self) -> int:
        return len(self._pods)

    def shrink(self) -> None:
        """Forget the older half of the places."""
        forget_oldest(self._pods, 2)

    def note(self, place: str, uid: str, since: int) -> bool:
        """Remember that a Pod was at a place at a time (Unix nanoseconds); return whether that was news."""
        pods = self._pods.get(place)
        if pods is None:
            self._pods.put(place, {uid: since})
            return True
        self._pods.move_to_end(place)
        before = pods.get(uid)
        if before is not None and before <= since:
            return False
        pods[uid] = since
        if len(pods) > _MOST_PODS:
            del pods[min(pods, key=pods.__getitem__)]
        return True

    def uid_at(self, place: str, at: int, *, created: bool = False) -> str:
        """Return the uid of the Pod that was at a place at a time, or that was created there then; "" when unknown."""
        pods = self._pods.get(place)
        if not pods:
            return ""
        if created:
            later = [(since, uid) for uid, since in pods.items() if since >= at - CLOCK_SLACK]
            return min(later)[1] if later else ""
        earlier = [(since, uid) for uid, since in pods.items() if since <= at + CLOCK_SLACK]
        return max(earlier)[1] if earlier else ""

    def only(self, place: str) -> str:
        """Return the uid of the Pod of a place where no other one is known; "" where there are several, or none."""
        pods = self._pods.get(place)
        return next(iter(pods)) if pods and len(pods) == 1 else ""

    def forget(self, place: str, uid: str) -> None:
        """Forget that a Pod was at a place."""
        pods = self._pods.get(place)
        if pods is not None:
            pods.pop(uid, None)
            if not pods:
                del self._pods[place]

    def saved(self) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
        """Return uids by place, each with its time; the place not told of longest first."""
        return tuple([(place, tuple(pods.items())) for place, pods in self._pods.items()])

    def restore(self, saved: Iterable[tuple[str, Iterable[tuple[str, int]]]]) -> None:
        """Remember what was saved; meant for an empty one."""
        for place, pods in saved:
            self._pods.put(place, dict(pods))

    def take_over(self, other: "Places") -> None:
        """Remember what another does, as far as there is room."""
        for place, pods in other._pods.items():
            for uid, since in pods.items():
                self.note(place, uid, since)
