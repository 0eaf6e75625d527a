"""A range of time as people write it in an address or behind an option: `14:02`, `30m`, an ISO 8601 moment."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, Self

from podtrail.config.duration import parse_duration
from podtrail.story.words import clip, moment, stamp, visible

_LONGEST: Final = 40
_CLOCK: Final = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?Z?")
_SECONDS: Final = re.compile(r"([0-9]{9,11})(?:\.([0-9]{1,9}))?")
_NANOSECONDS: Final = re.compile(r"[0-9]{18,19}")
_SECOND: Final = 1_000_000_000
_DAY: Final = 86_400 * _SECOND
_EXAMPLES: Final = "write 14:02, 30m (that long ago), now, or 2026-11-23T14:02:00Z"
_ENDS: Final = frozenset({"to", "until:"})
_JUST_AHEAD: Final = 60 * _SECOND
"""A time of day that is no further behind now is today's where it ends a range: who asks at 14:05:59 types 14:06."""
USUAL: Final = 1_800 * _SECOND
"""Nanoseconds that are looked at where nobody says from when."""


class TimeRange(NamedTuple):
    """From a moment to another, both in it, Unix nanoseconds."""

    start: int
    end: int

    @property
    def length(self) -> int:
        """Nanoseconds."""
        return self.end - self.start

    @property
    def words(self) -> str:
        """As it stands in a sentence: `2026-11-23T14:02:00Z to 2026-11-23T14:32:00Z`."""
        return f"{stamp(self.start)} to {stamp(self.end)}"

    @property
    def query(self) -> dict[str, str]:
        """As it stands in an address that people read: ISO 8601, to the microsecond where a second is not whole."""
        return {"from": _written(self.start // 1_000), "to": _written(-(-self.end // 1_000))}

    def before(self) -> "TimeRange":
        """Return the same length of time just before."""
        return TimeRange(self.start - self.length, self.start - 1)

    def around(self, at: int) -> bool:
        """Return whether a moment lies in it."""
        return self.start <= at <= self.end

    @classmethod
    def read(cls, since: str, until: str, now: int) -> Self:
        """Return the range of two moments as `read_moment` takes them; "" for the half hour before, and for `now`.

        Raises:
            ValueError: one is no moment, or the range has no length; the text says what would be right.
        """
        end = read_moment(until, now, "to") if until.strip() else now
        start = read_moment(since, now, "from") if since.strip() else end - USUAL
        if start >= end:
            raise ValueError(f"from ({stamp(start)}) must be before to ({stamp(end)}).")
        if start < 0:
            raise ValueError(f"from is before 1970: {_EXAMPLES}.")
        return cls(start, end)


def read_moment(text: str, now: int, what: str) -> int:
    """Return a moment in Unix nanoseconds. A time of day is the latest one that is not behind `now`, in UTC.

    As `to` or `until:`, which end a range, it may be up to a minute behind `now`.

    Raises:
        ValueError: it is none; the text, which calls it `what`, says what would be right.
    """
    text = text.strip()
    if text.lower() == "now":
        return now
    if found := _CLOCK.fullmatch(text):
        hour, minute, second = (int(part or 0) for part in found.groups())
        day = moment(now).replace(hour=hour, minute=minute, second=second, microsecond=0)
        at = int(day.timestamp()) * _SECOND
        return at if at <= now + (_JUST_AHEAD if what in _ENDS else 0) else at - _DAY
    if found := _SECONDS.fullmatch(text):
        return int(found[1]) * _SECOND + int((found[2] or "").ljust(9, "0"))
    if _NANOSECONDS.fullmatch(text):
        return int(text)
    if len(text) <= _LONGEST:
        read = _date(text)
        read = _ago(text, now) if read is None else read
        if read is not None:
            return read
    raise ValueError(f"{what} is no moment: {visible(clip(text, _LONGEST))}; {_EXAMPLES}.")


def _written(microseconds: int) -> str:
    seconds, rest = divmod(microseconds, 1_000_000)
    whole = stamp(seconds * _SECOND)
    return f"{whole.removesuffix('Z')}.{rest:06}Z" if rest else whole


def _date(text: str) -> int | None:
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    read = read.replace(tzinfo=UTC) if read.tzinfo is None else read
    try:
        since = read - datetime(1970, 1, 1, tzinfo=UTC)
    except OverflowError:
        return None
    return since // timedelta(microseconds=1) * 1_000


def _ago(text: str, now: int) -> int | None:
    days = re.fullmatch(r"-?([0-9]{1,4})d", text)
    if days:
        return now - int(days[1]) * _DAY
    try:
        ago = parse_duration(text.removeprefix("-"))
    except ValueError:
        return None
    return now - ago if ago >= 0 else None
