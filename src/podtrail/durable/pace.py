"""When a checkpoint is worth its bytes."""

from typing import Final

_LEAST_LOG: Final = 16 << 20
"""Bytes that are logged before a checkpoint is worth it."""
_LOG_TO_CHECKPOINT: Final = 4
"""How many times as much is logged as a checkpoint takes: together at most 1.25 of what arrives is written."""

_MOST_KEPT: Final = 8
"""How many times as much as a checkpoint the log may take, for the day on which one is damaged."""


class CheckpointPace:
    """Says when the next checkpoint is due, by what it will take rather than by what the last one took."""

    def __init__(self, least: int | None = None) -> None:
        """Take `least` bytes of log to be worth a checkpoint, however small; None: 16 MiB."""
        self._least = _LEAST_LOG if least is None else least
        self._size = 0
        """What the last checkpoint took, bytes."""
        self._inside = 0
        self._came = 0

    def due(self, logged: int, inside: int, came: int) -> bool:
        """Say whether enough has been logged.

        Args:
            logged: bytes since the last checkpoint.
            inside: spans that are undecided or owed.
            came: spans that have ever come.
        """
        if logged < self._least:
            return False
        a_span = logged / max(1, came - self._came)
        return logged >= _LOG_TO_CHECKPOINT * (self._size + a_span * (inside - self._inside))

    @property
    def most_kept(self) -> int:
        """The bytes of log from which on what is older than a checkpoint goes, whatever is undecided."""
        return _MOST_KEPT * max(self._least, self._size)

    def has_room_by(self, removed: int, size: int) -> bool:
        """Say whether a checkpoint of `size` bytes may find room where the last one and `removed` bytes of log go."""
        return self._size + removed >= size

    def begun(self, inside: int, came: int) -> None:
        """Take note of what a checkpoint is taken of."""
        self._inside, self._came = inside, came

    def ended(self, size: int) -> None:
        """Take note of how many bytes it took."""
        self._size = size
