"""OTLP JSON (OTLP specification, "JSON Protobuf Encoding") to the bytes that protobuf would have had for the spans.

Keys are lowerCamelCase or, as the Collector accepts them too, in protobuf's snake_case. Unknown keys are ignored, null
means absent. A key that an object has twice, in either spelling, is an error where the object is read, since one of the
two would be lost silently.
"""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn, cast

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Error as ProtobufError
from google.protobuf.message import Message
from opentelemetry.proto.trace.v1 import trace_pb2

from podtrail.otlp.json_values import Unfit, kind_of, scalar_reader
from podtrail.otlp.lite import REQUEST, RESOURCE_SPANS, SCOPE_SPANS, lite_type
from podtrail.otlp.request import Intake, MalformedRequest, read_request, refuse_hollow
from podtrail.otlp.scrutiny import Rejections
from podtrail.otlp.signals import skipped_signal

_REQUEST = cast("Any", lite_type(REQUEST, {"resource_spans": None}))
_RESOURCE_SPANS = cast("Any", lite_type(RESOURCE_SPANS, {"resource": None, "scope_spans": None, "schema_url": None}))
_SCOPE_SPANS = cast("Any", lite_type(SCOPE_SPANS, {"scope": None, "spans": None, "schema_url": None}))

_SPELLINGS = {
    "resourceSpans": ("resourceSpans", "resource_spans"),
    "scopeSpans": ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans"),
    "spans": ("spans",),
}
"""The lists above spans, as protobuf spells them, and as they were called before OTLP 0.19."""
_SCOPES = ("instrumentationLibrary", "instrumentation_library")
"""What a scope was called then."""
_LONGEST_INTEGER = 40
"""Digits beyond any field's range: such a number is read as a float, which takes no quadratic time."""


class _Ambiguous(dict[str, object]):
    """An object in which a key stood twice."""


def read_json_request(raw: bytes, *, zero_ids: bool = False) -> Intake:
    """Return the groups of an ExportTraceServiceRequest in OTLP JSON, as `read_request` does for its protobuf form.

    A span with a value that its field can't hold is rejected alone; a resource or scope with one costs its spans.

    Raises:
        MalformedRequest: not JSON in UTF-8 (the text says where), or not so formed that spans can be told apart.
    """
    rejections = Rejections()
    request = _REQUEST()
    tree = _parse(raw)
    resources = _items(tree, "resourceSpans", "")
    elements = len(resources)
    for position, item in enumerate(resources):
        where = f"resourceSpans[{position}]"
        found = _items(item, "scopeSpans", where)
        elements += len(found)
        refuse_hollow(elements, len(raw))
        scopes = [(scope, _items(scope, "spans", f"{where}.scopeSpans[{at}]")) for at, scope in enumerate(found)]
        elements += sum(len(spans) for _, spans in scopes)
        refuse_hollow(elements, len(raw))
        if (resource_spans := _resource_spans(item, scopes, rejections)) is not None:
            request.resource_spans.append(resource_spans)
    intake = read_request(request.SerializeToString(), zero_ids=zero_ids)
    reasons = [reason for reason in (rejections.reason(), intake.reason) if reason]
    rejected = rejections.count + intake.rejected
    return intake._replace(rejected=rejected, reason=", ".join(reasons), other_signal=skipped_signal(tree))


