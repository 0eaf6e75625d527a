"""Files that are given for recordings and are something else."""

import json
import re
from pathlib import Path
from typing import Final

from podtrail.recording import is_document
from podtrail.recording.foreign import is_recorded
from podtrail.storage.layout import SEGMENT, STATE, number_of, numbers

_LONGEST: Final = 1 << 16
_MOST_KEYS: Final = 4
_KLOG: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s+\d+ \S+:\d+\] ")
NOTHING_IN_STORE: Final = "a store in which nothing is undecided or undelivered"
_LOG: Final = "a log of a Kubernetes component, not a recording: podtrail reconstruct makes one of a scheduler's"


def foreign(path: Path) -> str:
    """Return what a file of JSON is when its first line is no request, or a part of a store that is no log; else "".

    Raises:
        OSError: the file can't be read.
    """
    if path.is_dir():
        return _folder(path)
    if number_of(path.name, STATE) is not None:
        return "a checkpoint of a store, not a recording: its folder is one"
    with path.open("rb") as file:
        if not file.seekable():
            return ""  # whoever reads it as a recording says that it can't be one
        line = file.readline(_LONGEST)
        if is_document(line + file.readline(_LONGEST)):
            return ""  # of Jaeger, Zipkin or another program: what in it is no trace is named
    if _KLOG.match(line):
        return _LOG
    try:
        first = json.loads(line)
    except ValueError:  # another format, or a line that is longer
        return ""
    if not isinstance(first, dict) or not first or is_recorded(first):
        return ""
    if {"traceId", "decision"} <= first.keys():
        return "a file of decisions, not a recording"
    if {"ts", "v", "msg"} <= first.keys():
        return _LOG
    keys = [*first][:_MOST_KEYS] + ["…"] * (len(first) > _MOST_KEYS)
    return f"JSON with the keys {', '.join(keys)}, not a recording (a line of which begins with resourceSpans)"


def is_journal(path: Path) -> bool:
    """Say whether a folder, or the one that a file is in, is what a store writes to."""
    if not path.is_dir():
        return number_of(path.name, SEGMENT) is not None
    names = [file.name for file in path.iterdir()]
    return bool(numbers(names, SEGMENT) or numbers(names, STATE))


def _folder(path: Path) -> str:
    names = [file.name for file in path.iterdir()]
    if numbers(names, STATE) and not numbers(names, SEGMENT):
        return NOTHING_IN_STORE
    journals = sorted(name for name in names if (path / name).is_dir() and is_journal(path / name))
    return f"a store, not a recording; folders in it are: {', '.join(journals)}" if journals else ""
