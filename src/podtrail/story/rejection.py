"""What a story does with refusals beside reading them: weigh them, and read the numbers and texts that go with them."""

from collections.abc import Sequence

from podtrail.otlp import Rejection, Value


def number(value: Value) -> int | None:
    """Return an attribute's value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Value) -> str:
    """Return an attribute's value if it is text, else ""."""
    return value if isinstance(value, str) else ""


def size(rejections: Sequence[Rejection]) -> int:
    """Return about how many bytes these take in memory."""
    return sum(200 + len(r.reason) + len(r.plugin) + sum(60 + len(name) for name in r.names) for r in rejections)
