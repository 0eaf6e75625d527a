"""The words of a condition."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from podtrail_processors.ottl.values.errors import ConditionError

MOST_CHARACTERS = 16_384

Kind = Literal["bytes", "float", "int", "string", "compare", "sign", "scale", "word", "mark", "end"]


class Token(NamedTuple):
    """A word, a number, a text or a mark, and where it stands."""

    kind: Kind
    text: str
    at: int


_TOKEN = re.compile(
    r"""\s*(?:
    (?P<bytes>0x[0-9A-Fa-f]+)
    |(?P<float>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)
    |(?P<int>[0-9]+)
    |(?P<string>"(?:\\.|[^\\"])*")
    |(?P<compare>==|!=|>=|<=|>|<)
    |(?P<sign>[-+])
    |(?P<scale>[*/])
    |(?P<word>[A-Za-z][A-Za-z0-9_]*)
    |(?P<mark>[=(){}:,.\[\]])
    |(?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_BLANKS = re.compile(r"\A\s+", re.ASCII)
_KINDS: dict[str, Kind] = {
    "bytes": "bytes",
    "float": "float",
    "int": "int",
    "string": "string",
    "compare": "compare",
    "sign": "sign",
    "scale": "scale",
    "word": "word",
    "mark": "mark",
    "end": "end",
}
_ESCAPE = re.compile(
    r"\\(?:x(?P<x>[0-9A-Fa-f]{2})|u(?P<u>[0-9A-Fa-f]{4})|U(?P<U>[0-9A-Fa-f]{8})|(?P<o>[0-7]{3})|(?P<c>[abfnrtv\\\"])"
    r"|(?P<bad>.?))",
    re.DOTALL,
)
_PLAIN = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"'}


def tokens_of(text: str) -> Sequence[Token]:
    """Return the tokens of a condition, an end token last.

    Raises:
        ConditionError: something is no token, or the text is too long.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConditionError(f"longer than {MOST_CHARACTERS} characters", text, 0)
    found: list[Token] = []
    at = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            at += len(text[at:]) - len(_BLANKS.sub("", text[at:]))
            raise ConditionError(f"unexpected {text[at]!r}", text, at)
        kind = match.lastgroup
        found.append(Token(_KINDS[kind], match[kind], match.start(kind)))
        at = match.end()
    return found


def unquoted(token: Token, text: str) -> str:
    r"""Return what a string token says, its escapes read as Go reads them.

    Bytes that are no UTF-8 (`\xff`) become lone surrogates.

    Raises:
        ConditionError: an escape that Go does not know.
    """
    inner = token.text[1:-1]
    if "\n" in inner:
        raise ConditionError("a line break in a string; write \\n", text, token.at + 1 + inner.index("\n"))
    if "\\" not in inner:
        return inner
    out = bytearray()
    at = 0
    for escape in _ESCAPE.finditer(inner):
        out += inner[at : escape.start()].encode("utf-8", "surrogateescape")
        out += _escaped(escape, text, token.at + 1)
        at = escape.end()
    out += inner[at:].encode("utf-8", "surrogateescape")
    return out.decode("utf-8", "surrogateescape")


def _escaped(escape: re.Match[str], text: str, start: int) -> bytes:
    code = escape["u"] or escape["U"]
    if escape["c"]:
        return _PLAIN[escape["c"]].encode()
    if escape["x"] or (escape["o"] and int(escape["o"], 8) < 256):
        return bytes([int(escape["x"], 16) if escape["x"] else int(escape["o"], 8)])
    if code and int(code, 16) <= 0x10FFFF and not 0xD800 <= int(code, 16) < 0xE000:
        return chr(int(code, 16)).encode()
    raise ConditionError(f"unknown escape {escape.group()}; a backslash is written \\\\", text, start + escape.start())
