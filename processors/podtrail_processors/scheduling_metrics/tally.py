"""What is known of each attempt so far: its spans may come in several requests, in any order, and more than once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from podtrail.otlp import Attempt

OTHER: Final = "other"
"""Stands for all plugins beyond the first 16 of an attempt."""
MOST_PLUGINS: Final = 16
REFUSALS_PER_ATTEMPT: Final = 4
"""On average: where attempts have more, fewer of them are remembered."""


class SaidNo(NamedTuple):
    """What a plugin said no to in an attempt."""

    nodes: int
    to_nodes_only: bool
    """And to nothing else, such as the bind."""


class EndedAttempt(NamedTuple):
    """How an attempt ended, as its root tells."""

    profile: str
    failed: bool
    with_error: bool


@dataclass(slots=True)
class SeenAttempt:
    """An attempt of which something has been seen."""

    ended: EndedAttempt | None = None
    """None while its root is awaited."""
    refused: dict[str, SaidNo] = field(default_factory=dict)
    """By plugin; a plugin is told once."""
    seen: int = 0
    """When something of it came last."""

    def kept_from_it(self, no: SaidNo) -> bool:
        """Return whether a plugin's no is why the attempt failed; so it is where nobody knows how it ended.

        One that succeeded found another node, and one that ends with an error had found one.
        """
        if self.ended is None:
            return True
        return self.ended.failed and not (no.to_nodes_only and self.ended.with_error)


SavedTally = tuple[tuple[bytes, EndedAttempt | None, tuple[tuple[str, SaidNo], ...], int], ...]
"""Attempts in a saved state, with what is known of each and when something of it came last."""

Tell = Callable[[bytes, str, str, int, bool], None]
"""Takes trace id, profile, plugin, number of nodes, and whether that is why the attempt failed."""


class AttemptTally:
    """Puts plugins and roots together. The attempts seen longest ago are forgotten first, and all after a while.

    What is forgotten before its root came is told without a profile.
    """

    def __init__(self, most: int, forgotten_after: int, tell: Tell) -> None:
        """Remember `most` attempts, each for so many nanoseconds since something of it came."""
        self._most = most
        self._forgotten_after = forgotten_after
        self._tell = tell
        self._attempts: dict[bytes, SeenAttempt] = {}
        self._refusals = 0
        """How many are remembered, of all attempts."""

    def note_refusals(self, trace_id: bytes, refused: Mapping[str, SaidNo], now: int) -> None:
        """Take the plugins that said no in an attempt."""
        known = self._known(trace_id, now)
        for plugin in self._refuse(known, refused):
            if known.ended is not None:
                no = known.refused[plugin]
                self._tell(trace_id, known.ended.profile, plugin, no.nodes, known.kept_from_it(no))
        self._forget_surplus()

    def note_root(self, root: Attempt, profile: str, read: Callable[[], Mapping[str, SaidNo]], now: int) -> bool:
        """Take the root of an attempt; `read` what it says of plugins for want of better. Return whether it is new."""
        known = self._known(root.trace_id, now)
        if known.ended is not None:
            return False
        known.ended = EndedAttempt(profile, root.failed, root.result == "Error")
        if not known.refused:
            self._refuse(known, read())
        for plugin, no in known.refused.items():
            self._tell(root.trace_id, profile, plugin, no.nodes, known.kept_from_it(no))
        self._forget_surplus()
        return True

    def _refuse(self, known: SeenAttempt, refused: Mapping[str, SaidNo]) -> list[str]:
        """Remember plugins that said no; return those that are new."""
        new: list[str] = []
        for name, no in refused.items():
            plugin = name if name in known.refused or len(known.refused) < MOST_PLUGINS else OTHER
            if plugin not in known.refused:
                known.refused[plugin] = no
                new.append(plugin)
        self._refusals += len(new)
        return new

    def _known(self, trace_id: bytes, now: int) -> SeenAttempt:
        """Return what is known of an attempt, which is the one seen last from now on."""
        known = self._attempts.pop(trace_id, None) or SeenAttempt()
        known.seen = now
        self._attempts[trace_id] = known
        return known

    def _forget_surplus(self) -> None:
        most = REFUSALS_PER_ATTEMPT * self._most
        while len(self._attempts) > self._most or (self._refusals > most and len(self._attempts) > 1):
            self._forget_first()

    def expire(self, now: int) -> None:
        """Forget attempts of which nothing came for so long."""
        while (due := self.deadline()) is not None and due <= now:
            self._forget_first()

    def deadline(self) -> int | None:
        """Return when the next is forgotten."""
        first = next(iter(self._attempts.values()), None)
        return None if first is None else first.seen + self._forgotten_after

    def forget_all(self) -> None:
        """Tell what still awaits its root."""
        while self._attempts:
            self._forget_first()

    def _forget_first(self) -> None:
        trace_id = next(iter(self._attempts))
        known = self._attempts.pop(trace_id)
        self._refusals -= len(known.refused)
        if known.ended is None:
            for plugin, no in known.refused.items():
                self._tell(trace_id, "", plugin, no.nodes, known.kept_from_it(no))

    def saved(self) -> "SavedTally":
        """Return what is remembered of attempts."""
        return tuple(
            [
                (trace_id, known.ended, tuple(known.refused.items()), known.seen)
                for trace_id, known in self._attempts.items()
            ]
        )

    def restore(self, saved: "SavedTally") -> None:
        """Remember attempts that were saved."""
        for trace_id, ended, refused, seen in saved:
            self._attempts[trace_id] = SeenAttempt(ended, dict(refused), seen)
            self._refusals += len(refused)

    def take_over(self, other: "AttemptTally") -> None:
        """Take what another one remembers."""
        self._attempts, other._attempts = other._attempts, self._attempts
        self._refusals, other._refusals = other._refusals, self._refusals
        self._forget_surplus()
