"""Finds what few spans have by a search through their bytes, without parting or decoding the others.

What every encoder writes is found: fields in the order of their numbers, a span with its trace id first, lengths in as
few bytes as it takes. So a byte sequence that is there inside a text is taken for what it looks like; use this where
that does no harm.
"""

import re
from collections.abc import Collection, Sequence
from typing import Final

from podtrail.otlp import native
from podtrail.otlp.edit import append_attributes, append_links, encode_span
from podtrail.otlp.framing import frame, split
from podtrail.otlp.native import find
from podtrail.otlp.span import Link
from podtrail.otlp.values import Value, read_key_value, to_key_values

_ID = b"t" * 16
_LINK: Final = append_links(b"", [Link(_ID, b"s" * 8, {})])
_SPAN: Final = encode_span(trace_id=_ID, span_id=b"s" * 8, name="", start=0, end=0)
_HEAD: Final = _SPAN[: _SPAN.index(_ID)]
_FRAME_TAG: Final = frame([b"x"])[0]
_ATTRIBUTE_TAG: Final = append_attributes(b"", {"k": "v"})[0]
_KEY_TAG: Final = to_key_values({"k": "v"})[0].SerializeToString()[0]
_LONGEST_PREFIX: Final = 4
_ONE_BYTE: Final = 0x80

LINK_MARK: Final = re.compile(re.escape(_LINK[:1]) + rb".{1,3}" + re.escape(_LINK[2:4]), re.DOTALL)
"""How a link begins: a byte, its length, then the trace id. There by chance it costs a closer look."""

LINKED_TRACE: Final = re.compile(LINK_MARK.pattern + rb"(.{16})" + re.escape(_LINK[20:22]), re.DOTALL)
"""A link as far as its span's id; the group is the id of the trace that it links to."""

_TARGET_HEAD: Final = _LINK[2:4]
_TARGET_END: Final = len(_TARGET_HEAD) + len(_ID)


def linked_traces(spans: bytes, most: int) -> Sequence[bytes]:
    """Return the ids of at most `most` traces that framed spans link to, as `LINKED_TRACE` finds them."""
    found = native.linked_traces(spans, most)
    return LINKED_TRACE.findall(spans)[:most] if found is None else found


def link_targets(links: Sequence[bytes], most: int) -> Sequence[bytes]:
    """Return the ids of the traces that these links (Link messages), but at most `most` of them, lead to."""
    return [link[2:_TARGET_END] for link in links[:most] if link.startswith(_TARGET_HEAD)]


def key_value(key: str, value: Value) -> bytes:
    """Return an attribute as `AttributeSearch` finds it."""
    return to_key_values({key: value})[0].SerializeToString()


class AttributeSearch:
    """Finds a span's attributes of one key, each a KeyValue message of less than 128 bytes."""

    def __init__(self, key: str) -> None:
        message = key_value(key, "v")
        self._start = message[: message.index(key.encode()) + len(key.encode())]

    def in_spans(self, spans: bytes, most: int) -> Sequence[bytes]:
        """Return at most `most` of these attributes, which may be equal, of framed spans in their order."""
        start = self._start
        at = find(spans, start)
        if at < 0:
            return ()
        found: list[bytes] = []
        while at >= 0 and len(found) < most:
            length = spans[at - 1]
            if length < _ONE_BYTE and spans[at - 2] == _ATTRIBUTE_TAG and at > 1:
                found.append(spans[at : at + length])
            at = find(spans, start, at + (length or 1))
        return found


def spans_with(mark: bytes, spans: bytes, trace_id: bytes, most: int) -> Sequence[bytes]:
    """Return at most `most` spans of a trace in which a mark stands; framed, in order."""
    found: list[bytes] = []
    head = _HEAD + trace_id
    position = find(spans, mark)
    while position >= 0 and len(found) < most:
        begin, end = _frame_around(spans, head, position)
        if not end:
            return [frame([raw]) for raw in split(spans) if mark in raw][:most]
        found.append(spans[begin:end])
        position = find(spans, mark, end)
    return found


def _frame_around(spans: bytes, head: bytes, position: int) -> tuple[int, int]:
    """Return where the framed span around a position begins and ends; (0, 0) where that can't be told at a glance."""
    start = spans.rfind(head, 0, position)
    for prefix in range(1, _LONGEST_PREFIX + 1):
        begin = start - prefix - 1
        if begin < 0:
            break
        if spans[begin] == _FRAME_TAG:
            end = start + _length(spans[start - prefix : start])
            if position < end and (end == len(spans) or (end < len(spans) and spans[end] == _FRAME_TAG)):
                return begin, end
    return 0, 0


def _length(varint: bytes) -> int:
    """Return the number of a varint that takes all these bytes; a negative one for bytes that are none."""
    if varint[-1] >= _ONE_BYTE or (len(varint) > 1 and min(varint[:-1]) < _ONE_BYTE):
        return -(1 << 62)
    length = 0
    for at, byte in enumerate(varint):
        length |= (byte & 0x7F) << 7 * at
    return length


def attributes_among(pairs: Sequence[bytes], keys: Collection[bytes]) -> dict[str, Value]:
    """Return those attributes (KeyValue messages) that have one of these keys of less than 128 bytes."""
    found: dict[str, Value] = {}
    for pair in pairs:
        if len(pair) > 2 and (pair[2 : 2 + pair[1]] in keys or pair[0] != _KEY_TAG):
            key, value = read_key_value(pair)
            if key not in found and key.encode() in keys:
                found[key] = value
    return found
