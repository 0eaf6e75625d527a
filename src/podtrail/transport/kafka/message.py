"""Messages on their way to Kafka, and where they came to stand."""

from typing import NamedTuple

Headers = list[tuple[str, str | bytes | None]]


class MessagePlace(NamedTuple):
    """Where a message has come to stand. The offset is -1 where nobody acknowledges (`acks: 0`)."""

    partition: int
    offset: int


class Message(NamedTuple):
    """A message to produce."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers | None = None
    partition: int = -1
    """-1: as the key says."""

    @property
    def size(self) -> int:
        """Its bytes, framing aside."""
        named = sum(len(name) + len(value or "") for name, value in self.headers or ())
        return len(self.value or b"") + len(self.key or b"") + named
