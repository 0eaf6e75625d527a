"""When a log line was written: klog's header has neither a year nor a zone. Lengths of time, as Go prints them."""

import re
from datetime import UTC, datetime

SECOND = 1_000_000_000
_MICROSECOND = 1_000
DAY = 86_400 * SECOND
_MOST = 4096
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": SECOND, "m": 60 * SECOND, "h": 3_600 * SECOND}
_TERM = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
_LENGTH = re.compile(rf"(?:{_TERM.pattern})+")


class Calendar:
    """Reads moments, in UTC, which containers run in. The year is the one that comes nearest to what is known."""

    def __init__(self, near: int) -> None:
        """`near` is a moment about which the log was written, Unix nanoseconds."""
        self.near = near
        self._seconds: dict[bytes, int] = {}

    def klog(self, stamp: bytes, micros: bytes) -> int | None:
        """Return the moment of `MMDD HH:MM:SS` and microseconds; None for one that no calendar has."""
        second = self._seconds.get(stamp)
        if second is None:
            second = self._second(stamp)
            if second is None:
                return None
        return second + int(micros) * _MICROSECOND

    def learn(self, moment: int) -> None:
        """Take a moment that was written with its year."""
        if abs(moment - self.near) > DAY:
            self._seconds.clear()
        self.near = moment

    def _second(self, stamp: bytes) -> int | None:
        year = datetime.fromtimestamp(self.near // SECOND, UTC).year
        found = [
            moment
            for moment in (_moment(stamp, year + step) for step in (-1, 0, 1))
            if moment is not None and moment >= 0
        ]
        if not found:
            return None
        nearest = min(found, key=lambda moment: abs(moment - self.near))
        if len(self._seconds) >= _MOST:
            self._seconds.clear()
        self._seconds[stamp] = nearest
        self.near = nearest
        return nearest


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
