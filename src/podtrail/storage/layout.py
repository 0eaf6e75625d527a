"""Names of the files in a store's folder."""

import re
from collections.abc import Iterable
from pathlib import Path

SEGMENT = ".otlp"
STATE = ".state"
TEMPORARY = ".tmp"
ASIDE = ".damaged"
FIRST_SEGMENT = 1
LEFT_ALONE = (TEMPORARY, ASIDE)
"""Endings of what is known, and neither segment nor state."""
_NUMBER = re.compile(r"([0-9]{8,18})(\.otlp|\.state)")


def segment_path(folder: Path, number: int) -> Path:
    """Return where a segment is."""
    return folder / f"{number:08}{SEGMENT}"


def state_path(folder: Path, number: int) -> Path:
    """Return where the state is as of the beginning of a segment."""
    return folder / f"{number:08}{STATE}"


def number_of(name: str, ending: str) -> int | None:
    """Return the number of a segment or state, None when the name is of another kind."""
    found = _NUMBER.fullmatch(name)
    return int(found[1]) if found and found[2] == ending and name == f"{int(found[1]):08}{ending}" else None


def numbers(names: Iterable[str], ending: str) -> list[int]:
    """Return the numbers of segments or states among names, the lowest first."""
    return sorted(number for name in names if (number := number_of(name, ending)) is not None)
