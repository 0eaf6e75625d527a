"""Attempts that were rebuilt and the API server's own spans, brought together by `link_stitching` in virtual time."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Final

from podtrail.config import Document
from podtrail.otlp import Batch, Group, Intake
from podtrail.pipeline.settings import read_settings
from podtrail.recording import Damage
from podtrail.replay.replayer import Replayer, read_records

_DAY: Final = 86_400
_STITCHING: Final = {
    "reorder_wait": "15s",  # attempts are known seconds after they have ended
    "ttl": f"{_DAY}s",  # a Pod may wait for long from its creation to its first attempt
    "max_pods": 100_000,
    "max_attempts": 200_000,
    "max_traces": 200_000,
    "max_held_mib": 256,
}
_CONFIG: Final = {
    "receivers": {"otlp": {"protocols": {"grpc": {}}}},
    "processors": {"link_stitching": _STITCHING},
    "exporters": {"debug": {}},
    "service": {
        "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["link_stitching"], "exporters": ["debug"]}}
    },
}
_LINKS: Final = "otelcol_processor_link_stitching_links"
_KINDS: Final = ("creation", "binding", "status")

Traces = Iterable[tuple[int, Sequence[Group]]]
"""With their arrivals, Unix nanoseconds."""


def join(
    attempts: Traces, apiserver: Sequence[Path], write: Callable[[Batch], None], damaged: Callable[[Damage], None]
) -> Counter[str]:
    """Write attempts and the spans of recordings of the API server, linked; return how many links of each type lead on.

    Raises:
        OSError: a recording can't be opened.
    """
    replayer = Replayer(read_settings(Document.from_mapping(_CONFIG)), lambda _pipeline, batch: write(batch))
    requests = ((record.arrival, record.intake.groups) for record in read_records(apiserver, damaged))
    for arrival, groups in _in_order(attempts, requests):
        replayer.add(arrival, Intake(groups, 0, ""))
    replayer.finish()
    found: Counter[str] = Counter()
    for labels, count in replayer.host.metrics.snapshot().get(_LINKS, {}).items():
        told = dict(label.partition("=")[::2] for label in labels.split(","))
        if told["target"] == "kept" and told["type"] in _KINDS:
            found[told["type"]] += int(count)
    return found


def _in_order(*sources: Traces) -> Iterator[tuple[int, Sequence[Group]]]:
    return heapq.merge(*sources, key=itemgetter(0))
