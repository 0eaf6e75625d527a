"""Copies of recorded requests, each with ids, uids, Pod names and times of its own: one recorded hour becomes many.

What belongs together stays together: parents, links, and the attempts at a Pod are those of the same copy. Positions
are found once; a copy is made by writing there.
"""

import random
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podtrail.otlp.lite import REQUEST, RESOURCE_SPANS, SCOPE_SPANS, SPAN, field_number

_POD_NAME, _POD_UID = "k8s.pod.name", "k8s.pod.uid"
_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")
_UID: Final = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of which Kubernetes makes the ends of generated names."""
_SUFFIX: Final = 5
_SUFFIXES: Final = len(_LETTERS) ** _SUFFIX
_STRIDE: Final = 8_675_309
"""No factor in common with `_SUFFIXES`: as many copies have suffixes of their own."""
_PLACE: Final = "\x1a" * _SUFFIX
_UID_BITS: Final = int("ffffffff-ffff-0fff-0fff-ffffffffffff".replace("-", ""), 16)
"""All but the digits that say which kind of UUID it is."""
_TRACE, _ID, _TIME = "trace", "id", "time"


class Stamp(NamedTuple):
    """What makes a copy differ from every other."""

    trace: int
    span: int
    uid: int
    """Masks, laid over ids as they are."""
    suffix: bytes
    """Put behind the names of Pods."""
    shift: int
    """Nanoseconds by which it is later."""


def stamp(seed: str, number: int, shift: int) -> Stamp:
    """Return the stamp of the copy of this number; the same seed and number give the same, shift aside."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311 - ids, not secrets
    left = number * _STRIDE % _SUFFIXES
    letters = ""
    for _ in range(_SUFFIX):
        left, at = divmod(left, len(_LETTERS))
        letters += _LETTERS[at]
    return Stamp(
        rng.getrandbits(128), rng.getrandbits(64), rng.getrandbits(128) & _UID_BITS, letters.encode("ascii"), shift
    )


class Template:
    """A request of which copies are made."""

    def __init__(self, raw: bytes, uids: Collection[bytes]) -> None:
        self._raw = raw
        slots = list(_slots(raw))
        self._traces = [(at, at + 16, int.from_bytes(raw[at : at + 16])) for at, kind in slots if kind == _TRACE]
        self._ids = [(at, at + 8, int.from_bytes(raw[at : at + 8])) for at, kind in slots if kind == _ID]
        times = [(at, at + 8, int.from_bytes(raw[at : at + 8], "little")) for at, kind in slots if kind == _TIME]
        self._times = [slot for slot in times if slot[2]]
        self._uids = [
            (found.start(), found.end(), int(found[0].replace(b"-", b""), 16))
            for found in _UID.finditer(raw)
            if found[0] in uids
        ]
        self._names = [(found.start(), found.end()) for found in re.finditer(_PLACE.encode(), raw)]

    def stamped(self, by: Stamp) -> bytes:
        """Return the copy with this stamp."""
        out = bytearray(self._raw)
        mask, shift = by.trace, by.shift
        for begin, end, old in self._traces:
            out[begin:end] = (old ^ mask).to_bytes(16)
        mask = by.span
        for begin, end, old in self._ids:
            out[begin:end] = (old ^ mask).to_bytes(8)
        for begin, end, old in self._times:
            out[begin:end] = (old + shift).to_bytes(8, "little")
        for begin, end, old in self._uids:
            text = f"{old ^ by.uid:032x}"
            out[begin:end] = f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}".encode()
        for begin, end in self._names:
            out[begin:end] = by.suffix
        return bytes(out)


def templates(requests: Sequence[bytes]) -> list[Template]:
    """Return the templates of serialized requests that belong together: whose Pods and links are each other's.

    A Pod's name (`k8s.pod.name`) gets an end of its own in every text of a span in which it stands as a word.
    """
    messages = [ExportTraceServiceRequest.FromString(request) for request in requests]
    names, uids = _values(messages, _POD_NAME), _values(messages, _POD_UID)
    for message in messages:
        _rename(message, names)
    known = {uid.encode() for uid in uids}
    return [Template(message.SerializeToString(), known) for message in messages]


def _spans(message: ExportTraceServiceRequest) -> Iterator[Span]:
    for resource in message.resource_spans:
        for scope in resource.scope_spans:
            yield from scope.spans


def _values(messages: Sequence[ExportTraceServiceRequest], key: str) -> set[str]:
    return {
        pair.value.string_value
        for message in messages
        for span in _spans(message)
        for pair in span.attributes
        if pair.key == key
    } - {""}


def _rename(message: ExportTraceServiceRequest, names: Collection[str]) -> None:
    def renamed(text: str) -> str:
        return _NAME.sub(lambda word: f"{word[0]}-{_PLACE}" if word[0] in names else word[0], text)

    for span in _spans(message):
        if span.status.message:
            span.status.message = renamed(span.status.message)
        for pairs in (span.attributes, *(event.attributes for event in span.events)):
            for value in _texts(pairs):
                value.string_value = renamed(value.string_value)


def _texts(pairs: Collection[KeyValue]) -> Iterator[AnyValue]:
    for pair in pairs:
        for value in (pair.value, *pair.value.array_value.values):
            if value.HasField("string_value"):
                yield value


def _numbers(message: Descriptor, shape: Mapping[str, Any]) -> Mapping[int, Any]:
    return {field_number(message, name): below for name, below in shape.items()}


def _nested(name: str) -> Descriptor:
    nested = SPAN.fields_by_name[name].message_type
    assert nested is not None
    return nested


_SLOTS: Final = _numbers(
    SPAN,
    {
        "trace_id": _TRACE,
        "span_id": _ID,
        "parent_span_id": _ID,
        "start_time_unix_nano": _TIME,
        "end_time_unix_nano": _TIME,
        "events": _numbers(_nested("events"), {"time_unix_nano": _TIME}),
        "links": _numbers(_nested("links"), {"trace_id": _TRACE, "span_id": _ID}),
    },
)
_SHAPE: Final = _numbers(
    REQUEST,
    {
        "resource_spans": _numbers(
            RESOURCE_SPANS,
            {"scope_spans": _numbers(SCOPE_SPANS, {"spans": _SLOTS})},
        )
    },
)
_SIZES: Final = {_TRACE: 16, _ID: 8, _TIME: 8}


def _slots(raw: bytes) -> Iterator[tuple[int, str]]:
    """Yield where ids and times stand in a serialized request, and which of them it is."""
    waiting: list[tuple[int, int, Mapping[int, Any]]] = [(0, len(raw), _SHAPE)]
    while waiting:
        begin, end, shape = waiting.pop()
        for number, first, last in _fields(raw, begin, end):
            below = shape.get(number)
            if isinstance(below, str):
                if last - first == _SIZES[below]:
                    yield first, below
            elif below is not None:
                waiting.append((first, last, below))


def _fields(raw: bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, begin and end of the fields of a message that protobuf has written."""
    while at < end:
        tag, at = _varint(raw, at)
        first = at
        match tag & 7:
            case 0:
                _, at = _varint(raw, at)
            case 1:
                at += 8
            case 2:
                length, first = _varint(raw, at)
                at = first + length
            case _:
                at += 4
        yield tag >> 3, first, at


def _varint(raw: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = raw[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at
