"""A line of a configuration as a report may show it: without the values of keys that sound like secrets.

It goes by the text, for what can't be read is shown as well: a value that ends who knows where is left out to the end
of its line.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from podtrail.config.secret_keys import REDACTED, Stretch, credentials_in, is_secret_key

_KEY: Final = re.compile(
    r"""(?:^|(?<=[\s{,\[]))(?P<quote>["']?)(?P<key>[^\s"'{}\[\],#]+?)(?P=quote)\s*(?::(?=[\s"'{\[]|$)|(?<=\S)=)\s*"""
)
_AT_START: Final = re.compile(r"""\s*(?:-\s+)*["']?(?P<key>[^\s"'{}\[\],#]+?)["']?\s*:(?:\s|$)""")
_NAME: Final = re.compile(r"""\b(?:name|key):\s*["']?([^\s"'{}\[\],]+)""")
_REFERENCE: Final = re.compile(r"""(["']?)\$\{[^{}$]*\}\1(?=\s*(?:$|[,}\]#]))""")
_QUOTED: Final = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*\'""")
_BLOCK: Final = re.compile(r"[|>][-+0-9]*\s*$")
_MOST_LINES: Final = 1_000


def shown(lines: Sequence[str], number: int, column: int) -> tuple[str, int] | None:
    """Return a line, and where in it a column is, both from 1; None where the whole line is part of a secret."""
    text = lines[number - 1]
    if _within_secret(lines, number - 1):
        return None
    told, at, place = "", 0, None
    for start, end in sorted({*_values(text), *credentials_in(text)}):
        if start < at:
            at = max(at, end)
        elif start < end:
            if place is None and column - 1 < end:
                place = len(told) + min(column - 1, start) - at
            told += text[at:start] + REDACTED
            at = end
    place = len(told) + column - 1 - at if place is None else place
    return told + text[at:], place + 1


def _values(text: str) -> Iterator[Stretch]:
    """Yield where the values of secret keys stand in a line."""
    named = any(is_secret_key(found[1]) for found in _NAME.finditer(text))
    for found in _KEY.finditer(text):
        key, start = found["key"], found.end()
        if not (_is_secret(key) or (key == "value" and named)) or _REFERENCE.match(text, start):
            continue
        if not _BLOCK.match(text, start):
            yield start, _end(text, start)


def _is_secret(key: str) -> bool:
    return key.lower().rpartition(".")[2] == "headers" or is_secret_key(key)


def _end(text: str, start: int) -> int:
    """Return where a value ends that begins at `start`."""
    if quoted := _QUOTED.match(text, start):
        return quoted.end()
    opened = text[start : start + 1]
    if opened and opened in "{[":
        return _closed(text, start)
    if opened and opened in "\"'":
        return len(text)
    if text.count("{", 0, start) + text.count("[", 0, start):
        return next((at for at in range(start, len(text)) if text[at] in ",}]"), len(text))
    return len(text)


def _closed(text: str, start: int) -> int:
    depth, at = 0, start
    while at < len(text):
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += (text[at] in "{[") - (text[at] in "}]")
        at += 1
        if not depth:
            return at
    return len(text)


def _within_secret(lines: Sequence[str], at: int) -> bool:
    """Return whether a line belongs to the value of a secret key on a line before it, by how far it is indented."""
    indent = _indent(lines[at])
    flows = _AT_START.match(lines[at]) is None
    for before in reversed(lines[max(0, at - _MOST_LINES) : at]):
        if not before.strip() or before.lstrip().startswith("#"):
            continue
        outer = _indent(before)
        # What is no `key:` goes on with the value before it, however it is indented.
        if outer < indent or flows:
            found = _AT_START.match(before)
            if found and _is_secret(found["key"]):
                return True
            indent, flows = min(indent, outer), flows and found is None
        if not indent and not flows:
            return False
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
