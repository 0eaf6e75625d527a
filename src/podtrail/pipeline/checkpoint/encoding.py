"""Plain values as bytes and back. Reading runs no code and takes memory and time in proportion to the bytes.

Values are written column by column: of many rows of the same width all first fields, then all second ones. So numbers
and spans are copied by a few calls, however many they are. A column is one letter, then:

    E           nothing: it has no values
    N           a zero for each None
    ?           a byte for each bool
    b h i q     whole numbers of 1, 2, 4 and 8 bytes, with their sign
    I           larger ones, of any size up to 1024 bytes: as bytes in a column
    d           doubles
    B S         bytes and texts: a column of lengths, the size of all (8 bytes), all of them joined (texts in UTF-8)
    =           bytes or texts that repeat: how many differ (4 bytes), a column of these, a column of places in it
    T           rows: their width (4 bytes), a column for each field
    L           sequences: a column of lengths, a column of all that is in them
    M           dicts: a column of lengths, a column of all keys, a column of all values
    U           values of several kinds: how many kinds (1 byte), a byte for each value, a column for each kind but None

Numbers are little-endian. A single value is a column of one.
"""

import sys
from array import array
from collections.abc import Mapping, Sequence
from itertools import accumulate, chain, pairwise
from struct import Struct
from struct import error as struct_error
from typing import Any, Final

from podtrail.state import StateError

_COUNT: Final = Struct("<I")
_SIZE: Final = Struct("<Q")
_WIDEST: Final = 64
"""Fields of a row; what is longer is a sequence."""
_DEEPEST: Final = 40
_LARGEST_NUMBER: Final = 1024
_FEW: Final = 8
_WHOLE: Final = (("b", 1 << 7), ("h", 1 << 15), ("i", 1 << 31), ("q", 1 << 63))
_KINDS: Final[tuple[tuple[type[Any], str], ...]] = (
    *((type(None), "N"), (bool, "?"), (int, "i"), (float, "d"), (str, "S")),
    *((bytes, "B"), (tuple, "L"), (list, "L"), (Mapping, "M")),
)
_SURROGATES: Final = "surrogatepass"


def pack(value: Any) -> list[bytes]:
    """Return a plain value in bytes, in pieces.

    Raises:
        StateError: it is none.
    """
    packer = _Packer()
    packer.column([value], 0)
    return packer.pieces


def unpack(data: bytes) -> Any:
    """Return the plain value that `pack` has written.

    Raises:
        StateError: it is damaged.
    """
    reader = _Unpacker(data)
    try:
        (value,) = reader.column(1, 0)
    except (struct_error, UnicodeDecodeError) as error:
        raise StateError(f"it is damaged: {error}") from None
    if reader.at != len(data):
        raise StateError("it is damaged: something follows its end")
    return value


class _Packer:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._kinds: dict[type, str] = {kind: letter for kind, letter in _KINDS if kind is not Mapping}

    def _kind(self, kind: type) -> str:
        found = self._kinds.get(kind)
        if found is None:
            found = next((letter for base, letter in _KINDS if issubclass(kind, base)), "")
            if not found:
                raise StateError(f"a {kind.__module__}.{kind.__qualname__} is no plain value")
            self._kinds[kind] = found
        return found

    def column(self, values: Sequence[Any], depth: int) -> None:
        if not values:
            self.pieces.append(b"E")
            return
        if depth > _DEEPEST:
            raise StateError("it is too deep")
        kinds = {self._kind(kind) for kind in set(map(type, values))}
        if len(kinds) > 1:
            self._union(values, sorted(kinds), depth)
            return
        match kinds.pop():
            case "N":
                self.pieces += (b"N", bytes(len(values)))
            case "?":
                self.pieces += (b"?", bytes(values))
            case "i":
                self._whole(values, depth)
            case "d":
                self.pieces += (b"d", _written(array("d", values)))
            case "B" | "S" as kind:
                self._texts(kind, values, depth)
            case "L":
                self._sequences(values, depth)
            case _:
                self.pieces.append(b"M")
                self.column([*map(len, values)], depth + 1)
                self._keys([*chain.from_iterable(values)], depth + 1)
                self.column([*chain.from_iterable([one.values() for one in values])], depth + 1)

    def _keys(self, keys: Sequence[Any], depth: int) -> None:
        if any(self._kind(kind) != "S" for kind in set(map(type, keys))):
            raise StateError("a dict has keys that are no str")
        self.column(keys, depth)

    def _union(self, values: Sequence[Any], kinds: list[str], depth: int) -> None:
        number = {kind: at for at, kind in enumerate(kinds)}
        numbers = {kind: number[self._kind(kind)] for kind in set(map(type, values))}
        of_each = bytes([numbers[type(value)] for value in values])
        self.pieces += (b"U", bytes([len(kinds)]), of_each)
        for at, kind in enumerate(kinds):
            if kind == "N":
                self.pieces.append(b"N")
            else:
                self.column([value for value, its in zip(values, of_each, strict=True) if its == at], depth + 1)

    def _whole(self, values: Sequence[int], depth: int) -> None:
        least, most = min(values), max(values)
        for code, bound in _WHOLE:
            if -bound <= least and most < bound:
                self.pieces += (code.encode(), _written(array(code, values)))
                return
        if max(most.bit_length(), least.bit_length()) >= 8 * _LARGEST_NUMBER:
            raise StateError("a number is too large")
        self.pieces.append(b"I")
        self.column([value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True) for value in values], depth + 1)

    def _texts(self, kind: str, values: Sequence[Any], depth: int) -> None:
        if len(values) >= _FEW and 2 * len(ids := dict.fromkeys(map(id, values))) <= len(values):
            # Equal ones of several hundred traces are mostly one object: to compare the others would take longer.
            place = {one: at for at, one in enumerate(ids)}
            several = {id(value): value for value in values}
            self.pieces += (b"=", _COUNT.pack(len(ids)))
            self.column([several[one] for one in ids], depth + 1)
            self.column([place[id(value)] for value in values], depth + 1)
            return
        self.pieces.append(kind.encode())
        self.column([*map(len, values)], depth + 1)
        joined = b"".join(values) if kind == "B" else "".join(values).encode(errors=_SURROGATES)
        self.pieces += (_SIZE.pack(len(joined)), joined)

    def _sequences(self, values: Sequence[Sequence[Any]], depth: int) -> None:
        widths = {*map(len, values)}
        if len(widths) == 1 and 0 < (width := widths.pop()) <= _WIDEST:
            self.pieces += (b"T", _COUNT.pack(width))
            for column in zip(*values, strict=True):
                self.column(column, depth + 1)
            return
        self.pieces.append(b"L")
        self.column([*map(len, values)], depth + 1)
        self.column([*chain.from_iterable(values)], depth + 1)


