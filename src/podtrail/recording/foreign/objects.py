"""JSON objects of other programs that are one request each, in a line or as a whole file."""

import json
import re
from typing import Any, Final

from podtrail.otlp import Intake, MalformedRequest
from podtrail.otlp.json import read_json_request
from podtrail.otlp.signals import signal_of
from podtrail.recording.foreign.jaeger import is_jaeger, jaeger_request
from podtrail.recording.foreign.tempo import is_tempo, tempo_request

_JAEGER_TRACE: Final = re.compile(rb'\s*\{[ \t\r]*+\n\s*+"(traceID|spans|processes|warnings)"\s*:')
_BASE64_ID: Final = re.compile(rb'"trace_?[iI]d"\s*:\s*"[A-Za-z0-9+/_-]{22}=="')


def is_jaeger_trace(head: bytes) -> bool:
    """Say whether a file that begins so is one trace of Jaeger's over several lines, without `data` around it."""
    return bool(_JAEGER_TRACE.match(head))


def is_recorded(line: dict[str, Any]) -> bool:
    """Say whether an object is read in a line of a recording, or counted there as one of another signal."""
    known = "resourceSpans" in line or "resource_spans" in line
    return known or bool(signal_of(line)) or is_jaeger(line) or is_tempo(line)


def has_base64_ids(raw: bytes) -> bool:
    """Say whether trace ids are in base64."""
    return bool(_BASE64_ID.search(raw))


def read_object(raw: bytes) -> Intake | None:
    """Return the spans of a trace of Jaeger's or an answer of Tempo's; None for all else.

    Raises:
        MalformedRequest: it is one of these, and can't be read.
    """
    try:
        read = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise MalformedRequest(f"not JSON: {error}") from error
    if not isinstance(read, dict):
        return None
    if is_jaeger(read):
        request = jaeger_request(read)
    elif is_tempo(read):
        request = dict(tempo_request(read))
    else:
        return None
    try:
        return read_json_request(json.dumps(request).encode())
    except RecursionError as error:
        raise MalformedRequest("JSON nested too deep") from error
