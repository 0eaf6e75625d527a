"""Makes text from elsewhere safe to print: nothing in it can move a cursor, hide a line or turn text around."""

import re

_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Return the text with control, direction and surrogate characters written as `\x1b`, `\u202e`; tabs as `\t`."""
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found.group().encode("unicode_escape", "backslashreplace").decode("ascii")
