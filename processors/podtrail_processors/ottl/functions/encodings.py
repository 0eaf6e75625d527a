"""Hashes, base64 and other encodings of text."""

import binascii
import codecs
import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping

from podtrail_processors.ottl.functions.murmur3 import murmur3_32, murmur3_128
from podtrail_processors.ottl.functions.parameters import Function, Parameter, anything, text
from podtrail_processors.ottl.functions.texts import encoded
from podtrail_processors.ottl.values.errors import EvaluationError
from podtrail_processors.ottl.values.types import kind_of, wrapped

_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
_TO_URL, _FROM_URL = bytes.maketrans(b"+/", b"-_"), bytes.maketrans(b"-_+/", b"+/!!")
_BASE64 = ("base64", "base64-raw", "base64-url", "base64-raw-url")


def _digest(algorithm: str) -> Callable[[str], str]:
    def digest(value: str) -> str:
        return hashlib.new(algorithm, encoded(value), usedforsecurity=False).hexdigest()

    return digest


def _fnv(value: str) -> int | str:
    if not value:
        return ""
    found = _FNV_OFFSET
    for byte in encoded(value):
        found = (found ^ byte) * _FNV_PRIME % 2**64
    return wrapped(found)


def _murmur3_128(value: str) -> str:
    first, second = murmur3_128(encoded(value))
    return (first.to_bytes(8, "little") + second.to_bytes(8, "little")).hex()


def _to_base64(value: str, variant: str = "base64") -> str:
    if variant not in _BASE64:
        raise EvaluationError(f"no encoding {variant!r}")
    found = b64encode(encoded(value))
    if "url" in variant:
        found = found.translate(_TO_URL)
    return (found.rstrip(b"=") if "raw" in variant else found).decode()


def _from_base64(raw: bytes, variant: str) -> bytes:
    bare = raw.strip().replace(b"\r", b"").replace(b"\n", b"")
    if "url" in variant:
        bare = bare.translate(_FROM_URL)
    if "raw" in variant:
        bare = b"!" if b"=" in bare else bare + b"=" * (-len(bare) % 4)
    try:
        return b64decode(bare, validate=True)
    except binascii.Error as error:
        raise EvaluationError(f"no base64: {error}") from None


def _decode(value: object, encoding: str) -> str:
    if not isinstance(value, str | bytes):
        raise EvaluationError(f"{kind_of(value)} can't be decoded")
    raw = encoded(value) if isinstance(value, str) else value
    if encoding in _BASE64:
        return _from_base64(raw, encoding).decode("utf-8", "surrogateescape")
    try:
        return raw.decode(_codec(encoding), "replace")
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _codec(encoding: str) -> str:
    try:
        found = codecs.lookup(encoding)
        "".encode(found.name)  # fails for codecs that are not of text
    except LookupError:
        raise ValueError(f"unknown encoding {encoding!r}") from None
    return found.name


def _check_encoding(constants: Mapping[str, object]) -> None:
    encoding = constants.get("encoding")
    if isinstance(encoding, str) and encoding not in _BASE64:
        _codec(encoding)


_VALUE = (Parameter("value", text),)

FUNCTIONS = (
    Function("Base64Decode", _VALUE, lambda value: _decode(value, "base64")),
    Function("Base64Encode", (*_VALUE, Parameter("variant", text, True)), _to_base64),
    Function("Decode", (Parameter("value", anything), Parameter("encoding", text)), _decode, _check_encoding),
    Function("FNV", _VALUE, _fnv),
    Function("MD5", _VALUE, _digest("md5")),
    Function("Murmur3Hash", _VALUE, lambda value: murmur3_32(encoded(value)).to_bytes(4, "little").hex()),
    Function("Murmur3Hash128", _VALUE, _murmur3_128),
    Function("SHA1", _VALUE, _digest("sha1")),
    Function("SHA256", _VALUE, _digest("sha256")),
    Function("SHA512", _VALUE, _digest("sha512")),
)
"""Hashes, base64 and other encodings of text."""
