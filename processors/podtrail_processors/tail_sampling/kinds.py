"""Reasons without what changes from one time to the next: numbers, quoted names, the Pod's own names."""

import re
from collections.abc import Collection
from functools import lru_cache

_LONGEST = 500
_QUOTED = re.compile(r'"[^"]*"')
_WORD = re.compile(r"[\w./-]+")
_PIECE = re.compile(r"\w+")


def general(reason: str, own: Collection[str]) -> str:
    """Return a reason in general: what has a digit is `#`, what is quoted or one of `own` names is `…`.

    Only the beginning counts: the first 500 characters.
    """
    reason = reason[:_LONGEST]
    if any(name and name in reason for name in own):
        reason = _WORD.sub(lambda word: _without(word[0], own), reason)
    return _general(reason)


def _without(word: str, own: Collection[str]) -> str:
    return "…" if word.rstrip(".") in own else "/".join("…" if part in own else part for part in word.split("/"))


@lru_cache(maxsize=1024)
def _general(reason: str) -> str:
    return _PIECE.sub(_number, _QUOTED.sub("…", reason))


def _number(piece: re.Match[str]) -> str:
    return "#" if any(map(str.isdigit, piece[0])) else piece[0]
