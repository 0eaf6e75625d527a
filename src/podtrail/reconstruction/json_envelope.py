"""Finds klog's lines and their times in the JSON of log shippers, cloud providers and journald."""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from podtrail.reconstruction.calendar import SECOND, rfc3339
from podtrail.reconstruction.vocabulary import MESSAGES, read_words

_HEADER = re.compile(r"(?<![0-9A-Za-z])[IWEFD]\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ [^:\] ]{1,128}:\d+\]")
_FRAME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^ ]{1,20} std(?:out|err) [FP]")
"""What CRI writes ahead of a line."""
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_TEXTS: Final = ("message", "MESSAGE", "log", "msg", "line", "textPayload", "@message", "Message", "body", "text")
_TIMES: Final = (
    *("time", "timestamp", "@timestamp", "Timestamp", "timeUnixNano", "_time", "TimeGenerated", "timeGenerated"),
    *("_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP", "date", "eventTime", "ts", "observedTimeUnixNano"),
    *("receiveTimestamp", "ingestionTime"),
)
_DIGITS = re.compile(r"\d{9,19}(?:\.\d{1,9})?")
_ZONE = re.compile(r"[+-]\d{4}$")
_DEEPEST: Final = 10
_SEVERITIES: Final = {"W": "W", "E": "E", "C": "E", "A": "E", "F": "F"}

Enclosed = tuple[bytes, int | None]


def enclosed(told: Any) -> Iterator[Enclosed]:
    """Yield the lines in a JSON value, each with the time of its envelope in Unix nanoseconds.

    Of one object only the first line is taken: shippers often keep a second copy.
    """
    return _enclosed(told, None, 0)


def _enclosed(told: Any, time: int | None, depth: int) -> Iterator[Enclosed]:
    if depth > _DEEPEST:
        return
    if isinstance(told, list):
        if len(told) in (2, 3) and isinstance(told[0], str | int) and isinstance(told[1], str):
            time = _moment(told[0]) or time  # Loki's pairs of time and line
        for one in told:
            yield from _enclosed(one, time, depth + 1)
    elif isinstance(told, str):
        if (document := _document(told)) is not None:
            yield from _in_object(document, time, depth + 1)
        elif _is_line(told):
            for line in told.rstrip("\n").split("\n"):
                yield line.encode("utf-8", "replace"), time
    elif isinstance(told, dict):
        yield from _in_object(told, time, depth)


def _in_object(told: Mapping[str, Any], time: int | None, depth: int) -> Iterator[Enclosed]:
    time = time_of(told) or time
    message = told.get("msg")
    if isinstance(message, str) and not _HEADER.search(message, 0, 1024) and _is_klog(told, message, time):
        numbered = told if isinstance(told.get("ts"), int | float) else {**told, "ts": (time or 0) / 1e6}
        yield json.dumps(numbered).encode(), time
        return
    for key in (*(key for key in _TEXTS if key in told), *(key for key in told if key not in _TEXTS)):
        value = told[key]
        if key == "MESSAGE" and isinstance(value, list) and all(isinstance(byte, int) for byte in value):
            value = bytes(byte & 255 for byte in value).decode("utf-8", "replace")
        if found := list(_enclosed(value, time, depth + 1)):
            yield from found
            return
    if time is not None and (line := _without_header(told, time)):
        yield line, time


def time_of(told: Mapping[str, Any]) -> int | None:
    """Return the time in an object's own fields, Unix nanoseconds."""
    return next((moment for key in _TIMES if (moment := _moment(told.get(key)))), None)


def _is_klog(told: Mapping[str, Any], message: str, time: int | None) -> bool:
    if isinstance(told.get("ts"), int | float):
        return True
    return time is not None and message.encode("utf-8", "replace") in MESSAGES


def _document(text: str) -> Mapping[str, Any] | None:
    """Return the object of a text that is JSON in JSON, unless it is klog's own."""
    if not (text.startswith("{") and text.rstrip().endswith("}")) or text.startswith('{"ts":'):
        return None
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _is_line(text: str) -> bool:
    start = text[:1024]
    if start[:1] == "\t" or start.startswith((" >", "Trace[")) or is_framed(start):
        return True
    return bool(_HEADER.search(start)) or (start.lstrip()[:1] == "{" and '"msg"' in text and '"ts"' in text)


def is_framed(text: str) -> bool:
    """Return True if a text begins with CRI's frame, which its shipper has left."""
    return _FRAME.match(text) is not None


def _without_header(told: Mapping[str, Any], time: int) -> bytes:
    """Return a line of klog whose header a shipper has moved to other fields, with its header; b"" if it is none."""
    text = next((told[key] for key in _TEXTS if isinstance(told.get(key), str) and told[key]), "")
    payload = told.get("jsonPayload")
    if not text and isinstance(payload, dict):
        text = next((payload[key] for key in _TEXTS if isinstance(payload.get(key), str)), "")
    place = told.get("sourceLocation")
    if not is_headerless(text) and not (text and isinstance(place, dict)):
        return b""
    moment = datetime.fromtimestamp(time // SECOND, UTC)
    severity = _SEVERITIES.get(str(told.get("severity") or told.get("level") or "I")[:1].upper(), "I")
    pid = payload.get("pid") if isinstance(payload, dict) else told.get("pid")
    process = str(pid) if str(pid).isdecimal() else "1"
    header = f"{severity}{moment:%m%d %H:%M:%S}.{time % SECOND // 1000:06} {process[:10]} shipped.go:1] "
    return (header + text.rstrip("\n")).encode("utf-8", "replace")


def is_headerless(text: str) -> bool:
    """Return True if a text is what stands behind klog's header in a line that is understood."""
    quoted = _QUOTED.match(text)
    message = (quoted[1] if quoted else text).encode("utf-8", "replace")
    return message in MESSAGES if quoted else read_words(message) is not None


def _moment(value: Any) -> int | None:
    """Return a time in Unix nanoseconds: a text with a zone, or a number of seconds, or of smaller units."""
    if isinstance(value, str):
        if not _DIGITS.fullmatch(value):
            text = value.strip().replace(" ", "T", 1)
            return rfc3339(_ZONE.sub(lambda zone: f"{zone[0][:3]}:{zone[0][3:]}", text))
        number = float(value) if "." in value else int(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    else:
        return None
    if not 10**8 < number < 9 * 10**18:
        return None
    for bound, unit in ((10**11, SECOND), (10**14, 10**6), (10**17, 10**3)):
        if number < bound:
            return int(number) * unit + int((number % 1) * unit)
    return int(number)
