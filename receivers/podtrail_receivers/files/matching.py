"""Which files are meant, by the patterns of the Collector's file receivers."""

import fnmatch
import glob
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

_SIGN = re.compile(r"\\.|\[[!^]?\]?[^\]/]*\]|[{},]", re.DOTALL)
"""An escaped character, a class, or what parts alternatives."""
_TOKEN = re.compile(r"/\*\*(?=/|\Z)|\\.|\[[!^]?\]?[^\]/]*\]|.", re.DOTALL)


def matching(include: Iterable[str], exclude: Iterable[str]) -> list[Path]:
    """Return the files that a pattern of `include` and none of `exclude` matches, each once, by name."""
    found = {path for pattern in include for path in _files(pattern)}
    unwanted = list(exclude)
    kept = [Path(name) for name in found if not any(excludes(pattern, name) for pattern in unwanted)]
    return sorted(path for path in kept if path.is_file())


def excludes(pattern: str, path: str) -> bool:
    """Return whether a pattern of `exclude` means a file: by its path, or by its name if the pattern has no slash."""
    return means(pattern if "/" in pattern else f"/**/{pattern}", path)


def means(pattern: str, path: str) -> bool:
    """Return whether a pattern means a file, which need not be there. Looks at no directory."""
    if "\0" in pattern + path:
        return False
    if os.path.realpath(pattern) == os.path.realpath(path):
        return True
    name = os.path.abspath(path)
    return any(_compiled(os.path.abspath(each)).fullmatch(name) for each in alternatives(pattern))


def alternatives(pattern: str) -> Iterator[str]:
    """Yield a pattern's alternatives, `{a,b}`, as patterns without braces."""
    begin, commas, depth = -1, list[int](), 0
    for sign in _SIGN.finditer(pattern):
        at, text = sign.start(), sign[0]
        if text == "{":
            begin, depth = at if depth == 0 else begin, depth + 1
        elif text == "," and depth == 1:
            commas.append(at)
        elif text == "}" and depth:
            depth -= 1
            if depth == 0:
                cuts = [begin, *commas, at]
                for left, right in pairwise(cuts):
                    yield from alternatives(pattern[:begin] + pattern[left + 1 : right] + pattern[at + 1 :])
                return
    yield pattern


def _files(pattern: str) -> Iterator[str]:
    if os.path.isfile(pattern):
        yield pattern
    for each in alternatives(pattern):
        yield from glob.glob(_TOKEN.sub(_for_glob, each), recursive=True, include_hidden=True)


def _for_glob(token: re.Match[str]) -> str:
    """Write a part of a pattern as Python's glob has it: `[!a]` for `[^a]`, a class for what is escaped."""
    text = token[0]
    if len(text) == 2 and text.startswith("\\"):
        return glob.escape(text[1])
    return f"[!{text[2:]}" if text.startswith("[^") else text


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join(_as_expression(token[0]) for token in _TOKEN.finditer(pattern)), re.DOTALL)


def _as_expression(part: str) -> str:
    if part == "/**":
        return "(?:/.+)?"
    if part in ("*", "?"):
        return "[^/]*" if part == "*" else "[^/]"
    if len(part) == 2 and part.startswith("\\"):
        return re.escape(part[1])
    if len(part) > 2 and part.startswith("["):
        written = fnmatch.translate(f"[!{part[2:]}" if part[1] == "^" else part)
        return f"(?!/){written[written.index(':') + 1 : written.rindex(')')]}"
    return re.escape(part)
