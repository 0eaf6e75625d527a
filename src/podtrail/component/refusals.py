"""Whether podtrail refuses everything that is sent, since when and why: for health checks."""

from typing import NamedTuple

_FORGOTTEN_AFTER = 60 * 1_000_000_000
"""Nanoseconds after which a refusal says nothing any more: no client has tried again."""


class Refusing(NamedTuple):
    """A time in which every request was refused."""

    since: int
    """When the first of them was refused, Unix nanoseconds."""
    reason: str
    """Why the latest was."""


class RefusalWatch:
    """Notes refused and accepted requests of all receivers."""

    def __init__(self) -> None:
        self._since: int | None = None
        self._latest = 0
        self._reason = ""

    def refused(self, reason: str, now: int) -> None:
        """Note that a request was refused at `now`, Unix nanoseconds."""
        if self.refusing(now) is None:
            self._since = now
        self._latest, self._reason = now, reason

    def accepted(self) -> None:
        """Note that a request was accepted."""
        self._since = None

    def refusing(self, now: int) -> Refusing | None:
        """Return since when and why all requests are refused; None if they are not, or none was sent for a minute."""
        if self._since is None or now - self._latest > _FORGOTTEN_AFTER:
            return None
        return Refusing(self._since, self._reason)
