"""Attempts of which the log has not told the end yet, and those that have just ended and may learn more. Bounded."""

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Final

from podtrail.reconstruction.attempt_draft import Draft
from podtrail.reconstruction.scheduler_log import LineMeaning

MOST_OPEN: Final = 8_192
_MOST_ORIGINS: Final = 64
_MOST_DETAILS: Final = 262_144
"""Names of nodes that all open attempts hold together."""
_NO_BEGINNING: Final = "the first line that tells of the attempt; nothing tells its beginning"
_BY_TRACE: Final = "as the trace in the log says, to the millisecond"


class OpenAttempts:
    """By scheduler and Pod, one each. When too many are open, the oldest goes."""

    def __init__(self, ended: Callable[[Draft], None], notes: Counter[str]) -> None:
        """`ended` is called with each attempt that ends."""
        self._ended = ended
        self._notes = notes
        self._open: OrderedDict[tuple[str, str], Draft] = OrderedDict()
        self._origins: OrderedDict[str, None] = OrderedDict()
        self._last: dict[str, Draft] = {}
        self._details = 0

    def of(self, told: LineMeaning) -> Draft:
        """Return the open attempt that a line is about; a new one if there is none."""
        key = (told.origin, told.pod)
        draft = self._open.get(key)
        if draft is None:
            draft = self._open[key] = Draft(told.pod, told.origin, told.time)
            draft.sources.add("log")
            if told.origin not in self._origins:
                self._origins[told.origin] = None
                if len(self._origins) > _MOST_ORIGINS:
                    self._origins.popitem(last=False)
            if len(self._open) > MOST_OPEN:
                _, oldest = self._open.popitem(last=False)
                self._notes["open attempts let go: too many"] += 1
                self._abandon(oldest, "let go: too many attempts were open")
        return draft

    def known(self, told: LineMeaning) -> Draft | None:
        """Return the open attempt that a line is about, if there is one."""
        return self._open.get((told.origin, told.pod))

    def for_pod(self, pod: str) -> Draft | None:
        """Return an open attempt for a Pod, whoever makes it."""
        return next((draft for origin in self._origins if (draft := self._open.get((origin, pod)))), None)

    def last(self, pod: str) -> Draft | None:
        """Return the attempt for a Pod that ended last, if it has not been told yet."""
        return self._last.get(pod)

    def end(self, draft: Draft) -> None:
        """Take an attempt for ended: its end and result are set."""
        self._open.pop((draft.origin, draft.pod), None)
        self._details -= draft.details
        draft.summarize()
        if draft.begun is None:
            draft.inferred["start"] = _BY_TRACE if draft.block else _NO_BEGINNING
        self._last[draft.pod] = draft
        self._ended(draft)

    def drop(self, told: LineMeaning) -> None:
        """Forget an open attempt: it was none."""
        dropped = self._open.pop((told.origin, told.pod), None)
        if dropped is not None:
            self._details -= dropped.details

    def give_way(self, told: LineMeaning) -> None:
        """End an open attempt that another of the same Pod follows."""
        before = self._open.get((told.origin, told.pod))
        if before is not None and (before.evident or before.binding_at is not None):
            del self._open[told.origin, told.pod]
            self._abandon(before, "another attempt for the Pod follows, nothing tells this one's end")

    def cut(self, why: str, origin: str = "") -> None:
        """End all that is open, of one scheduler or of all: nothing will tell its end."""
        for key in [key for key in self._open if not origin or key[0] == origin]:
            self._abandon(self._open.pop(key), why)

    def let_go(self, draft: Draft) -> None:
        """Forget an attempt that has been told."""
        if self._last.get(draft.pod) is draft:
            del self._last[draft.pod]

    def room(self, draft: Draft) -> bool:
        """Say whether an attempt may hold one more name of a node; if so it counts."""
        if self._details >= _MOST_DETAILS:
            self._notes["scores and refusals of single nodes not held: too many"] += 1
            return False
        self._details += 1
        draft.details += 1
        return True

    def _abandon(self, draft: Draft, why: str) -> None:
        if not draft.evident:
            self._notes["traces of attempts whose end nothing tells"] += 1
            self._details -= draft.details
            return
        last = max((marks.last for marks in draft.plugins.values()), default=draft.first)
        block_end = draft.block.start + draft.block.took if draft.block else 0
        draft.end = max(draft.first, last, block_end, draft.binding_at or 0, draft.chosen_at or 0)
        draft.inferred["end"] = why
        self.end(draft)
