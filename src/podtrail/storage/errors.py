"""What a store raises."""


class StorageError(Exception):
    """The disk is full, broken or closed: nothing of what was asked was done, and it is worth trying again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnreadableEntry(StorageError):
    """What stood at a position is damaged or gone: it will never be read."""
