"""Files that are given for recordings and are something else."""

import json
import re
from pathlib import Path
from typing import Final

from podtrail.recording import is_document

_LONGEST: Final = 1 << 16
_REQUEST: Final = frozenset({"resourceSpans", "resource_spans"})
_MOST_KEYS: Final = 4
_KLOG: Final = re.compile(rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s+\d+ \S+:\d+\] ")
_LOG: Final = "a log of a Kubernetes component, not a recording: podtrail reconstruct makes one of a scheduler's"


def foreign(path: Path) -> str:
    """Return what a file of JSON is when its first line is no request, else "".

    Raises:
        OSError: the file can't be read.
    """
    if path.is_dir():
        return ""  # its files are told by their names
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
    if not isinstance(first, dict) or not first or _REQUEST & first.keys():
        return ""
    if {"traceId", "decision"} <= first.keys():
        return "a file of decisions, not a recording"
    if {"ts", "v", "msg"} <= first.keys():
        return _LOG
    keys = [*first][:_MOST_KEYS] + ["…"] * (len(first) > _MOST_KEYS)
    return f"JSON with the keys {', '.join(keys)}, not a recording (a line of which begins with resourceSpans)"
