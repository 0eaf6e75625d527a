"""When a log line was written: klog's header has neither a year nor a zone. Lengths of time, as Go prints them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

SECOND = 1_000_000_000
FAR: Final = 1 << 63
_MICROSECOND = 1_000
DAY = 86_400 * SECOND
_MOST = 4096
_LEAP_YEARS: Final = 8
"""From one leap year to the next it may take so many years."""
_MINUTE: Final = 60 * SECOND
_EARLY: Final = -2 * _MINUTE
_LATE: Final = 7 * _MINUTE
"""Between these a line may seem to have been written before or after its own time."""
_PROMPT: Final = 10 * SECOND
_MOST_DOUBT: Final = 2
"""Lines that must agree before a known offset changes."""
_HOURS: Final = (*range(-12, 15), -9.5, -3.5, -2.5, 3.5, 4.5, 5.5, 5.75, 6.5, 8.75, 9.5, 10.5, 12.75, 13.75)
OFFSETS: Final = tuple(sorted(int(hours * 60) * _MINUTE for hours in _HOURS))
"""All offsets from UTC that zones have, in nanoseconds."""
_FORWARD: Final = frozenset((SECOND * 1_800, SECOND * 3_600, SECOND * 7_200))
"""By how much summer time moves clocks."""
_OFFSET = re.compile(r"(?:UTC|GMT)?([+\-\u2212])(\d{1,2}):?([0-5]\d)?")
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": SECOND, "m": 60 * SECOND, "h": 3_600 * SECOND}
_TERM = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
_LENGTH = re.compile(rf"(?:{_TERM.pattern})+")


class OffsetStep(NamedTuple):
    """An offset from UTC, and since when it holds."""

    since: int
    """Unix nanoseconds; 0 for the first one."""
    offset: int
    """Nanoseconds by which local time is ahead of UTC."""


class Calendar:
    """Converts klog's local times to moments. Chooses the year nearest to the known moments, or the latest before one.

    The offset from UTC comes from the zone that a user names, or from moments that are known from other sources.
    Without either, times are taken as UTC. Of the two moments of a local time that comes twice, when summer time ends,
    it chooses the one nearest to the line before.
    """

    def __init__(self, near: int, zone: tzinfo | None = None, year: int | None = None, *, over: bool = False) -> None:
        """Start with what is known of the log.

        Args:
            near: A moment about which the log was written, Unix nanoseconds.
            zone: The zone of its times.
            year: The year of its first line.
            over: Whether its first line was written before `near`, however long before.
        """
        self._year = year
        self._over = over
        self._steps: Sequence[OffsetStep] = ()
        self._last = 0
        """The moment of the last line."""
        self._last_local = 0
        self.near = near
        self.zone = zone
        self.known = zone is not None
        """Whether the offset was given or derived."""
        self.offset = 0
        """Nanoseconds by which local time is ahead of UTC."""
        self._changed = 0
        self._seconds: dict[bytes, int] = {}

    def klog(self, stamp: bytes, micros: bytes, written: int | None = None) -> int | None:
        """Return the moment of `MMDD HH:MM:SS` and microseconds; None for one that no calendar has.

        Args:
            stamp: Month, day and time of day as klog writes them.
            micros: Six digits.
            written: When the line was written by another clock that knows its zone, Unix nanoseconds.
        """
        local = self.local(stamp, micros)
        if local is None:
            return None
        if written is not None:
            self.compare(local, written)
        moment = self.utc(local)
        if self._steps:
            self.offset = local - moment
        self._last, self._last_local = moment, local
        return moment

    def set_steps(self, steps: Sequence[OffsetStep]) -> None:
        """Take the offsets of the log's times, in the order of time."""
        self._steps = steps if len(steps) > 1 else ()
        self.offset, self.known = steps[-1].offset, True

    def local(self, stamp: bytes, micros: bytes) -> int | None:
        """Return the same moment as if the time were UTC."""
        second = self._seconds.get(stamp)
        if second is None:
            second = self._second(stamp)
        return None if second is None else second + int(micros) * _MICROSECOND

    def utc(self, local: int) -> int:
        """Return the moment of a local time that is given as if it were UTC."""
        if self.zone is None and not self._steps:
            return local - self.offset
        return min(self._moments(local), key=lambda moment: abs(moment - self._last) if self._last else 0)

    def _moments(self, local: int) -> list[int]:
        """Return the moments that a local time may mean, the earliest first: mostly one."""
        if self.zone is None:
            ends = [step.since for step in self._steps[1:]] + [FAR]
            moments = [local - step.offset for step in self._steps]
            fitting = zip(self._steps, ends, moments, strict=True)
            # Without one, clocks were set forward over this time.
            return [moment for step, end, moment in fitting if step.since <= moment < end] or moments[-1:]
        wall = datetime.fromtimestamp(local // SECOND, UTC).replace(tzinfo=self.zone)
        offsets = [each.utcoffset() or timedelta() for each in (wall, wall.replace(fold=1))]
        return sorted({local - int(offset.total_seconds()) * SECOND for offset in offsets})

    def compare(self, local: int, written: int) -> None:
        """Derive the offset from a local time and the moment at which it was written, unless the zone is given."""
        if self.zone is not None:
            return
        if _EARLY <= written - local + self.offset <= _LATE:
            self.known, self._changed = True, 0
            return
        offset = nearest_offset(local, written)
        if offset is None:
            return
        if self.known:  # summer time begins or ends, unless the envelope's time is that of a late delivery
            self._changed += abs(written - local + offset) < _PROMPT
            if self._changed < _MOST_DOUBT and not self._is_moved(local, written, offset):
                return
        self.offset, self.known, self._changed, self._steps = offset, True, 0, ()

    def _is_moved(self, local: int, written: int, offset: int) -> bool:
        """Return whether a line can't be a late one: it would be from the future, or clocks were set back."""
        if abs(written - local + offset) >= _PROMPT or abs(offset - self.offset) not in _FORWARD:
            return False
        return offset > self.offset or local < self._last_local

    def learn(self, moment: int) -> None:
        """Take a moment that was written with its year."""
        if abs(moment - self.near) > DAY:
            self._seconds.clear()
        self.near, self._over = moment, False

    def _second(self, stamp: bytes) -> int | None:
        if self._year is not None:
            first, self._year = _moment(stamp, self._year), None
            self.near = self.near if first is None else first
        year = datetime.fromtimestamp(self.near // SECOND, UTC).year
        reach = _LEAP_YEARS if stamp.startswith(b"0229") else 1
        moments = [_moment(stamp, year + step) for step in range(-reach, reach + 1)]
        found = [moment for moment in moments if moment is not None and moment >= 0]
        if not found:
            return None
        before = [moment for moment in found if moment <= self.near + DAY] if self._over else []
        nearest = max(before) if before else min(found, key=lambda moment: abs(moment - self.near))
        self._over = False
        if len(self._seconds) >= _MOST:
            self._seconds.clear()
        self._seconds[stamp] = nearest
        self.near = nearest
        return nearest


def nearest_offset(local: int, written: int) -> int | None:
    """Return the offset of a zone in which a line with this local time was written at this moment; None if none fits.

    A line is written at once, or a few minutes late.
    """
    late = {offset: written - local + offset for offset in OFFSETS}
    fitting = [offset for offset, by in late.items() if _EARLY <= by <= _LATE]
    return min(fitting, key=lambda offset: abs(late[offset]), default=None)


def zone_of(text: str) -> tzinfo:
    """Return a zone by its IANA name, or by its offset (`+02:00`).

    Raises:
        ValueError: it is neither.
    """
    if found := _OFFSET.fullmatch(text):
        sign = -1 if found[1] in "-\u2212" else 1
        minutes = int(found[2]) * 60 + int(found[3] or 0)
        if minutes > 14 * 60:
            raise ValueError(f"{text!r} is not an offset from UTC: the largest one is +14:00")
        return timezone(timedelta(minutes=sign * minutes))
    if text.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{text!r} is not a time zone: write a name (Europe/Berlin) or an offset (+02:00)") from None


def offset_text(offset: int) -> str:
    """Return an offset as `UTC+02:00`."""
    minutes = abs(offset) // (60 * SECOND)
    return f"UTC{'-' if offset < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"


def _moment(stamp: bytes, year: int) -> int | None:
    month, day, hour, minute, second = (int(stamp[at : at + 2]) for at in (0, 2, 5, 8, 11))
    try:
        return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()) * SECOND
    except ValueError:
        return None


def rfc3339(text: str) -> int | None:
    """Return the moment of a time as Kubernetes writes it, with up to nine decimals; None when it is none."""
    whole, _, rest = text.partition(".")
    if rest:
        digits = rest.rstrip("Zz")
        for sign in "+-":
            digits, _, _ = digits.partition(sign)
        zone = rest[len(digits) :]
        if not (digits.isascii() and digits.isdecimal() and len(digits) <= 9):
            return None
    else:
        digits, zone = "", ""
    try:
        moment = datetime.fromisoformat(whole + zone)
        if moment.tzinfo is None or not 1970 < moment.year < 2260:
            return None  # no nanoseconds of 64 bits tell it
        return int(moment.timestamp()) * SECOND + int(digits.ljust(9, "0"))
    except (ValueError, OverflowError, OSError):
        return None


def length(text: str) -> int:
    """Return the nanoseconds of a length of time as Go prints it, at most a day; 0 for another text."""
    if _LENGTH.fullmatch(text) is None:
        return 0
    try:
        return min(int(sum(float(number) * _UNITS[unit] for number, unit in _TERM.findall(text))), DAY)
    except (ValueError, OverflowError):
        return 0
