"""Finds the objects in JSON that is written over several lines, as jq, kubectl, gcloud, aws and journalctl do."""

import re
from typing import Final

_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:\s*\[)?|[][{}]')
_LISTS: Final = frozenset(
    (b"items", b"events", b"logEvents", b"records", b"entries", b"result", b"results", b"hits", b"value", b"logs")
)
"""Keys of the lists whose elements are read one by one."""
_LINE = re.compile(rb'\s*(?:[{}\[\]",]|(?:-?[\d.eE+-]+|true|false|null),?\s*$|$)')
"""The beginning of a line of such JSON."""
_OUTERMOST: Final = 2


class JsonDocuments:
    """Returns whole documents, or each element of the list in one, so that memory holds one element."""

    def __init__(self, longest: int) -> None:
        """`longest` is the size in bytes up to which an object is kept."""
        self._longest = longest
        self._stack = bytearray()
        self._buffer: list[bytes] = []
        self._size = 0
        self._element = 0
        """Brackets that are open around the elements; 0 outside a list."""
        self._lines = 0
        self._yielded = False

    @property
    def open(self) -> bool:
        """Whether a document has begun that is not complete."""
        return bool(self._stack)

    def opens(self, line: bytes) -> bool:
        """Return True if a document begins with this line and goes on behind it."""
        text = line.strip()
        return text[:1] in (b"{", b"[") and text[-1:] in (b"{", b"[", b",")

    def takes(self, line: bytes) -> bool:
        """Return True if a line may belong to the open document."""
        return _LINE.match(line) is not None

    def abandon(self) -> int:
        """Forget the open document; return how many lines of it were read."""
        lines, self._lines = self._lines, 0
        self._stack.clear()
        self._buffer.clear()
        self._size = self._element = 0
        self._yielded = False
        return lines

    def take(self, line: bytes) -> list[bytes]:
        """Return the objects that a line completes."""
        found: list[bytes] = []
        self._lines += 1
        start = 0
        for token in _TOKEN.finditer(line):
            text = token[0]
            if text[:1] == b'"' and not token[2]:
                continue
            if text[-1:] in (b"{", b"["):
                if text == b"{" and self._element == len(self._stack) and self._element:
                    self._buffer, self._size, start = [], 0, token.start()
                self._stack += text[-1:]
                if text[-1:] == b"[" and not self._element and self._is_list(token[1]):
                    self._element = len(self._stack)
                continue
            if self._stack:
                self._stack.pop()
            if self._element and len(self._stack) < self._element:
                self._element = 0
            complete = len(self._stack) == self._element if self._element else not self._stack
            if text == b"]" and not self._stack and not self._yielded:  # a list of texts
                self._keep(line[start : token.end()])
                found.append(b"\n".join(self._buffer) if self._size <= self._longest else b"{}")
                start, self._lines = token.end(), 0
            if complete and text == b"}":
                self._keep(line[start : token.end()])
                if not (self._yielded and not self._stack):  # the rest of a list's document
                    found.append(b"\n".join(self._buffer) if self._size <= self._longest else b"{}")
                self._yielded = bool(self._stack)
                self._buffer, self._size, start = [], 0, token.end()
                self._lines = 0
        if self._stack:
            self._keep(line[start:])
        else:
            self.abandon()
        return found

    def _is_list(self, key: bytes | None) -> bool:
        outer = len(self._stack) - 1
        return not outer or (key in _LISTS and outer <= _OUTERMOST and b"[" not in self._stack[:-1])

    def _keep(self, text: bytes) -> None:
        self._size += len(text)
        if self._size <= self._longest:
            self._buffer.append(text)
