"""When a recorded request arrived: field 1000 (fixed64) of its protobuf form, `arrivalTimeUnixNano` of its JSON form.

Both are Unix nanoseconds, and unknown fields to every other reader.
"""

import json
import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Any, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from podtrail.otlp.group import Group
from podtrail.otlp.lite import REQUEST, field_number
from podtrail.otlp.reader import raw_span_reader

FIELD_NUMBER = 1000
KEY = "arrivalTimeUnixNano"

_FIXED64 = 1
_TAG = bytes([FIELD_NUMBER << 3 & 127 | 128 | _FIXED64, FIELD_NUMBER >> 4])
_SIZE = 8
_RESOURCE_SPANS = field_number(REQUEST, "resource_spans") << 3 | 2
_LONGEST_LENGTH = 5
_MOST_STEPS = 1_000
_LATEST = 2**63 - 1
"""Int64 nanoseconds end in 2262: a later end is no time, but a mistake that would push all arrivals behind it."""
_IN_JSON = re.compile(rb'"arrivalTimeUnixNano"\s*:\s*"?([0-9]+)"?\s*(,|\})')
_read_ends = raw_span_reader(["end_time_unix_nano"])
_end_of = attrgetter("end_time_unix_nano")


def _arrival_type() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="podtrail/arrival.proto", package="podtrail.arrival", syntax="proto3"
    )
    file.message_type.add(name="Request").field.add(
        name="arrival",
        number=FIELD_NUMBER,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_FIXED64,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("podtrail.arrival.Request"))


_ARRIVAL = _arrival_type()


def read_arrival(request: bytes) -> int | None:
    """Return the arrival that a serialized request carries, Unix nanoseconds; None when it carries none.

    Raises:
        DecodeError: the request is malformed.
    """
    if _TAG not in request:
        return None
    if _ends_with_arrival(request):
        return int.from_bytes(request[-_SIZE:], "little") or None
    return _ARRIVAL.FromString(request).arrival or None


def _ends_with_arrival(request: bytes) -> bool:
    """Say whether a request is resources and then its arrival, as it is mostly written: they are stepped over."""
    end = len(request) - _SIZE - len(_TAG)
    if request[end : end + len(_TAG)] != _TAG:
        return False
    at = 0
    for _ in range(_MOST_STEPS):
        if at >= end:
            return at == end
        if request[at] != _RESOURCE_SPANS:
            return False
        length = shift = 0
        for byte in request[at + 1 : at + 1 + _LONGEST_LENGTH]:
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        else:
            return False
        at += 1 + shift // 7 + length
    return False


def with_arrival(request: bytes, arrival: int) -> bytes:
    """Return a serialized request that carries this arrival (Unix nanoseconds), the last thing in it.

    Raises:
        DecodeError: the request is malformed.
    """
    return without_arrival(request) + cast("bytes", _ARRIVAL(arrival=arrival).SerializeToString())


def without_arrival(request: bytes) -> bytes:
    """Return a serialized request as it came, byte for byte if it carries an arrival at its end or none.

    Raises:
        DecodeError: the request is malformed.
    """
    if read_arrival(request) is None:
        return request
    message = _ARRIVAL.FromString(request)
    message.ClearField("arrival")
    stripped: bytes = message.SerializeToString()
    return stripped


def read_arrival_json(line: bytes) -> int | None:
    """Return the arrival (Unix nanoseconds) that a request in OTLP JSON carries at its top level, None without one.

    The line must be valid JSON.
    """
    found = list(_IN_JSON.finditer(line))
    if not found:
        return None
    if len(found) == 1:
        only = found[0]
        first = line[: only.start()].strip() == b"{"
        last = only[2] == b"}" and not line[only.end() :].strip()
        if first or last:
            return int(only[1]) or None
    request = json.loads(line)
    return int(request[KEY]) or None if KEY in request else None


def with_arrival_json(line: bytes, arrival: int) -> bytes:
    """Return a request in OTLP JSON, which carried no arrival, with this one (Unix nanoseconds) at its end."""
    head = line.rstrip().removesuffix(b"}").rstrip()
    comma = b"" if head == b"{" else b","
    return b'%b%b"%b":"%d"}' % (head, comma, KEY.encode(), arrival)


def latest_end(groups: Iterable[Group]) -> int:
    """Return the latest end time of any span, Unix nanoseconds; 0 when none has one that is possible."""
    return max((end for group in groups for end in map(_end_of, _read_ends(group.spans)) if end <= _LATEST), default=0)
