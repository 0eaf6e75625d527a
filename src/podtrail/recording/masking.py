"""Replaces names, messages, ids and values, the same by the same, so that what belongs together still does.

Replacements are keyed hashes: with the same key the same in every recording, without it nobody can tell what stood
there, not even by trying names.
"""

import re
from functools import lru_cache
from hashlib import blake2b, shake_256
from typing import Final
from uuid import UUID

from podtrail.otlp import Value
from podtrail.recording.vocabulary import IN_WORDS, KEPT, WORDS

_SIGNS: Final = r"""!-/:-@\[-`{-~"""
"""Signs of ASCII; the three that join words may stand within one."""
_WORD: Final = re.compile(rf"[^\s{_SIGNS}]+(?:[.\-_]+[^\s{_SIGNS}]+)*")
_QUANTITY: Final = re.compile(r"[0-9]{1,6}(\.[0-9]{1,3})?(ns|us|µs|ms|s|m|h|k|Ki|M|Mi|G|Gi)?")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX: Final = re.compile(r"[0-9a-fA-F]{16}|[0-9a-fA-F]{32}")
_ADDRESS: Final = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")
_PLUGIN_SPAN: Final = re.compile(r"plugin: [A-Za-z][A-Za-z0-9]*")
_THRESHOLD: Final = re.compile(r"ot=(?:(?:th|rv):[0-9a-f]{1,14};?)+")
_KNOWN_SCHEMA: Final = "https://opentelemetry.io/schemas/"
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_WORD_LENGTH: Final = 10
_LATEST: Final = 2**64 - 1
_REMEMBERED: Final = 1 << 16


class Masking:
    """A `Mask` of `podtrail.otlp.rewriting`."""

    def __init__(self, key: bytes, shift: int = 0) -> None:
        """Replace by this key, which may be of any length; move all times by `shift` nanoseconds."""
        self._key = blake2b(key).digest()
        self._shift = shift
        self._texts = lru_cache(_REMEMBERED)(self._text)

    def trace_id(self, id: bytes) -> bytes:
        """Replace an id of a trace."""
        return self._id(id, 16)

    def span_id(self, id: bytes) -> bytes:
        """Replace an id of a span; no parent stays none."""
        return self._id(id, 8)

    def time(self, time: int) -> int:
        """Move a time, Unix nanoseconds."""
        return min(max(time + self._shift, 1), _LATEST)

    def name(self, name: str) -> str:
        """Replace words that are not known; a plugin's span keeps its name."""
        return name if _PLUGIN_SPAN.fullmatch(name) else self._texts(name, True)

    def trace_state(self, state: str) -> str:
        """Keep what a sampler says of its threshold."""
        return ",".join(member for part in state.split(",") if _THRESHOLD.fullmatch(member := part.strip()))

    def schema_url(self, url: str) -> str:
        """Keep OpenTelemetry's own."""
        return url if url.startswith(_KNOWN_SCHEMA) and len(url) < len(_KNOWN_SCHEMA) + 10 else ""

    def value(self, key: str, value: Value) -> Value:
        """Replace a value as its key asks for."""
        if key in KEPT:
            return value
        return self._value(value, key in IN_WORDS)

    def _value(self, value: Value, in_words: bool) -> Value:
        match value:
            case str():
                return self._texts(value, in_words)
            case bool() | None:
                return value
            case int():
                return value if in_words else self._number(value)
            case float():
                return value if in_words else float(self._number(int(value) if abs(value) < 1 << 53 else 0))
            case bytes():
                return shake_256(self._key + value).digest(len(value))
            case list():
                return [self._value(inner, in_words) for inner in value]
            case dict():
                return {self._texts(key, True): self._value(inner, in_words) for key, inner in value.items()}

    def _text(self, text: str, in_words: bool) -> str:
        return _WORD.sub(lambda found: self._word(found.group(), in_words), text)

    def _word(self, word: str, in_words: bool) -> str:
        if in_words and (word.lower() in WORDS or _QUANTITY.fullmatch(word)):
            return word
        if _HEX.fullmatch(word):
            return self._id(bytes.fromhex(word), len(word) // 2).hex()
        if _UUID.fullmatch(word):
            return str(UUID(bytes=self._hash(b"uuid", word.lower().encode(), 16)))
        if _ADDRESS.fullmatch(word):
            return ".".join(map(str, (240, *self._hash(b"address", word.encode(), 3))))
        if word.isascii() and word.isdecimal():
            return str(self._digits(word)).zfill(len(word))
        number = int.from_bytes(self._hash(b"word", word.encode("utf-8", "surrogatepass"), 7))
        return "".join(_LETTERS[number >> 5 * at & 31] for at in range(_WORD_LENGTH))

    def _number(self, value: int) -> int:
        digits = self._digits(str(abs(value)))
        return -digits if value < 0 else digits

    def _digits(self, digits: str) -> int:
        modulus: int = 10 ** min(len(digits), 18)
        return int.from_bytes(self._hash(b"digits", digits.encode(), 16)) % modulus

    def _id(self, id: bytes, size: int) -> bytes:
        return self._hash(b"id", id, size) if id.strip(b"\0") else id

    def _hash(self, kind: bytes, data: bytes, size: int) -> bytes:
        return blake2b(data, digest_size=size, key=self._key, person=kind).digest()
