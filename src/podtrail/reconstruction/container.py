"""What container runtimes wrap around each line of a log: CRI's prefix, Docker's JSON."""

import json
import re
from typing import NamedTuple

from podtrail.reconstruction.calendar import rfc3339

_CRI = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) (?:stdout|stderr) ([FP])\S* ")
_LONGEST = 1 << 20


class Unwrapped(NamedTuple):
    """A line as the container wrote it."""

    line: bytes
    written: int | None
    """When the runtime took it, Unix nanoseconds."""


class Container:
    """Takes the wrapping off; joins the parts of lines that the runtime has cut."""

    def __init__(self) -> None:
        self._part = b""

    def unwrap(self, line: bytes) -> Unwrapped | None:
        """Return a line; None while more of it is to come. One that is not wrapped comes as it is."""
        if line[:1].isdigit() and (found := _CRI.match(line)):
            return self._join(line[found.end() :], found[2] == b"P", rfc3339(found[1].decode()))
        if line.startswith(b'{"log":'):
            return self._docker(line)
        return Unwrapped(line, None)

    def _docker(self, line: bytes) -> Unwrapped | None:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            return Unwrapped(line, None)
        log, time = told.get("log"), told.get("time")
        if not isinstance(log, str):
            return Unwrapped(line, None)
        part = not log.endswith("\n")
        written = rfc3339(time) if isinstance(time, str) else None
        return self._join(log.removesuffix("\n").encode("utf-8", "replace"), part, written)

    def _join(self, line: bytes, part: bool, written: int | None) -> Unwrapped | None:
        line = self._part + line if len(self._part) < _LONGEST else self._part
        self._part = line if part else b""
        return None if part else Unwrapped(line, written)
