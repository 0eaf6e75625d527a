"""Many small requests read as one: what comes as messages of a few spans costs little more than what comes in bulk.

Reading a request costs some 20 microseconds before its first span. Messages of a sender begin alike, with its resource
and its scope; the spans behind that are put together to one request under the same resource and scope, which is read,
and what it held is told apart again by how long the spans of each were. Whatever is built otherwise, or is not read as
it was written to the byte, is read alone.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from podtrail.otlp.group import Group
from podtrail.otlp.request import Intake, MalformedRequest, read_in_python, read_natively, read_request, write_request

_FIRST, _SECOND = 0x0A, 0x12
"""Tags of the fields 1 and 2: a resource or scope, and what is in it."""
_MORE: Final = 0x80
_MOST_BYTES: Final = 1 << 19
"""Of requests that are read as one."""
_SMALL: Final = 1 << 15
"""Bytes of a request up to which it is worth it."""


class _Spans(NamedTuple):
    """What is behind resource and scope in a request that has one of each."""

    number: int
    """The request's, among those that were given."""
    raw: bytes


_Headers = tuple[bytes, bytes]
"""The resource and the scope of a request, with tag and length each."""


def read_requests(raws: Sequence[bytes]) -> list[Intake | MalformedRequest]:
    """Return what each of these requests held, as `read_request` tells it, or why it can't be told.

    What `podtrail-native` reads is read alone, for it has no such beginning; the rest as `read_alike` does.
    """
    found = [*map(read_natively, raws)]
    rest = iter(read_alike([raw for raw, known in zip(raws, found, strict=True) if known is None]))
    return [known or next(rest) for known in found]


def read_alike(raws: Sequence[bytes]) -> list[Intake | MalformedRequest]:
    """Return what each of these requests held, or why it can't be told; those that begin alike are read as one.

    How many spans tell no duration is told with one of the requests that were read together.
    """
    found: list[Intake | MalformedRequest | None] = [None] * len(raws)
    for headers, of_headers in _alike(raws).items():
        for together in _runs(of_headers):
            if len(together) > 1:
                for number, intake in _read_together(headers, together):
                    found[number] = intake
    return [_read_alone(raw) if intake is None else intake for raw, intake in zip(raws, found, strict=True)]


def _read_alone(raw: bytes) -> Intake | MalformedRequest:
    try:
        return read_in_python(raw)
    except MalformedRequest as error:
        return error


def _alike(raws: Sequence[bytes]) -> dict[_Headers, list[_Spans]]:
    """Return the requests that have one resource and one scope, by these."""
    alike: defaultdict[_Headers, list[_Spans]] = defaultdict(list)
    for number, raw in enumerate(raws):
        if len(raw) > _SMALL:
            continue
        try:
            parted = _parted(raw)
        except IndexError:  # it ends before a number does
            continue
        if parted is not None:
            alike[parted[0]].append(_Spans(number, parted[1]))
    return alike


def _parted(raw: bytes) -> tuple[_Headers, bytes] | None:
    """Return a request's resource, scope and spans; None when there is anything else in it.

    IndexError when it is cut off.
    """
    end = len(raw)
    resource_at = _inside(raw, 0, _FIRST, end)
    if not resource_at:
        return None
    spans_of_resource = _behind(raw, resource_at)
    scope_at = _inside(raw, spans_of_resource, _SECOND, end) if spans_of_resource else 0
    if not scope_at:
        return None
    spans_at = _behind(raw, scope_at)
    if not spans_at or raw[spans_at] != _SECOND:
        return None
    return (raw[resource_at:spans_of_resource], raw[scope_at:spans_at]), raw[spans_at:]


def _inside(raw: bytes, at: int, tag: int, end: int) -> int:
    """Return where a field begins inside that reaches from `at` to `end`; 0 when there is another."""
    if raw[at] != tag:
        return 0
    length, inside = _number(raw, at + 1)
    return inside if inside + length == end else 0


def _behind(raw: bytes, at: int) -> int:
    """Return where the first field of a message ends; 0 when that is another."""
    if raw[at] != _FIRST:
        return 0
    length, inside = _number(raw, at + 1)
    return inside + length


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """Return a varint of up to three bytes, and where it ends; a longer one is too long for a small request."""
    low = raw[at]
    if low < _MORE:
        return low, at + 1
    middle = raw[at + 1]
    if middle < _MORE:
        return (low & 0x7F) | middle << 7, at + 2
    return (low & 0x7F) | (middle & 0x7F) << 7 | raw[at + 2] << 14, at + 3


def _runs(requests: Sequence[_Spans]) -> Iterator[list[_Spans]]:
    """Yield requests that can be read as one: neighbours that begin with the same trace can't be told apart then."""
    run: list[_Spans] = []
    size, before = 0, b""
    for request in requests:
        trace = _first_ids(request.raw)
        if run and (trace == before or size > _MOST_BYTES):
            yield run
            run, size = [], 0
        run.append(request)
        size += len(request.raw)
        before = trace
    if run:
        yield run


def _first_ids(spans: bytes) -> bytes:
    _, at = _number(spans, 1)
    return spans[at : at + 18]


def _read_together(headers: _Headers, requests: Sequence[_Spans]) -> Iterator[tuple[int, Intake]]:
    """Yield what each request held, by its number; nothing of those that can't be told apart."""
    resource, scope = headers
    whole = Group(resource, scope, b"", b"".join([request.raw for request in requests]), 0)
    try:
        read = read_request(write_request((whole,)))
    except MalformedRequest:
        return
    groups = read.groups
    if read.rejected or not groups or groups[0].resource != resource or groups[0].scope != scope:
        return
    at, odd_times = 0, read.odd_times
    for number, raw in requests:
        first, left = at, len(raw)
        while left > 0 and at < len(groups):
            left -= len(groups[at].spans)
            at += 1
        if left:
            return
        yield number, Intake(groups[first:at], 0, "", odd_times)
        odd_times = 0
