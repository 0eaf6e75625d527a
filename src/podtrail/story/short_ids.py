"""Traces by how their id begins: pages show eight digits of it."""

from typing import Final

from podtrail.story.library import Library

TRACE_DIGITS: Final = 32
LEAST_DIGITS: Final = 8
_HEX: Final = frozenset("0123456789abcdef")


def is_beginning(text: str) -> bool:
    """Return whether a text may be how a trace id begins, or a whole one."""
    return LEAST_DIGITS <= len(text) <= TRACE_DIGITS and _HEX.issuperset(text.lower())


def traces_beginning(library: Library, digits: str) -> tuple[bytes, ...]:
    """Return the traces whose id begins so, kept or not, as far as spans or a decision of them are held."""
    digits = digits.lower()
    whole = bytes.fromhex(digits[: len(digits) // 2 * 2])
    known = {*library.store.beginning(whole), *library.decisions.beginning(whole)}
    return tuple(sorted(one for one in known if one.hex().startswith(digits)))
