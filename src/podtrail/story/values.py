"""Attribute values of the kind that a story needs: a whole number or text, else nothing."""

from podtrail.otlp import Value


def number(value: Value) -> int | None:
    """Return an attribute's value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(value: Value) -> str:
    """Return an attribute's value if it is text, else ""."""
    return value if isinstance(value, str) else ""
