"""Finds the objects that stand in the arrays of a JSON document, without holding more than one of them."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from podtrail.recording.splitting.splitter import LARGEST

_BETWEEN = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
"""What stands between the signs of containers: whole strings, and what is neither."""
_INSIDE_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_QUOTE = ord('"')
_DEEPEST = 64
"""Containers around an element. Documents with traces have three at most."""


class Element(NamedTuple):
    """An object in an array, and its first byte's number in the document."""

    number: int
    raw: bytes
    size: int
    """More than `raw` has when the object is too large to be held."""


class TooDeep(ValueError):
    """The JSON is nested deeper than any document of traces."""


class ElementScanner:
    """Takes a document in pieces; the outermost objects that stand in an array come out, each as its own bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._offset = 0
        """Of the buffer's first byte."""
        self._at = 0
        self._in_string = False
        self._around = bytearray()
        """The containers that are open around elements, outermost first."""
        self._depth = 0
        """Containers that are open in the element that is begun, itself included; 0: none is begun."""
        self._begin = 0
        """Where that element begins in the document."""

    @property
    def begun(self) -> int | None:
        """Where the element or document begins that has not ended yet; None when all is closed."""
        if self._depth:
            return self._begin
        return 0 if self._around or self._in_string else None

    def feed(self, data: bytes) -> Iterator[Element]:
        """Take more bytes; yield the elements that end in them.

        Raises:
            TooDeep: this can't be a document of traces.
        """
        self._buffer += data
        while self._out_of_string():
            between = _BETWEEN.match(self._buffer, self._at)
            assert between is not None, "matches nothing at least"
            self._at = between.end()
            if self._at == len(self._buffer):
                break
            sign = self._buffer[self._at]
            self._at += 1
            if sign == _QUOTE:
                self._in_string = True
            elif element := self._container(sign):
                yield element
        self._forget()

    def _out_of_string(self) -> bool:
        """Skip the rest of a string that has begun; say whether it has ended."""
        if self._in_string:
            rest = _INSIDE_STRING.match(self._buffer, self._at)
            assert rest is not None, "matches nothing at least"
            self._at = rest.end()
            if self._buffer[self._at : self._at + 1] == b'"':
                self._at += 1
                self._in_string = False
        return not self._in_string

    def _container(self, sign: int) -> Element | None:
        opens = sign in b"{["
        if self._depth:
            self._depth += 1 if opens else -1
            return None if self._depth else self._ended()
        if sign == ord("{") and self._around.endswith(b"["):
            self._depth = 1
            self._begin = self._offset + self._at - 1
        elif opens:
            if len(self._around) >= _DEEPEST:
                raise TooDeep(f"containers nested {_DEEPEST} deep and no trace in them")
            self._around.append(sign)
        elif self._around:
            self._around.pop()
        return None

    def _ended(self) -> Element:
        size = self._offset + self._at - self._begin
        raw = bytes(self._buffer[self._at - size : self._at]) if size <= LARGEST else b""
        return Element(self._begin, raw, size)

    def _forget(self) -> None:
        """Let go of what is behind; of an element that is too large, too."""
        keep = self._at
        if self._depth and self._offset + self._at - self._begin <= LARGEST:
            keep = self._begin - self._offset
        del self._buffer[:keep]
        self._offset += keep
        self._at -= keep
