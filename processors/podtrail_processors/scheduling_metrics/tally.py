"""What is known of each attempt so far: its spans may come in several requests, in any order, and more than once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from podtrail.otlp import Attempt


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

    def kept_from_it(self, no: SaidNo) -> bool:
        """Return whether a plugin's no is why the attempt failed; so it is where nobody knows how it ended.

        One that succeeded found another node, and one that ends with an error had found one.
        """
        if self.ended is None:
            return True
        return self.ended.failed and not (no.to_nodes_only and self.ended.with_error)


Tell = Callable[[bytes, str, str, int, bool], None]
"""Takes trace id, profile, plugin, number of nodes, and whether that is why the attempt failed."""


class AttemptTally:
    """Puts plugins and roots together. The attempts seen longest ago are forgotten first.

    What is forgotten before its root came is told without a profile.
    """

    def __init__(self, most: int, tell: Tell) -> None:
        self._most = most
        self._tell = tell
        self._attempts: dict[bytes, SeenAttempt] = {}

    def note_refusals(self, trace_id: bytes, refused: Mapping[str, SaidNo]) -> None:
        """Take the plugins that said no in an attempt."""
        known = self._known(trace_id)
        for plugin, no in refused.items():
            if plugin not in known.refused:
                known.refused[plugin] = no
                if known.ended is not None:
                    self._tell(trace_id, known.ended.profile, plugin, no.nodes, known.kept_from_it(no))
        self._forget_surplus()

    def note_root(self, root: Attempt, read: Callable[[], Mapping[str, SaidNo]]) -> bool:
        """Take the root of an attempt; `read` what it says itself of plugins for want of better. Is it the first?"""
        known = self._known(root.trace_id)
        if known.ended is not None:
            return False
        known.ended = EndedAttempt(root.profile, root.failed, root.result == "Error")
        if not known.refused:
            known.refused.update(read())
        for plugin, no in known.refused.items():
            self._tell(root.trace_id, root.profile, plugin, no.nodes, known.kept_from_it(no))
        self._forget_surplus()
        return True

    def _known(self, trace_id: bytes) -> SeenAttempt:
        """Return what is known of an attempt, which is the one seen last from now on."""
        known = self._attempts.pop(trace_id, None) or SeenAttempt()
        self._attempts[trace_id] = known
        return known

    def _forget_surplus(self) -> None:
        while len(self._attempts) > self._most:
            self._forget_first()

    def forget_all(self) -> None:
        """Tell what still awaits its root."""
        while self._attempts:
            self._forget_first()

    def _forget_first(self) -> None:
        trace_id = next(iter(self._attempts))
        known = self._attempts.pop(trace_id)
        if known.ended is None:
            for plugin, no in known.refused.items():
                self._tell(trace_id, "", plugin, no.nodes, known.kept_from_it(no))

    def take_over(self, other: "AttemptTally") -> None:
        """Take what another one remembers."""
        self._attempts, other._attempts = other._attempts, self._attempts
        self._forget_surplus()
