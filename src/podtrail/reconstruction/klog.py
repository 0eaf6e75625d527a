"""Lines of klog as text: header, message, `key=value` pairs; unstructured, structured and contextual alike."""

import re
from typing import NamedTuple

_HEADER = re.compile(rb"([IWEFD])(\d{4} \d\d:\d\d:\d\d)\.(\d{6}) +(\d+) ([^:\] ]{1,128}):\d+\] ")
_MESSAGE = re.compile(rb'"((?:[^"\\]|\\.)*)"')
# A key may have a space in it ("unschedulable plugins"); a value without quotes ends at a space.
_PAIR = re.compile(rb'((?:unschedulable )?[^ =]{1,64})=(?:"((?:[^"\\]|\\.)*)"|([^ ]*))')
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
LONGEST_VALUE = 4096
"""Characters of a value that are kept."""


class Header(NamedTuple):
    """What stands ahead of a message."""

    level: str
    """`I`, `W`, `E`, `F` or `D`."""
    stamp: bytes
    """`MMDD HH:MM:SS`."""
    micros: bytes
    process: str
    """The process id as klog prints it."""
    file: str
    """The source file, without its line."""
    end: int
    """Where the message begins."""


def read_header(line: bytes) -> Header | None:
    """Return the header of a line; None when it has none."""
    found = _HEADER.match(line)
    if found is None:
        return None
    level, stamp, micros, process, file = found.groups()
    return Header(level.decode(), stamp, micros, process.decode(), file.decode("utf-8", "replace"), found.end())


def message_of(line: bytes, at: int) -> tuple[bytes, int]:
    """Return a message, still escaped, and where its pairs begin; all that is left when it is not quoted."""
    found = _MESSAGE.match(line, at)
    if found is None:
        return line[at:], len(line)
    return found[1], found.end()


def pairs_of(line: bytes, at: int) -> dict[str, str]:
    """Return the `key=value` pairs behind a message. Of several of one key the last counts, which is the innermost."""
    return {
        key.decode("utf-8", "replace"): unquote(quoted) if quoted else bare[:LONGEST_VALUE].decode("utf-8", "replace")
        for key, quoted, bare in _PAIR.findall(line, at)
    }


def unquote(quoted: bytes) -> str:
    """Return what Go's `%q` has quoted, without its quotes, cut to `LONGEST_VALUE`."""
    text = quoted[: 6 * LONGEST_VALUE].decode("utf-8", "replace")
    if "\\" in text:
        text = _ESCAPE.sub(_unescape, text)
    return text[:LONGEST_VALUE]


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    if len(code) == 1:
        return _PLAIN.get(code, code)
    number = int(code[1:], 16) if code[0] in "xuU" else int(code, 8)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "\ufffd"