class _Unpacker:
    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data
        self._view = memoryview(data)

    def _take(self, size: int) -> memoryview:
        begin, self.at = self.at, self.at + size
        if size < 0 or self.at > len(self._data):
            raise StateError("it is damaged: it ends too early")
        return self._view[begin : self.at]

    def column(self, count: int, depth: int) -> Sequence[Any]:
        if depth > _DEEPEST:
            raise StateError("it is damaged: it is too deep")
        letter = chr(self._take(1)[0])
        if letter == "E":
            if count:
                raise StateError("it is damaged: a column is empty")
            return ()
        # Every value takes a byte or more: no few bytes ask for much.
        if not 0 < count <= len(self._data) - self.at:
            raise StateError("it is damaged: a column is too short")
        match letter:
            case "N":
                self._take(count)
                return [None] * count
            case "?":
                return [*map(bool, self._take(count))]
            case "b" | "h" | "i" | "q" | "d":
                return _numbers(letter, count, self._take)
            case "I":
                return [
                    int.from_bytes(self._short(one), "little", signed=True) for one in self._of(count, depth, bytes)
                ]
            case "B" | "S":
                return self._texts(letter, count, depth)
            case "=":
                return self._repeated(count, depth)
            case "T":
                (width,) = _COUNT.unpack(self._take(_COUNT.size))
                if not 0 < width <= _WIDEST:
                    raise StateError("it is damaged: a row has no width")
                return [*zip(*[self.column(count, depth + 1) for _ in range(width)], strict=True)]
            case "L":
                bounds = self._bounds(count, depth)
                whole = self.column(bounds[-1], depth + 1)
                return [tuple(whole[begin:end]) for begin, end in pairwise(bounds)]
            case "M":
                bounds = self._bounds(count, depth)
                keys = self._of(bounds[-1], depth, str)
                values = self.column(bounds[-1], depth + 1)
                return [dict(zip(keys[a:b], values[a:b], strict=True)) for a, b in pairwise(bounds)]
            case "U":
                return self._union(count, depth)
        raise StateError(f"it is damaged: there is no kind {letter!r}")

    def _of(self, count: int, depth: int, kind: type) -> Sequence[Any]:
        found = self.column(count, depth + 1)
        if any(type(one) is not kind for one in found):
            raise StateError(f"it is damaged: what must be {kind.__name__} is not")
        return found

    @staticmethod
    def _short(number: bytes) -> bytes:
        if len(number) > _LARGEST_NUMBER:
            raise StateError("it is damaged: a number is too large")
        return number

    def _bounds(self, count: int, depth: int) -> Sequence[int]:
        lengths = self._of(count, depth, int)
        if min(lengths) < 0 or max(lengths) > len(self._data):
            raise StateError("it is damaged: a length is impossible")
        return [0, *accumulate(lengths)]

    def _texts(self, letter: str, count: int, depth: int) -> Sequence[Any]:
        bounds = self._bounds(count, depth)
        (size,) = _SIZE.unpack(self._take(_SIZE.size))
        whole: Any = bytes(self._take(size))
        if letter == "S":
            whole = whole.decode(errors=_SURROGATES)
        if bounds[-1] != len(whole):
            raise StateError("it is damaged: lengths do not add up")
        return [whole[begin:end] for begin, end in pairwise(bounds)]

    def _repeated(self, count: int, depth: int) -> Sequence[Any]:
        (several,) = _COUNT.unpack(self._take(_COUNT.size))
        values = self.column(several, depth + 1)
        # Of nothing else: sequences of sequences that repeat would grow with their depth.
        if any(type(value) not in (bytes, str) for value in values):
            raise StateError("it is damaged: what repeats is no text")
        places = self._of(count, depth, int)
        if min(places) < 0 or max(places) >= len(values):
            raise StateError("it is damaged: a place is impossible")
        return [values[place] for place in places]

    def _union(self, count: int, depth: int) -> Sequence[Any]:
        (several,) = self._take(1)
        of_each = bytes(self._take(count))
        if max(of_each) >= several:
            raise StateError("it is damaged: there is no such kind")
        columns = []
        for at in range(several):
            many = of_each.count(at)
            if self._data[self.at : self.at + 1] == b"N":
                self.at += 1
                columns.append(iter([None] * many))
            else:
                columns.append(iter(self.column(many, depth + 1)))
        return [next(columns[at]) for at in of_each]


def _written(numbers: "array[Any]") -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _numbers(code: str, count: int, take: Any) -> Sequence[Any]:
    numbers = array(code)
    numbers.frombytes(take(count * numbers.itemsize))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tolist()
