"""kube-scheduler's log in its text format, read as it grows."""

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LINE = re.compile(r'^[IWEF]\d{4} \S+ +\d+ [^\]]+\] "((?:[^"\\]|\\.)*)"(.*)$')
_FIELD = re.compile(r' ([\w.]+(?: [\w.]+)*)=("(?:[^"\\]|\\.)*"|\[.*?\]|\{.*?\}|\S+)')
_PAUSE = 0.002


class Line(NamedTuple):
    """A structured line: its message and its fields, unquoted."""

    message: str
    fields: dict[str, str]


class Log:
    """Gives each line once, waiting for those to come."""

    def __init__(self, path: Path, deadline: float = 120) -> None:
        """`deadline` is how many seconds a line may take."""
        self._file = path.open(encoding="utf-8", errors="replace")
        self._deadline = deadline
        self._rest = ""

    def close(self) -> None:
        """Reads no more."""
        self._file.close()

    def lines(self) -> Iterator[Line]:
        """Ends when the caller has seen what it waits for. Raises TimeoutError when no line came in time."""
        until = time.monotonic() + self._deadline
        while True:
            text = self._rest + self._file.readline()
            if not text.endswith("\n"):
                self._rest = text
                if time.monotonic() > until:
                    raise TimeoutError(f"kube-scheduler logged nothing for {self._deadline} s")
                time.sleep(_PAUSE)
                continue
            self._rest = ""
            if line := parse(text.rstrip("\n")):
                yield line


def parse(text: str) -> Line | None:
    """None for what is not a structured line of one piece."""
    matched = _LINE.match(text)
    if matched is None:
        return None
    fields = {key: _unquoted(value) for key, value in _FIELD.findall(matched[2])}
    return Line(_unquoted(f'"{matched[1]}"'), fields)


def _unquoted(value: str) -> str:
    if not value.startswith('"'):
        return value
    read: str = ast.literal_eval(value)  # Go's escapes are Python's
    return read
