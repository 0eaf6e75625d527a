"""Requests put aside, to be given in the order of their times: few bytes of memory each, the rest is in a file."""

from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import NamedTuple

from podtrail.otlp import Intake, read_request, write_request
from podtrail.otlp.arrival import latest_end

_IN_MEMORY = 32 << 20


class _Aside(NamedTuple):
    arrival: int
    number: int
    at: int
    size: int
    rejected: int
    reason: str


class Spool:
    """Takes all, then gives all back, earliest first."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - given back with the spool
        self._aside: list[_Aside] = []
        self._size = 0

    def put(self, number: int, intake: Intake) -> None:
        """Put aside what stands at byte `number` of a document.

        Raises:
            OSError: the disk is full.
        """
        raw = write_request(intake.groups)
        self._file.write(raw)
        aside = _Aside(latest_end(intake.groups), number, self._size, len(raw), intake.rejected, intake.reason)
        self._aside.append(aside)
        self._size += len(raw)

    def take(self) -> Iterator[tuple[int, Intake]]:
        """Yield everything with its number, by the latest end of the spans, and forget it."""
        with self._file:
            for aside in sorted(self._aside):
                self._file.seek(aside.at)
                intake = read_request(self._file.read(aside.size))
                yield aside.number, intake._replace(rejected=aside.rejected, reason=aside.reason)
        self._aside = []
