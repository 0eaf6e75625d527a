"""What a run over the same arrivals gives that nothing interrupts: what a story is to have given, span by span."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podtrail.storage.disk import SystemDisk
from podtrail.storage.layout import SEGMENT, number_of
from podtrail.storage.recovery import read_segment
from podtrail.testing import replay
from tests.reliability.crash.load import Request
from tests.reliability.crash.recorder import Recorder

ARRIVED = 0
"""The kind of an entry with spans that arrived."""
PIPELINES = "pipelines"
"""The name of their journal."""


class Arrival(NamedTuple):
    """A request, when the processors were told that it came."""

    time: int
    body: bytes


def arrivals(folder: Path) -> list[Arrival]:
    """Return all that was taken in a story, of segments that are there and of those that were removed."""
    disk = SystemDisk()
    found: dict[int, Path] = {}
    for place in (folder / "storage", folder / "aside"):
        for path in sorted(place.rglob(f"*{SEGMENT}")):
            number = number_of(path.name, SEGMENT)
            if PIPELINES in path.parent.name and number is not None:
                found.setdefault(number, path.parent)
    return [
        Arrival(entry.arrival, entry.body)
        for number, place in sorted(found.items())
        for _, entry in read_segment(place, disk, number)
        if entry.kind == ARRIVED and entry.body
    ]


def differences(
    config: dict[str, Any], log: Sequence[Arrival], requests: Sequence[Request], recorder: Recorder
) -> list[str]:
    """Return where what came is otherwise than what the uninterrupted run gives."""
    times = Counter(id for arrival in log for id in _ids(arrival.body))
    run = replay(_without_storage(config), [(arrival.time, arrival.body) for arrival in log])
    (exported,) = run.exported.values()
    given = {span.span.span_id: Span.FromString(span.raw) for span in exported}
    # Of a trace whose root never came nothing is decided: the replay decides at its end.
    decided = {id for request in requests for trace, id in request.spans if trace.root in times}
    wrong = {
        "were taken twice": [id for id, count in times.items() if count > 1],
        "were acknowledged and are not in the log": [
            id for request in requests if request.taken_in is not None for _, id in request.spans if not times[id]
        ],
        "came and would not have, uninterrupted": decided & recorder.ids - given.keys(),
        "would have come, uninterrupted": decided & given.keys() - recorder.ids,
        "came otherwise than uninterrupted": [
            id for id, raw in recorder.raw.items() if id in given and raw != {given[id].SerializeToString()}
        ],
    }
    return [f"{len(ids)} spans {what}" for what, ids in wrong.items() if ids]


def _ids(body: bytes) -> list[bytes]:
    request = ExportTraceServiceRequest.FromString(body)
    return [span.span_id for r in request.resource_spans for scope in r.scope_spans for span in scope.spans]


def _without_storage(config: dict[str, Any]) -> dict[str, Any]:
    service = config["service"]
    pipeline = {key: value for key, value in service["pipelines"]["traces"].items() if key != "durable"}
    processors = {
        id: {key: value for key, value in settings.items() if key != "storage"}
        for id, settings in config["processors"].items()
    }
    exporters = {
        id: {key: value for key, value in settings.items() if key != "sending_queue"}
        for id, settings in config["exporters"].items()
    }
    return {
        "receivers": config["receivers"],
        "processors": processors,
        "exporters": exporters,
        "service": {"telemetry": service["telemetry"], "pipelines": {"traces": pipeline}},
    }
