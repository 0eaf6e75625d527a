"""Derives the offset of a log's times from UTC by the clock: when its last line was written."""

from typing import Final

from podtrail.reconstruction import klog
from podtrail.reconstruction.calendar import SECOND, Calendar
from podtrail.reconstruction.envelope import Envelope

_SLACK: Final = 60 * SECOND
_MOST: Final = 200
"""Lines at the end of a log among which the last one of klog is found."""


def compare_clock(calendar: Calendar, end: bytes, written: int, *, live: bool) -> None:
    """Have a calendar derive the offset from the last line of a log; an envelope that has the time is left to itself.

    Args:
        calendar: That of the log.
        end: The last bytes of the log.
        written: When the last line was written, Unix nanoseconds.
        live: Whether that is certain. Otherwise the file may be a copy, so the line may be older, but not newer.
    """
    envelope = Envelope()
    for raw in reversed(end.split(b"\n")[-_MOST:]):
        for unwrapped in envelope.unwrap(raw.removesuffix(b"\r"), within=False):
            read = klog.read_line(unwrapped.line)
            if read is None:
                continue
            calendar.learn(written)
            if unwrapped.written is None:
                local = calendar.local(read.stamp, read.micros)
                if local is not None and (live or local > written - _SLACK):
                    calendar.compare(local, written)
            return
