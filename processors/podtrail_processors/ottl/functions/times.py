"""Functions on times and lengths of time. `Now`, which asks the pipeline, is not among them."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from podtrail_processors.ottl.functions.parameters import Function, Parameter, integer, length, moment, text
from podtrail_processors.ottl.functions.time_text import check_format, civil, format_time, parse_time, zone_of
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import LARGEST, SMALLEST, Length, PointInTime

_MICROSECOND, _MILLISECOND, _SECOND = 1_000, 1_000_000, 1_000_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND
_UNITS = {
    "ns": 1,
    "us": _MICROSECOND,
    "µs": _MICROSECOND,
    "μs": _MICROSECOND,
    "ms": _MILLISECOND,
    "s": _SECOND,
    "m": _MINUTE,
    "h": _HOUR,
}
_PART = re.compile(r"([0-9]{1,19})?(?:\.([0-9]{0,30}))?(ns|us|µs|μs|ms|s|m|h)")
_ZERO_TIME = -62_135_596_800 * _SECOND
"""The year 1, from which times are truncated."""


def parse_length(written: str) -> Length:
    """Return what Go's syntax says: `1h30m`, `-1.5s`.

    Raises:
        EvaluationError: it is no duration of Go's, or too long a one.
    """
    sign = -1 if written.startswith("-") else 1
    rest = written[1:] if written[:1] in ("-", "+") else written
    nanoseconds, at = 0, 0
    while rest != "0" and (at < len(rest) or not at):
        part = _PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            raise EvaluationError(f"{written[:40]!r} is no duration such as 1h30m or 500ms")
        unit, decimals = _UNITS[part[3]], part[2] or ""
        nanoseconds += int(part[1] or 0) * unit + int(decimals or 0) * unit // 10 ** len(decimals)
        at = part.end()
    if not SMALLEST <= nanoseconds <= LARGEST:
        raise EvaluationError(f"the duration {written[:40]!r} is too long")
    return Length(sign * nanoseconds)


def _time(target: str, form: str, location: str | None = None, locale: str | None = None) -> PointInTime:
    if locale not in (None, "", "en", "en_US", "en-US"):
        raise EvaluationError(f"the locale {locale!r} is not known: names are read in English")
    try:
        return PointInTime(parse_time(target, form, location))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _format_time(time: PointInTime, form: str) -> str:
    try:
        return format_time(time.nanoseconds, form)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _check_format(constants: Mapping[str, object]) -> None:
    form, location = constants.get("format"), constants.get("location")
    if form == "":
        raise ValueError("the format must not be empty")
    if isinstance(form, str):
        check_format(form)
    if isinstance(location, str):
        zone_of(location)


def _truncate(time: PointInTime, to: Length) -> PointInTime:
    step = to.nanoseconds
    return time if step <= 0 else PointInTime(time.nanoseconds - (time.nanoseconds - _ZERO_TIME) % step)


def _whole(unit: int) -> Callable[[Length], int]:
    def count(value: Length) -> int:
        units = abs(value.nanoseconds) // unit
        return units if value.nanoseconds >= 0 else -units

    return count


def _fractional(unit: int) -> Callable[[Length], float]:
    def count(value: Length) -> float:
        whole, rest = divmod(abs(value.nanoseconds), unit)
        units = whole + rest / unit
        return units if value.nanoseconds >= 0 else -units

    return count


def _since_1970(unit: int) -> Callable[[PointInTime], int]:
    return lambda time: time.nanoseconds // unit


def _calendar(part: Callable[[datetime], int]) -> Callable[[PointInTime], int]:
    def read(value: PointInTime) -> int:
        try:
            return part(civil(value.nanoseconds))
        except ValueError as error:
            raise EvaluationError(str(error)) from None

    return read


_OF_TIME = (Parameter("time", moment),)
_OF_LENGTH = (Parameter("duration", length),)
_FORMAT = Parameter("format", text)

FUNCTIONS = (
    Function("Day", _OF_TIME, _calendar(lambda at: at.day)),
    Function("Duration", (Parameter("duration", text),), parse_length),
    Function("FormatTime", (*_OF_TIME, _FORMAT), _format_time, _check_format),
    Function("Hour", _OF_TIME, _calendar(lambda at: at.hour)),
    Function("Hours", _OF_LENGTH, _fractional(_HOUR)),
    Function("Microseconds", _OF_LENGTH, _whole(_MICROSECOND)),
    Function("Milliseconds", _OF_LENGTH, _whole(_MILLISECOND)),
    Function("Minute", _OF_TIME, _calendar(lambda at: at.minute)),
    Function("Minutes", _OF_LENGTH, _fractional(_MINUTE)),
    Function("Month", _OF_TIME, _calendar(lambda at: at.month)),
    Function("Nanosecond", _OF_TIME, lambda time: time.nanoseconds % _SECOND),
    Function("Nanoseconds", _OF_LENGTH, _whole(1)),
    Function("Second", _OF_TIME, _calendar(lambda at: at.second)),
    Function("Seconds", _OF_LENGTH, _fractional(_SECOND)),
    Function(
        "Time",
        (Parameter("time", text), _FORMAT, Parameter("location", text, True), Parameter("locale", text, True)),
        _time,
        _check_format,
    ),
    Function("TruncateTime", (*_OF_TIME, Parameter("duration", length)), _truncate),
    Function(
        "Unix",
        (Parameter("seconds", integer), Parameter("nanoseconds", integer, True)),
        lambda seconds, nanoseconds=0: PointInTime(seconds * _SECOND + nanoseconds),
    ),
    Function("UnixMicro", _OF_TIME, _since_1970(_MICROSECOND)),
    Function("UnixMilli", _OF_TIME, _since_1970(_MILLISECOND)),
    Function("UnixNano", _OF_TIME, _since_1970(1)),
    Function("UnixSeconds", _OF_TIME, _since_1970(_SECOND)),
    Function("Weekday", _OF_TIME, _calendar(lambda at: at.isoweekday() % 7)),
    Function("Year", _OF_TIME, _calendar(lambda at: at.year)),
)
"""Functions on times and lengths of time."""
