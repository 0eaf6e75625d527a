"""Values of spans in sentences: short, however long they are. Whoever shows a sentence escapes it."""

import json

from podtrail.otlp import SpanFields, Value

LONGEST = 200
"""Characters of one value."""
_MOST_VALUES = 4
_BYTES_A_CHARACTER = 4


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text of at most so many characters, that shows if it was longer."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def decoded(text: bytes) -> str:
    """Return the text of a span's field, cut."""
    return cut(text[: LONGEST * _BYTES_A_CHARACTER].decode("utf-8", "replace"))


def name_of(span: SpanFields) -> str:
    """Return a span's name, cut."""
    return decoded(span.name) or "(no name)"


def shown(value: Value) -> str:
    """Return an attribute's value, cut."""
    match value:
        case str():
            return cut(value) or '""'
        case bytes():
            return cut("0x" + value[:LONGEST].hex())
        case _:
            return cut(json.dumps(value, default=repr, ensure_ascii=False))


def some(parts: list[str], between: str = ", ") -> str:
    """Return the first few of several parts, and how many more there are."""
    more = len(parts) - _MOST_VALUES
    return between.join(parts[:_MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def milliseconds(nanoseconds: int) -> str:
    """Return a time span for people: `1234 ms`, `0.04 ms`."""
    whole = nanoseconds / 1_000_000
    return f"{whole:.0f} ms" if abs(whole) >= _MOST_VALUES or not nanoseconds else f"{whole:.2g} ms"
