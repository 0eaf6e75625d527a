"""Removes prefixes and envelopes around klog's lines: container runtimes, kubectl, journald, shippers, clouds."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from podtrail.reconstruction import klog
from podtrail.reconstruction.calendar import SECOND, rfc3339
from podtrail.reconstruction.json_documents import JsonDocuments
from podtrail.reconstruction.json_envelope import enclosed, is_framed, time_of
from podtrail.reconstruction.log_writer import writer_ahead, writer_beside

_CRI = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) std(?:out|err) ([FP])\S* ")
_HEADER = re.compile(rb"(?<![0-9A-Za-z])[IWEFD]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [^:\] ]{1,128}:\d+\]")
_KLOG_JSON = re.compile(rb'\{"ts": ?\d')
_BEGINS: Final = frozenset((b"I", b"W", b"E", b"F", b"D"))
_ANSI = re.compile(rb"(?:\x1b|#033)\[[0-9;?]*[A-Za-z]")
_STAMP = re.compile(
    rb"(?<!\d)(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\d*(?: ?(Z|UTC|GMT|[+-]\d\d:?\d\d)(?!\w))?"
)
_UNIX = re.compile(rb"(?<![\d.])(\d{10})\.(\d{6})(?:\d{3})?(?!\d)")
_FIELD = re.compile(rb" *[A-Z_][A-Z0-9_]{0,63}=")
"""A field of a journal in the formats `export` and `verbose`."""
_VERBOSE = re.compile(rb"[A-Z][a-z]{2} \d{4}-\d\d-\d\d [^\[]{8,40} \[s=[0-9a-f]+;")
"""The beginning of an entry in the format `verbose`."""
_RECORD: Final = b"\x1e"
"""What is ahead of each entry in the format `json-seq`."""
_DOCUMENT: Final = b"---"
_IN_YAML = re.compile(rb" |- |[A-Za-z_@][\w.@/-]*:(?: |$)|$")
_MOST_OF_YAML: Final = 4096
"""Lines of one document."""
_CURSOR: Final = b"__CURSOR="
_REALTIME: Final = b"__REALTIME_TIMESTAMP="
_IN_JSON = re.compile(rb'((?:[^"\\]|\\.)*)"')
_IN_CSV = re.compile(rb'((?:[^"]|"")*)"')
_QUOTED_JSON = re.compile(rb'"(?=\{ *(?:\\"|""))')
"""What is ahead of JSON in quotes: of logfmt, of CSV."""
_MONTH = re.compile(rb"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b")
_GENERAL = re.compile(rb"(\d+(?:\.\d+)?|[A-Z][a-z]{2}\b| +|[:-])")
_TAB: Final = b"#011"
"""As rsyslog writes a tab."""
_ESCAPED_TABS = re.compile(rb"(?:#011)+")
_BOM: Final = b"\xef\xbb\xbf"
_LONGEST: Final = 1 << 20
_LONGEST_PREFIX: Final = 1024
_DOCKER_PART: Final = 16_384
"""Bytes from which on Docker splits a line."""
_DEEPEST: Final = 4
_DECODER: Final = json.JSONDecoder()


class Unwrapped(NamedTuple):
    """A line as the scheduler wrote it."""

    line: bytes
    written: int | None = None
    """The time in the envelope, Unix nanoseconds; None if there is none with a zone."""
    near: int | None = None
    """The time in the envelope if its zone is not known: exact to a day."""
    writer: str = ""
    """Which of several schedulers wrote it, as the envelope says."""


class Envelope:
    """Unwraps the lines of one log; joins lines that a runtime has split. Bounded."""

    def __init__(self) -> None:
        self._cri_part = b""
        self._part = b""
        """The beginning of a line in Docker's JSON."""
        self._part_written: int | None = None
        self._docker_ends: bool | None = None
        """Whether whole lines in Docker's JSON end with a newline; None as long as that is not known."""
        self._documents = JsonDocuments(_LONGEST)
        self._yaml: list[bytes] | None = None
        """The lines of the open document of YAML, which gcloud prints; None outside one."""
        self._prefix: re.Pattern[bytes] | None = None
        self._realtime: int | None = None
        """The time of the entry in a journal's export; 0 before its first one, None outside an export."""
        self.damaged = 0
        """Lines of JSON documents without an end that were dropped since this was last reset."""
        self.released = 0
        """Lines that were held as parts and then turned out to be whole, likewise."""

    @property
    def holds(self) -> bool:
        """Whether a line waits for the next one, which shows that it is whole."""
        return bool(self._part) and self._docker_ends is None

    @property
    def inside(self) -> bool:
        """Whether a document is open."""
        return self._documents.open or self._yaml is not None

    def whole_of_runtime(self, raw: bytes) -> tuple[bytes, int | None] | None:
        """Return the line in CRI's frame and its time; None if that is no whole line, or has more around it."""
        found = _CRI.match(raw)
        if found is None or found[2] == b"P" or self._cri_part or b"\x1b" in raw:
            return None
        line = raw[found.end() :]
        if line[:1] not in _BEGINS and not is_klog_json(line):
            return None
        return line, rfc3339(found[1].decode())

    def end(self) -> list[Unwrapped]:
        """Return the lines that wait for more."""
        self.damaged += self._documents.abandon()
        if self._yaml is not None:
            lines, self._yaml = self._in_yaml(), None
            self.released += len(lines)
            return lines
        if not self.holds:
            return []
        part, self._part = self._part, b""
        self.released += 1
        return self._inner(part, self._part_written, 0)

    def unwrap(self, raw: bytes, *, within: bool) -> list[Unwrapped]:
        """Return the lines that one line completes; none if more of it is to come.

        Args:
            raw: The line as it was read.
            within: Whether the line before has a value that goes on in this one.
        """
        line = raw.removeprefix(_BOM).removeprefix(_RECORD)
        if b"\x1b" in line or b"#033[" in line:
            line = _ANSI.sub(b"", line)
        if self._yaml is not None:
            if line.rstrip() == _DOCUMENT:
                lines, self._yaml = self._in_yaml(), []
                return lines
            if _IN_YAML.match(line) and len(self._yaml) < _MOST_OF_YAML:
                self._yaml.append(line)
                return []
            self.damaged += 1 + len(self._yaml)
            self._yaml = None
        elif line.rstrip() == _DOCUMENT and not within:
            self._yaml = []
            return []
        if self._documents.open:
            if not self._documents.takes(line):
                self.damaged += self._documents.abandon()
            else:
                return [one for found in self._documents.take(line) for one in self._json(found, None, 0)]
        if within and _goes_on(line):
            return [Unwrapped(line)]
        if within and self._prefix is not None and (found := self._prefix.match(line)):
            rest = self._cut(line[: found.end()], line[found.end() :], None)
            if _goes_on(rest.line):
                return [rest]
        if self._documents.opens(line):
            return [one for found in self._documents.take(line) for one in self._json(found, None, 0)]
        return self._inner(line, None, 0)

    def _in_yaml(self) -> list[Unwrapped]:
        from podtrail.reconstruction.kubectl_output import read_yaml

        lines, self._yaml = self._yaml or [], None
        if not lines:
            return []
        told = read_yaml(b"\n".join(lines).decode("utf-8", "replace"))
        found = [one for text, time in enclosed(told) for one in self._inner(text, time, 1)]
        return found or [Unwrapped(lines[0])]

    def _inner(self, line: bytes, written: int | None, depth: int) -> list[Unwrapped]:
        if depth:
            line = _ANSI.sub(b"", line).removesuffix(b"\r")
        if klog.read_line(line) is not None or depth > _DEEPEST or (depth and _goes_on(line)):
            return [Unwrapped(line, written)]
        stripped = line.strip()
        if stripped[:1] == b"{":  # JSON may hold CRI's frame: of a shipper that does not parse it
            return self._json(stripped, written, depth)
        if b" std" in line[:_LONGEST_PREFIX] and (found := _CRI.search(line, 0, _LONGEST_PREFIX)):
            time = rfc3339(found[1].decode())
            whole = _join(self._cri_part, line[found.end() :])
            self._cri_part = whole if found[2] == b"P" else b""
            return [] if self._cri_part else self._inner(whole, time, depth + 1)
        if stripped[:1] == b"[" and stripped[-1:] == b"]":
            return self._json(stripped, written, depth)
        return self._behind_prefix(line, written, depth)

    def _behind_prefix(self, line: bytes, written: int | None, depth: int) -> list[Unwrapped]:
        if line.startswith((_REALTIME, _CURSOR)):
            digits = line.removeprefix(_REALTIME)
            self._realtime = int(digits) * 1000 if digits.isdigit() and len(digits) < 17 else 0
            return []
        if _VERBOSE.match(line):
            self._realtime = _stamp_of(line)[0] or 0
            return []
        if (at := line.find(b'{"', 0, _LONGEST_PREFIX)) > 0 and _is_json(line[at:]):
            if inside := self._json(line[at:], written or _stamp_of(line[:at])[0], depth + 1):
                self._prefix = _general(line[:at])
            return _by(writer_ahead(line[:at]), inside)
        if (quoted := _QUOTED_JSON.search(line, 0, _LONGEST_PREFIX)) and _is_json(
            text := _unquoted(line[: quoted.end()], line[quoted.end() :])
        ):
            return self._json(text, written or _stamp_of(line[: quoted.start()])[0], depth + 1)
        found = _HEADER.search(line, 0, _LONGEST_PREFIX)
        at = found.start() if found else 0
        if at:
            prefix = line[:at]
            self._prefix = _general(prefix)
            return [self._cut(prefix, line[at:], written)]
        if self._prefix is not None and (stripped := self._prefix.match(line)):
            return [self._cut(line[: stripped.end()], line[stripped.end() :], written)]
        if self._realtime is not None and (not line.strip() or _FIELD.match(line)):
            return []
        return [Unwrapped(line, written)]

    def _cut(self, prefix: bytes, rest: bytes, written: int | None) -> Unwrapped:
        time, near = _stamp_of(prefix)
        if written is None and time is None and prefix.strip() == b"MESSAGE=":
            time = self._realtime or None
        rest = _unquoted(prefix, rest)
        if rest.startswith(_TAB):
            rest = _ESCAPED_TABS.sub(lambda tabs: b"\t" * (len(tabs[0]) // len(_TAB)), rest, count=1)
        return Unwrapped(rest, written or time, near, writer_ahead(prefix))

    def _json(self, line: bytes, written: int | None, depth: int) -> list[Unwrapped]:
        """Return the lines that JSON encloses; the line itself if it encloses none."""
        if _KLOG_JSON.match(line) and not are_joined(line):
            return [Unwrapped(line, written)]
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            parts = _parts(line) if are_joined(line) else []
            return [one for part in parts for one in self._json(part, written, depth)] or self._behind_prefix(
                line, written, depth
            )
        writer = writer_beside(told) if isinstance(told, dict) else ""
        if isinstance(told, dict) and isinstance(log := told.get("log"), str) and not is_framed(log):
            return _by(writer, self._docker(log, told, written, depth))
        texts = [*enclosed(told)]
        lines = [one for text, time in texts for one in self._inner(text, time or written, depth + 1)]
        return _by(writer, lines) if texts else [Unwrapped(line, written)]

    def _docker(self, log: str, told: Mapping[str, Any], written: int | None, depth: int) -> list[Unwrapped]:
        stamp = time_of(told) or written
        line = log.removesuffix("\n").encode("utf-8", "replace")
        lines: list[Unwrapped] = []
        if log.endswith("\n"):
            if self.holds and _HEADER.match(line):
                lines += self.end()
            self._docker_ends = True
            joined = self._join(line, part=False)
        elif self._docker_ends is None and self._part and len(self._part) < _DOCKER_PART:
            # Two records without a newline, and the first one is not a part: a shipper has removed the newlines.
            lines += self.end()
            self._docker_ends = False
            joined = line
        elif self._docker_ends is None:
            self._part_written = stamp
            joined = self._join(line, part=True)
        else:
            joined = self._join(line, part=self._docker_ends or len(line) >= _DOCKER_PART)
        return lines if joined is None else lines + self._inner(joined, stamp, depth + 1)

    def _join(self, line: bytes, *, part: bool) -> bytes | None:
        whole = _join(self._part, line)
        self._part = whole if part else b""
        return None if part else whole


def _by(writer: str, lines: list[Unwrapped]) -> list[Unwrapped]:
    return [one if one.writer else one._replace(writer=writer) for one in lines] if writer else lines


def _join(beginning: bytes, line: bytes) -> bytes:
    return beginning + line if len(beginning) < _LONGEST else beginning


def is_klog_json(line: bytes) -> bool:
    """Return True if a line is JSON of klog without an envelope."""
    return _KLOG_JSON.match(line) is not None


def are_joined(line: bytes) -> bool:
    """Return True if a line has several JSON objects one behind the other: in a string the quote would be escaped."""
    return b'}{"' in line


def _parts(line: bytes) -> list[bytes]:
    """Return JSON objects that stand one behind the other; none if something else is there, too."""
    text, at, parts = line.decode("utf-8", "replace"), 0, []
    while at < len(text):
        try:
            _, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        parts.append(text[at:end].encode("utf-8", "replace"))
        at = end
    return parts


def _is_json(text: bytes) -> bool:
    if not text.rstrip().endswith(b"}"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _goes_on(line: bytes) -> bool:
    """Return True if a line has the form of one that belongs to the line before: a value of several lines."""
    return line[:1] == b"\t" or line[:2] == b" >"


def _stamp_of(prefix: bytes) -> tuple[int | None, int | None]:
    """Return the time in a prefix: with its zone, and without one."""
    if found := _STAMP.search(prefix):
        date, clock, digits, zone = found.groups()
        if zone in (b"UTC", b"GMT"):
            zone = b"Z"
        elif zone and len(zone) == 5:
            zone = zone[:3] + b":" + zone[3:]
        fraction = b"." + digits if digits else b""
        moment = rfc3339((date + b"T" + clock + fraction + (zone or b"Z")).decode())
        return (moment, None) if zone else (None, moment)
    if found := _UNIX.search(prefix):
        return int(found[1]) * SECOND + int(found[2]) * 1000, None
    return None, None


def _unquoted(prefix: bytes, line: bytes) -> bytes:
    """Return a line that stands in quotes (JSON, logfmt, CSV) without them."""
    if not prefix.endswith(b'"'):
        return line
    if prefix[-2:-1] in (b"", b",", b";", b"\t", b"\n") and b'\\"' not in line:
        found = _IN_CSV.match(line)
        return found[1].replace(b'""', b'"') if found else line
    found = _IN_JSON.match(line)
    if found is None or b"\\" not in found[1]:
        # Nothing is escaped: the last quote belongs to the prefix if klog's own do not pair.
        return line[: line.rindex(b'"')] if line.count(b'"') % 2 else line
    return klog.unquote_whole(found[1].decode("utf-8", "replace")).encode("utf-8", "replace").removesuffix(b"\n")


@lru_cache(maxsize=256)
def _general(prefix: bytes) -> re.Pattern[bytes]:
    """Return a pattern of prefixes that differ in numbers and months, and in `:` for grep's `-`."""
    parts = []
    *whole, last = re.split(rb"(?= *$)", prefix, maxsplit=1)
    for part in _GENERAL.split(b"".join(whole)):
        if part[:1].isdigit():
            parts.append(rb"\d+(?:\.\d+)?")
        elif _MONTH.fullmatch(part):
            parts.append(rb"[A-Z][a-z]{2}")
        elif part in (b":", b"-"):
            parts.append(rb"[:-]")
        elif part and not part.strip(b" "):
            parts.append(rb" +")
        else:
            parts.append(re.escape(part))
    return re.compile(b"".join(parts) + re.escape(last))
