"""Lines of klog as text: header, message, `key=value` pairs; unstructured, structured and contextual alike."""

import re
from typing import NamedTuple

_LINE = re.compile(
    rb"""[IWEFD](\d{4} \d\d:\d\d:\d\d)\.(\d{6}) +(\d+) [^:\] ]{1,128}:\d+\] (?:"([^"\\]*(?:\\.[^"\\]*)*)")?"""
)
# A key may have a space in it ("unschedulable plugins"); a value without quotes is a list or ends at a space.
_PAIR = re.compile(r'((?:unschedulable )?[^ =]{1,64})=(?:"((?:[^"\\]|\\.)*)"|(\[[^\]]*\]|[^ ]*))')
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
LONGEST_VALUE = 4096
"""Characters of a value that are kept."""


class Line(NamedTuple):
    """A line of klog: its header read, its pairs not yet."""

    stamp: bytes
    """`MMDD HH:MM:SS`."""
    micros: bytes
    process: bytes
    """The process id as klog prints it."""
    message: bytes
    """Still escaped where it is quoted; else all that stands behind the header."""
    pairs: int
    """Where the pairs begin; 0 where the message is not quoted, and has none."""


def read_line(line: bytes) -> Line | None:
    """Return what a line begins with; None when that is not klog's header."""
    found = _LINE.match(line)
    if found is None:
        return None
    stamp, micros, process, message = found.groups()
    end = found.end()
    if message is None:
        return Line(stamp, micros, process, line[end:], 0)
    return Line(stamp, micros, process, message, end)


def pairs_of(line: bytes, at: int) -> dict[str, str]:
    """Return the `key=value` pairs behind a message. Of several of one key the last counts, which is the innermost."""
    text = line[at:].decode("utf-8", "replace")
    if "\\" not in text and len(text) <= LONGEST_VALUE:
        return {key: quoted or bare for key, quoted, bare in _PAIR.findall(text)}
    return {key: unquote(quoted) if quoted else bare[:LONGEST_VALUE] for key, quoted, bare in _PAIR.findall(text)}


def writable(text: str) -> str:
    """Return text that UTF-8 can write: half a surrogate pair, which JSON can hold, becomes `?`."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def unquote(quoted: str) -> str:
    """Return what Go's `%q` has quoted, without its quotes, cut to `LONGEST_VALUE`."""
    return unquote_whole(quoted[: 6 * LONGEST_VALUE])[:LONGEST_VALUE]


def unquote_whole(quoted: str) -> str:
    """Return what Go's `%q` or JSON has quoted, without its quotes."""
    return _ESCAPE.sub(_unescape, quoted) if "\\" in quoted else quoted


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) == 1:
        return _PLAIN.get(code, code)
    number = int(code[1:], 16) if code[0] in "xuU" else int(code, 8)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
