"""Times as text and back, by formats in the manner of C's strftime, as the Collector knows them."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from podtrail.otlp.remembering import remembering

_SECOND = 1_000_000_000
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COMPOSED = {
    "D": "%m/%d/%y",
    "x": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "r": "%I:%M:%S %p",
    "R": "%H:%M",
    "c": "%a %b %d %H:%M:%S %Y",
    "h": "%b",
}
_OFFSET = r"[+-]\d\d:?\d\d|Z"


def _one_of(names: tuple[str, ...]) -> str:
    return "|".join(names)


_SHORT_MONTHS, _SHORT_DAYS = tuple(name[:3] for name in _MONTHS), tuple(name[:3] for name in _DAYS)
_READ: Mapping[str, tuple[str, str]] = {
    "Y": ("year", r"\d{4}"),
    "y": ("short_year", r"\d\d"),
    "m": ("month", r"\d\d"),
    "o": ("month", r" ?\d\d?"),
    "q": ("month", r"\d\d?"),
    "b": ("month_name", _one_of(_SHORT_MONTHS)),
    "B": ("month_name", _one_of(_MONTHS)),
    "d": ("day", r"\d\d"),
    "e": ("day", r" ?\d\d?"),
    "g": ("day", r"\d\d?"),
    "a": ("", _one_of(_SHORT_DAYS)),
    "A": ("", _one_of(_DAYS)),
    "H": ("hour", r"\d\d"),
    "I": ("half_day_hour", r"\d\d"),
    "l": ("half_day_hour", r"\d\d?"),
    "p": ("half", "AM|PM"),
    "P": ("half", "am|pm"),
    "M": ("minute", r"\d\d"),
    "S": ("second", r"\d\d(?:[.,]\d+)?"),
    "L": ("fraction", r"\d{3}"),
    "f": ("fraction", r"\d{6}"),
    "s": ("fraction", r"\d{9}"),
    "z": ("offset", _OFFSET),
    "Z": ("zone", "[A-Z]{3,5}"),
    "i": ("offset", r"[+-]\d\d"),
    "j": ("offset", r"[+-]\d\d:\d\d"),
    "k": ("offset", r"[+-]\d\d:\d\d:\d\d"),
    "w": ("offset", r"[+-]\d\d\d\d\d\d"),
}
_WRITE: Mapping[str, Callable[[datetime, int], str]] = {
    "Y": lambda at, _: f"{at.year:04}",
    "y": lambda at, _: f"{at.year % 100:02}",
    "m": lambda at, _: f"{at.month:02}",
    "o": lambda at, _: f"{at.month:2}",
    "q": lambda at, _: str(at.month),
    "b": lambda at, _: _SHORT_MONTHS[at.month - 1],
    "B": lambda at, _: _MONTHS[at.month - 1],
    "d": lambda at, _: f"{at.day:02}",
    "e": lambda at, _: f"{at.day:2}",
    "g": lambda at, _: str(at.day),
    "a": lambda at, _: _SHORT_DAYS[at.weekday()],
    "A": lambda at, _: _DAYS[at.weekday()],
    "H": lambda at, _: f"{at.hour:02}",
    "I": lambda at, _: f"{(at.hour - 1) % 12 + 1:02}",
    "l": lambda at, _: str((at.hour - 1) % 12 + 1),
    "p": lambda at, _: "AM" if at.hour < 12 else "PM",
    "P": lambda at, _: "am" if at.hour < 12 else "pm",
    "M": lambda at, _: f"{at.minute:02}",
    "S": lambda at, _: f"{at.second:02}",
    "L": lambda _, nanoseconds: f"{nanoseconds // 1_000_000:03}",
    "f": lambda _, nanoseconds: f"{nanoseconds // 1000:06}",
    "s": lambda _, nanoseconds: f"{nanoseconds:09}",
    "z": lambda _, __: "+0000",
    "Z": lambda _, __: "UTC",
    "i": lambda _, __: "+00",
    "j": lambda _, __: "+00:00",
    "k": lambda _, __: "+00:00:00",
    "w": lambda _, __: "+000000",
}
_DIRECTIVE = re.compile("%(.?)", re.DOTALL)
_PLAIN = {"%": "%", "n": "\n", "t": "\t"}


def civil(nanoseconds: int) -> datetime:
    """Return a time in UTC, its fraction of a second left out.

    Raises:
        ValueError: it is beyond the year 9999.
    """
    try:
        return _EPOCH + timedelta(seconds=nanoseconds // _SECOND)
    except OverflowError:
        raise ValueError("the time is out of range") from None


def format_time(nanoseconds: int, form: str) -> str:
    """Return a time as text, in UTC.

    Raises:
        ValueError: the format is none.
    """
    at, fraction = civil(nanoseconds), nanoseconds % _SECOND

    def written(directive: re.Match[str]) -> str:
        letter = directive[1]
        return _PLAIN[letter] if letter in _PLAIN else _WRITE[letter](at, fraction)

    return _DIRECTIVE.sub(written, _expanded(form))


def check_format(form: str) -> None:
    """Refuse a format that is none.

    Raises:
        ValueError: it is none.
    """
    _pattern(form)


def parse_time(text: str, form: str, location: str | None = None) -> int:
    """Return the Unix nanoseconds that a text says; where it says no zone, in that of `location` (UTC).

    Raises:
        ValueError: the text does not follow the format, the format is none, or the location is unknown.
    """
    pattern, names = _pattern(form)
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:40]!r} does not follow {form!r}")
    parts = {name: value for name, value in zip(names, match.groups(), strict=True) if name}
    seconds, _, decimals = parts.get("second", "0").replace(",", ".").partition(".")
    fraction = parts.get("fraction", decimals).ljust(9, "0")[:9]
    at = datetime(
        _year(parts),
        _month(parts),
        int(parts.get("day", "1")),
        _hour(parts),
        int(parts.get("minute", "0")),
        int(seconds),
        tzinfo=_zone(parts, location),
    )
    return (at - _EPOCH) // timedelta(seconds=1) * _SECOND + int(fraction)


@remembering(64)
def _expanded(form: str) -> str:
    def expanded(directive: re.Match[str]) -> str:
        letter = directive[1]
        if letter in _COMPOSED:
            return _COMPOSED[letter]
        if letter not in _READ and letter not in _PLAIN:
            raise ValueError(f"unknown directive {directive.group()!r} in the format {form!r}")
        return directive.group()

    return _DIRECTIVE.sub(expanded, form)


@remembering(64)
def _pattern(form: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    expanded = _expanded(form)
    pieces: list[str] = []
    names: list[str] = []
    at = 0
    for directive in _DIRECTIVE.finditer(expanded):
        pieces.append(re.escape(expanded[at : directive.start()]))
        at = directive.end()
        if directive[1] in _PLAIN:
            pieces.append(re.escape(_PLAIN[directive[1]]))
        else:
            name, piece = _READ[directive[1]]
            names.append(name)
            pieces.append(f"({piece})")
    pieces.append(re.escape(expanded[at:]))
    return re.compile("".join(pieces), re.ASCII), tuple(names)


def _year(parts: Mapping[str, str]) -> int:
    if "short_year" in parts:
        short = int(parts["short_year"])
        return short + (1900 if short >= 69 else 2000)
    return int(parts.get("year", "1970"))


def _month(parts: Mapping[str, str]) -> int:
    if "month_name" in parts:
        return _SHORT_MONTHS.index(parts["month_name"][:3]) + 1
    return int(parts.get("month", "1"))


def _hour(parts: Mapping[str, str]) -> int:
    if "half_day_hour" in parts:
        return int(parts["half_day_hour"]) % 12 + 12 * (parts.get("half", "AM").upper() == "PM")
    return int(parts.get("hour", "0"))


def _zone(parts: Mapping[str, str], location: str | None) -> tzinfo:
    offset = parts.get("offset")
    if offset is not None:
        digits = offset[1:].replace(":", "").ljust(6, "0")
        length = timedelta(hours=int(digits[:2]), minutes=int(digits[2:4]), seconds=int(digits[4:]))
        return timezone(-length if offset[0] == "-" else length)
    if location is not None:
        return zone_of(location)
    return UTC


def zone_of(location: str) -> tzinfo:
    """Return a time zone by its IANA name.

    Raises:
        ValueError: it is unknown.
    """
    try:
        return ZoneInfo(location)
    except (OSError, LookupError, ValueError):
        raise ValueError(f"unknown time zone {location!r}") from None
