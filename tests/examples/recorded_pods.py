"""Which Pod each trace of a recorded node is about, read from all that its spans say, and the cluster's own objects."""

import io
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import zstandard

from podtrail.otlp import SpanView, split, write_request
from podtrail.recording import Damage, read_recording

NODE = Path(__file__).parents[1] / "data" / "recordings" / "node"
_UID = re.compile(r"_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})_")
_POD = re.compile(r"(?:https?://[^/]+/api/v1/namespaces|/api/v1/namespaces)/([^/?]+)/pods/([^/?]+)")
_POD_KEY = re.compile(r"/pods/([^/]+)/([^/]+)")
_EVENT = re.compile(r"(?:.*/namespaces/([^/]+)/events|/events/([^/]+))/([^/?]+)\.[0-9a-f]+(?:\?.*)?")
_PATHS = ("url.full", "url.path", "http.target", "url", "key")
_IDS = ("sandbox.id", "container.id", "task.id", "task.container.id", "cni.id")


class RecordedPods(NamedTuple):
    """A recording, and of which traces it is known which Pod they are about."""

    arrivals: list[tuple[int, bytes]]
    traces: Mapping[str, frozenset[str]]
    """Trace ids by the Pod's uid; of traces about several Pods none."""


@cache
def recorded_pods(scheduler: str) -> RecordedPods:
    """Return the recording with this scheduler, `stock` or `podtrail`."""
    arrivals: list[tuple[int, bytes]] = []
    spans: dict[str, list[SpanView]] = {}
    for record in read_recording(NODE / scheduler / "spans.otlp.zst"):
        assert not isinstance(record, Damage)
        arrivals.append((record.arrival, write_request(record.intake.groups)))
        for group in record.intake.groups:
            spans.setdefault(group.trace_id.hex(), []).extend(map(SpanView, split(group.spans)))
    uids = dict(_watched(scheduler))
    ids = {key: uid for views in spans.values() for view in views for key, uid in _taught(view)}
    about: dict[str, set[str]] = {}
    for trace, views in spans.items():
        told = {uid for view in views for uid in _told(view, uids, ids)}
        if len(told) == 1:
            about.setdefault(told.pop(), set()).add(trace)
    return RecordedPods(arrivals, {uid: frozenset(traces) for uid, traces in about.items()})


def _watched(scheduler: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the Pods of which the API server told: namespace and name, which each had alone, and uid."""
    with (NODE / scheduler / "pods.jsonl.zst").open("rb") as file:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8"):
            told = json.loads(line)["event"]["object"]["metadata"]
            if "uid" in told:
                yield (told["namespace"], told["name"]), told["uid"]


def _taught(span: SpanView) -> Iterator[tuple[str, str]]:
    attributes = span.attributes
    for name in ("sandbox.name", "container.name"):
        if found := _UID.search(str(attributes.get(name, ""))):
            for key in ("sandbox.id", "container.id"):
                if key in attributes:
                    yield str(attributes[key]), found[1]


def _told(span: SpanView, uids: Mapping[tuple[str, str], str], ids: Mapping[str, str]) -> Iterator[str]:
    attributes = span.attributes
    if uid := attributes.get("k8s.pod.uid"):
        yield str(uid)
    for key in _IDS:
        if uid := ids.get(str(attributes.get(key))):
            yield uid
    for key in _PATHS:
        text = str(attributes.get(key, ""))
        found = _POD.match(text) or _POD_KEY.fullmatch(text)
        place = (found[1], found[2]) if found else None
        if event := _EVENT.fullmatch(text):
            place = (event[1] or event[2], event[3])
        if place is not None and place in uids:
            yield uids[place]