def _parse(raw: bytes) -> object:
    # An empty object or list takes three bytes, and sixty when it is read. Of attributes they take fifteen and more.
    refuse_hollow((raw.count(b"{") + raw.count(b"[")) // 2, len(raw))
    try:
        return json.loads(
            raw.decode(), object_pairs_hook=_object, parse_int=_parse_int, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise MalformedRequest(f"not JSON: not UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise MalformedRequest(f"not JSON: {error}") from error
    except RecursionError as error:
        raise MalformedRequest("JSON nested too deep") from error


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    read = dict(pairs)
    return read if len(read) == len(pairs) else _Ambiguous(read)


def _parse_int(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise MalformedRequest(f'not JSON: {name} without quotes, write "{name}"')


def _items(parent: object, key: str, where: str) -> list[object]:
    """Return the list under a key of the structure above spans; what is wrong there leaves no spans to reject."""
    name = where or "the request"
    if isinstance(parent, _Ambiguous):
        raise MalformedRequest(f"{name} has a key twice")
    if not isinstance(parent, dict):
        raise MalformedRequest(f"{name} is {kind_of(parent)} instead of an object")
    given = [spelling for spelling in _SPELLINGS[key] if parent.get(spelling) is not None]
    if len(given) > 1:
        raise MalformedRequest(f"{name} has both {given[0]} and {given[1]}")
    if not given:
        return []
    items = parent[given[0]]
    if not isinstance(items, list):
        raise MalformedRequest(f"{where + '.' if where else ''}{key} is {kind_of(items)} instead of a list")
    return items


def _resource_spans(item: object, scopes: list[tuple[object, list[object]]], rejections: Rejections) -> bytes | None:
    try:
        header = _encode(trace_pb2.ResourceSpans, item, "scopeSpans")
    except Unfit as error:
        rejections.add(f"a resource with {error}", sum(len(spans) for _, spans in scopes))
        return None
    message = _RESOURCE_SPANS.FromString(header)
    for scope, spans in scopes:
        if (scope_spans := _scope_spans(scope, spans, rejections)) is not None:
            message.scope_spans.append(scope_spans)
    return cast("bytes", message.SerializeToString())


def _scope_spans(scope: object, spans: list[object], rejections: Rejections) -> bytes | None:
    if isinstance(scope, dict) and "scope" not in scope:
        scope = {"scope" if key in _SCOPES else key: value for key, value in scope.items()}
    try:
        message = _SCOPE_SPANS.FromString(_encode(trace_pb2.ScopeSpans, scope, "spans"))
    except Unfit as error:
        rejections.add(f"a scope with {error}", len(spans))
        return None
    for span in spans:
        try:
            message.spans.append(_encode(trace_pb2.Span, span, None))
        except Unfit as error:
            rejections.add(str(error))
    return cast("bytes", message.SerializeToString())


def _encode(kind: type[Message], value: object, left_out: str | None) -> bytes:
    """Return the bytes of the message that a JSON value describes, but for one key. Unfit when it can't be one."""
    if left_out and isinstance(value, dict):
        lists = _SPELLINGS[left_out]
        if any(key in value for key in lists):
            value = {key: inner for key, inner in value.items() if key not in lists}
    try:
        return kind(**_message_reader(kind.DESCRIPTOR)(value)).SerializeToString()
    except (ProtobufError, RecursionError) as error:
        raise Unfit("nesting too deep") from error


@cache
def _message_reader(message: Any) -> Callable[[object], dict[str, Any]]:
    """Return what reads an object to a message's fields under their names in protobuf."""
    plan: dict[str, tuple[str, Callable[[object], object]]] = {}
    one_of_them = all(field.containing_oneof is not None for field in message.fields)

    def read(value: object) -> dict[str, Any]:
        if type(value) is not dict:
            twice = isinstance(value, _Ambiguous)
            fault = "has a key twice" if twice else f"is {kind_of(value)} instead of an object"
            raise Unfit(f"{message.name} that {fault}")
        if not plan:  # not before: messages hold messages of their own kind
            for field in message.fields:
                plan[field.json_name] = plan[field.name] = (field.name, _field_reader(field))
        fields = {}
        for key, inner in value.items():
            if inner is not None and key in plan:
                name, read_field = plan[key]
                if name in fields:
                    raise Unfit(f"{message.name} that has {name} in two spellings")
                fields[name] = read_field(inner)
        if one_of_them and len(fields) > 1:
            raise Unfit(
                f"{message.name} that has both {' and '.join(key for key in plan if value.get(key) is not None)}"
            )
        return fields

    return read


def _field_reader(field: Field) -> Callable[[object], object]:
    read = scalar_reader(field) if field.message_type is None else _message_reader(field.message_type)
    if not field.is_repeated:
        return read
    name = field.json_name

    def read_all(values: object) -> list[object]:
        if not isinstance(values, list):
            raise Unfit(f"{name} that is {kind_of(values)} instead of a list")
        return [read(value) for value in values]

    return read_all
