"""Reading a few fields of many spans in C: what a decision needs, and no more."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, cast

from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.lite import SCOPE_SPANS, lite_type
from podtrail.otlp.remembering import remembering


class _Fields(Protocol):
    trace_id: bytes
    span_id: bytes
    parent_span_id: bytes
    flags: int
    kind: int
    start_time_unix_nano: int
    end_time_unix_nano: int
    status: bytes
    """A Status message, for `status_code`."""
    attributes: Sequence[bytes]
    """KeyValue messages, for `values.read_key_value`."""
    events: Sequence[bytes]
    links: Sequence[bytes]

    def HasField(self, field_name: str) -> bool:  # noqa: N802 - protobuf's
        """Return whether a field that does not repeat is there, be it empty."""


class SpanFields(_Fields, Protocol):
    """The fields of a span under OTLP's names, strings as bytes. Reading one that was not asked for raises."""

    trace_state: bytes
    name: bytes


class SpanValues(_Fields, Protocol):
    """The fields of a span under OTLP's names, strings as text. Reading one that was not asked for raises."""

    trace_state: str
    name: str


def span_reader(fields: Collection[str]) -> Callable[[bytes], Sequence[SpanValues]]:
    """Return a function from a group's `spans` (or several joined) to its spans with just these fields.

    `name` and `trace_state` are text; ids and messages (`status`, `attributes`, `events`, `links`) are bytes. About
    0.1 us a span; read the fields in C loops, for instance
    `min(map(attrgetter("start_time_unix_nano"), read(group.spans)))`.

    Raises:
        KeyError: a span has no such field.
    """
    parse = cast("Any", lite_type(SCOPE_SPANS, {"spans": dict.fromkeys(fields)}, text=True)).FromString

    def read(spans: bytes) -> Sequence[SpanValues]:
        return list(parse(spans).spans)

    return read


def raw_span_reader(fields: Collection[str]) -> Callable[[bytes], Sequence[SpanFields]]:
    """Return what `span_reader` returns, but for strings: these come as UTF-8 bytes, which nothing decodes.

    Raises:
        KeyError: a span has no such field.
    """
    parse = cast("Any", lite_type(SCOPE_SPANS, {"spans": dict.fromkeys(fields)})).FromString

    def read(spans: bytes) -> Sequence[SpanFields]:
        return list(parse(spans).spans)

    return read


@remembering(256)
def status_code(status: bytes) -> int:
    """Return the code of a Status message: 0 unset, 1 ok, 2 error. Empty bytes are a status that is not there."""
    return trace_pb2.Status.FromString(status).code
