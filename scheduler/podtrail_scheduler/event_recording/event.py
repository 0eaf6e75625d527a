"""An Event and what it is about."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from podtrail_scheduler.objects import ApiObject

NORMAL = "Normal"
WARNING = "Warning"
NOTE_LIMIT = 1024
"""Bytes of a note that the API server accepts."""
MAX_NAME = 253
_CUT = " ..."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """An object as Events name it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str

    @classmethod
    def to(cls, item: ApiObject) -> "ObjectReference":
        """The reference to an object of the core API."""
        namespace, _, name = item.key.rpartition("/")
        uid, version = getattr(item, "uid", ""), getattr(item, "resource_version", "")
        return cls("v1", type(item).__name__, namespace, name, uid, version)

    def manifest(self) -> dict[str, str]:
        """The API's JSON."""
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.resource_version,
        }
        return {name: value for name, value in fields.items() if value}


@dataclass(frozen=True, slots=True)
class EventSeries:
    """How often, and when last (unix nanoseconds)."""

    count: int
    last_observed_time: int

    def manifest(self) -> dict[str, object]:
        """The API's JSON."""
        return {"count": self.count, "lastObservedTime": micro_time(self.last_observed_time)}


@dataclass(frozen=True, slots=True)
class Event:
    """One Event object; `event_time` in unix nanoseconds."""

    regarding: ObjectReference
    related: ObjectReference | None
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    reporting_instance: str
    event_time: int
    series: EventSeries | None = None

    @property
    def name(self) -> str:
        """The object's name and the time."""
        suffix = f".{self.event_time:x}"
        return self.regarding.name[: MAX_NAME - len(suffix)] + suffix

    @property
    def namespace(self) -> str:
        """Where the Event is: where its object is, `default` when that is nowhere."""
        return self.regarding.namespace or "default"

    @property
    def key(self) -> tuple[object, ...]:
        """Events of equal keys are a series; the note does not count."""
        return (
            self.type,
            self.action,
            self.reason,
            self.reporting_controller,
            self.reporting_instance,
            self.regarding,
            self.related,
        )

    def repeated(self, now: int) -> "Event":
        """This Event, observed once more."""
        count = self.series.count + 1 if self.series is not None else 2
        return replace(self, series=EventSeries(count, now))

    def manifest(self) -> dict[str, object]:
        """The API's JSON (events.k8s.io/v1)."""
        manifest: dict[str, object] = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self.name, "namespace": self.namespace},
            "eventTime": micro_time(self.event_time),
            "reportingController": self.reporting_controller,
            "reportingInstance": self.reporting_instance,
            "action": self.action,
            "reason": self.reason,
            "regarding": self.regarding.manifest(),
            "note": self.note,
            "type": self.type,
        }
        if self.related is not None:
            manifest["related"] = self.related.manifest()
        if self.series is not None:
            manifest["series"] = self.series.manifest()
        return manifest

    def series_patch(self) -> Mapping[str, object]:
        """The patch that writes the series."""
        assert self.series is not None
        return {"series": self.series.manifest()}


def truncated(note: str) -> str:
    """`note`, cut to what the API server accepts as kube-scheduler cuts it."""
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT:
        return note
    return encoded[: NOTE_LIMIT - len(_CUT)].decode(errors="ignore") + _CUT


def micro_time(unix_nanoseconds: int) -> str:
    """RFC 3339 with microseconds (meta/v1 MicroTime)."""
    return (_EPOCH + timedelta(microseconds=unix_nanoseconds // 1000)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
