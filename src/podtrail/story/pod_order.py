"""Pods in order, kept from one look to the next: only those that have changed since are put in their places anew."""

from bisect import insort
from collections.abc import Callable, Iterable
from typing import Final

from podtrail.story.pod import PodStory, urgency

_FEW: Final = 32
"""One of so many Pods, or fewer, is put in its place sooner than all are put in order."""


class PodOrder:
    """All Pods, the urgent first, then those that wait longest."""

    def __init__(self) -> None:
        self._ordered: list[PodStory] = []
        self._moved: set[str] | None = None
        """Who has changed, come or gone since the last look; None: too many."""

    def move(self, key: str, held: int) -> None:
        """Note that a Pod has changed, come or gone, of so many."""
        if self._moved is not None:
            self._moved.add(key)
            if len(self._moved) * _FEW > held:
                self._moved = None

    def move_all(self) -> None:
        """Note that all of them have changed."""
        self._moved = None

    def of(self, each: Callable[[], Iterable[PodStory]], one: Callable[[str], PodStory | None]) -> list[PodStory]:
        """Return all of them; `each` gives them in no order, `one` that of a key, None for one that has gone."""
        moved = self._moved
        if moved is None:
            self._ordered = sorted(each(), key=urgency)
        elif moved:
            self._ordered = [pod for pod in self._ordered if pod.key not in moved]
            for pod in filter(None, map(one, moved)):
                insort(self._ordered, pod, key=urgency)
        self._moved = set()
        return list(self._ordered)
