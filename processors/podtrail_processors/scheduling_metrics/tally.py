"""What is known of each attempt so far: its spans may come in several requests, in any order, and more than once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class SeenAttempt:
    """An attempt of which something has been seen."""

    profile: str | None = None
    """None while its root is awaited."""
    refused: dict[str, int] = field(default_factory=dict)
    """The nodes that a plugin said no to, by plugin; a plugin is told once."""


Tell = Callable[[str, str, int], None]
"""Takes profile, plugin and number of nodes."""


class AttemptTally:
    """Puts plugins and roots together. The attempts seen longest ago are forgotten first.

    What is forgotten before its root came is told without a profile.
    """

    def __init__(self, most: int, tell: Tell) -> None:
        self._most = most
        self._tell = tell
        self._attempts: dict[bytes, SeenAttempt] = {}

    def note_refusals(self, trace_id: bytes, refused: Mapping[str, int]) -> None:
        """Take the plugins that said no in an attempt, with their numbers of nodes."""
        known = self._known(trace_id)
        for plugin, nodes in refused.items():
            if plugin not in known.refused:
                known.refused[plugin] = nodes
                if known.profile is not None:
                    self._tell(known.profile, plugin, nodes)
        self._forget_surplus()

    def note_root(self, trace_id: bytes, profile: str, read: Callable[[], Mapping[str, int]]) -> bool:
        """Take the root of an attempt; `read` what it says itself of plugins for want of better. Is it the first?"""
        known = self._known(trace_id)
        if known.profile is not None:
            return False
        known.profile = profile
        if not known.refused:
            known.refused.update(read())
        for plugin, nodes in known.refused.items():
            self._tell(profile, plugin, nodes)
        self._forget_surplus()
        return True

    def _known(self, trace_id: bytes) -> SeenAttempt:
        """Return what is known of an attempt, which is the one seen last from now on."""
        known = self._attempts.pop(trace_id, None) or SeenAttempt()
        self._attempts[trace_id] = known
        return known

    def _forget_surplus(self) -> None:
        while len(self._attempts) > self._most:
            self._forget(self._attempts.pop(next(iter(self._attempts))))

    def forget_all(self) -> None:
        """Tell what still awaits its root."""
        while self._attempts:
            self._forget(self._attempts.pop(next(iter(self._attempts))))

    def _forget(self, known: SeenAttempt) -> None:
        if known.profile is None:
            for plugin, nodes in known.refused.items():
                self._tell("", plugin, nodes)

    def take_over(self, other: "AttemptTally") -> None:
        """Take what another one remembers."""
        self._attempts, other._attempts = other._attempts, self._attempts
        self._forget_surplus()
