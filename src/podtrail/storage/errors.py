"""What a store raises."""


class StorageError(Exception):
    """The disk is full, broken or closed: nothing of what was asked was done, and it is worth trying again."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
