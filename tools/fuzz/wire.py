"""Changes in protobuf that leave it protobuf: fields are dropped, doubled, moved and altered, lengths follow."""

from random import Random
from typing import NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NUMBERS = (0, 1, 2, 127, 128, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
_LARGEST_TAG = 2**32


class _Field(NamedTuple):
    tag: int
    value: bytes
    """As it stands behind the tag; of bytes without their length."""


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def framed(number: int, value: bytes) -> bytes:
    """Return a field of bytes."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


def mutate_message(raw: bytes, random: Random) -> bytes:
    """Return a message with one thing changed, at any depth."""
    fields = _fields(raw)
    if not fields:
        return raw + framed(random.randint(1, 16), random.randbytes(random.randint(0, 20)))
    at = random.randrange(len(fields))
    chosen = fields[at]
    inside = chosen.tag & 7 == _BYTES and _fields(chosen.value)
    match random.randrange(12 if inside else 6):
        case 0:
            del fields[at]
        case 1:
            fields.insert(random.randrange(len(fields) + 1), chosen)
        case 2:
            random.shuffle(fields)
        case 3:
            fields[at] = chosen._replace(tag=random.randint(1, 20) << 3 | chosen.tag & 7)
        case 4 | 5:
            fields[at] = chosen._replace(value=_altered(chosen, random))
        case _:
            fields[at] = chosen._replace(value=mutate_message(chosen.value, random))
    return b"".join(map(_written, fields))


def _altered(field: _Field, random: Random) -> bytes:
    number = random.choice((*_NUMBERS, random.getrandbits(64)))
    match field.tag & 7:
        case kind if kind == _VARINT:
            return varint(number) if random.random() < 0.8 else varint(number)[:-1] + b"\x80\x00"
        case kind if kind == _FIXED64:
            return number.to_bytes(8, "little")
        case kind if kind == _FIXED32:
            return number.to_bytes(8, "little")[:4]
    value = bytearray(field.value)
    match random.randrange(5):
        case 0:
            return bytes(value[: random.randrange(len(value) + 1)])
        case 1:
            return bytes(len(value))
        case 2:
            return bytes(value) + random.randbytes(random.randint(1, 9))
        case 3:
            return random.choice((b"", b"\xff", b"\xc3\x28", "é\U0001f600".encode(), bytes(16), random.randbytes(16)))
    for _ in range(min(len(value), random.randint(1, 3))):
        value[random.randrange(len(value))] = random.randrange(256)
    return bytes(value)


def _written(field: _Field) -> bytes:
    return varint(field.tag) + (varint(len(field.value)) if field.tag & 7 == _BYTES else b"") + field.value


def _fields(raw: bytes) -> list[_Field]:
    """Return the fields of a message; none when it is no message."""
    fields: list[_Field] = []
    at = 0
    while at < len(raw):
        tag, at = _read_varint(raw, at)
        begin, size = at, 0
        match tag & 7:
            case kind if kind == _VARINT:
                size = _read_varint(raw, at)[1] - at
            case kind if kind == _FIXED64:
                size = 8
            case kind if kind == _BYTES:
                size, begin = _read_varint(raw, at)
            case kind if kind == _FIXED32:
                size = 4
            case _:
                return []
        if not 8 <= tag < _LARGEST_TAG or begin + size > len(raw):
            return []
        fields.append(_Field(tag, raw[begin : begin + size]))
        at = begin + size
    return fields


def _read_varint(raw: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends; behind the message when it doesn't."""
    number = shift = 0
    for byte in raw[at : at + 10]:
        number |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            return number, at
    return 0, len(raw) + 1
