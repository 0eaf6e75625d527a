r"""Regular expressions in RE2's syntax (as Go's `regexp` has it), translated to Python's.

Where the two mean different things by the same text, RE2's meaning is kept: `$` is the end of the text, classes such
as `\d` and `\b` are ASCII, inline flags count from where they stand. What RE2 does not know (back-references,
look-around, possessive repeats) is refused, and so are Unicode classes (`\p{Greek}`), which Python does not know.
"""

import re
from typing import NamedTuple

_MOST_REPEATS = 1000
_SPACE = r"\t\n\f\r "
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\x0b\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_REPEAT = re.compile(r"\{(\d+)(,(\d*))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_CHARACTER = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]+)\}|(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_POSIX_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")


def compile_re2(pattern: str) -> re.Pattern[str]:
    """Return the expression, to be searched for in text. ValueError says what is wrong with it."""
    try:
        return re.compile(_Translation(pattern).result(), re.ASCII)
    except (re.error, OverflowError) as error:
        raise ValueError(f"invalid regular expression {pattern!r}: {error}") from None


class _Level(NamedTuple):
    """An open group: which flags were set inside it so far, and whether `$` matches at line ends before that."""

    flags: list[str]
    multiline: bool


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        self._levels: list[_Level] = []
        self._flags: list[str] = []
        self._multiline = False
        self._repeated = False

    def result(self) -> str:
        while self._at < len(self._pattern):
            self._step()
        if self._levels:
            raise self._error("missing closing )")
        return "".join(self._out) + ")" * len(self._flags)

    def _error(self, what: str) -> ValueError:
        return ValueError(f"invalid regular expression {self._pattern!r}: {what}")

    def _emit(self, text: str, length: int = 1) -> None:
        self._out.append(text)
        self._at += length
        self._repeated = False

    def _step(self) -> None:
        character = self._pattern[self._at]
        repeat = _REPEAT.match(self._pattern, self._at) if character == "{" else None
        if character in "*+?" or repeat:
            self._repeat(repeat)
        elif character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character == "|":
            self._emit(")" * len(self._flags) + "|" + "".join(self._flags))
        elif character == "[":
            self._class()
        elif character == "\\":
            self._escape()
        elif character == "$":
            self._emit("$" if self._multiline else r"\Z")
        elif character in "^.":
            self._emit(character)
        else:
            self._emit(re.escape(character))

    def _repeat(self, counts: re.Match[str] | None) -> None:
        if self._repeated:
            raise self._error("a repeat of a repeat")
        text = counts.group() if counts else self._pattern[self._at]
        if counts and max(int(counts[1]), int(counts[3] or 0)) > _MOST_REPEATS:
            raise self._error(f"invalid repeat count {text}: at most {_MOST_REPEATS}")
        if self._pattern.startswith("?", self._at + len(text)):
            text += "?"
        self._emit(text, len(text))
        self._repeated = True

    def _open(self) -> None:
        flags, named = _FLAGS.match(self._pattern, self._at), _NAMED.match(self._pattern, self._at)
        if flags and flags[3] == ")":
            self._set_flags(flags)
            return
        if not flags and not named and self._pattern.startswith("(?", self._at):
            raise self._error(f"invalid or unsupported Perl syntax {self._pattern[self._at : self._at + 3]}")
        self._levels.append(_Level(self._flags, self._multiline))
        self._flags = []
        if flags:
            self._multiline = _switched(flags, self._multiline)
            self._emit(_group(flags), len(flags.group()))
        elif named:
            self._emit(f"(?P<{named[1]}>", len(named.group()))
        else:
            self._emit("(")

    def _set_flags(self, flags: re.Match[str]) -> None:
        """Open a group for the flags that lasts to the end of the group around it."""
        self._multiline = _switched(flags, self._multiline)
        group = _group(flags)
        self._flags.append(group)
        self._emit(group, len(flags.group()))

    def _close(self) -> None:
        if not self._levels:
            raise self._error("unexpected )")
        self._emit(")" * len(self._flags) + ")")
        self._flags, self._multiline = self._levels.pop()

    def _escape(self) -> None:
        rest = self._pattern[self._at + 1 :]
        if rest[:1] == "Q":
            quoted, _, _ = rest[1:].partition(r"\E")
            ended = rest.startswith(quoted + r"\E", 1)
            self._emit(re.escape(quoted), 2 + len(quoted) + 2 * ended)
        elif rest[:1] == "z":
            self._emit(r"\Z", 2)
        elif rest[:1] in tuple("AbBdDwW"):
            self._emit("\\" + rest[0], 2)
        elif rest[:1] in ("s", "S"):
            self._emit(f"[{'^' if rest[0] == 'S' else ''}{_SPACE}]", 2)
        else:
            character, length = self._character()
            self._emit(re.escape(character), length)

    def _character(self) -> tuple[str, int]:
        """Return the character that stands here, perhaps escaped, and the length of its text."""
        if self._pattern[self._at] != "\\":
            return self._pattern[self._at], 1
        rest = self._pattern[self._at + 1 :]
        if code := _CHARACTER.match(rest):
            number = int(code[1] or code[2], 16) if code[1] or code[2] else int(code[3], 8)
            return chr(number), 1 + len(code.group())
        if rest[:1] in tuple("afnrtv"):
            return {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}[rest[0]], 2
        if rest and rest[0].isascii() and not rest[0].isalnum():
            return rest[0], 2
        if rest[:1] in ("p", "P"):
            raise self._error(r"Unicode classes (\p) are not supported")
        raise self._error(f"invalid escape sequence \\{rest[:1]}" if rest else "a trailing backslash")

    def _class(self) -> None:
        start = self._at
        self._emit("[")
        if self._pattern.startswith("^", self._at):
            self._emit("^")
        first = True
        while first or not self._pattern.startswith("]", self._at):
            if self._at >= len(self._pattern):
                raise self._error(f"missing closing ] for {self._pattern[start:]}")
            self._class_item()
            first = False
        self._emit("]")

    def _class_item(self) -> None:
        posix = _POSIX_CLASS.match(self._pattern, self._at)
        if posix:
            if posix[2] not in _POSIX:
                raise self._error(f"invalid character class {posix.group()}")
            self._emit(_others(_POSIX[posix[2]]) if posix[1] else _POSIX[posix[2]], len(posix.group()))
            return
        kind = self._pattern[self._at : self._at + 2]
        if kind in (r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"):
            self._emit({r"\s": _SPACE, r"\S": r"\S\x0b"}.get(kind, kind), 2)
            return
        low, length = self._character()
        self._emit(re.escape(low), length)
        if self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at):
            self._at += 1
            if self._at >= len(self._pattern):
                raise self._error("missing closing ]")
            high, length = self._character()
            self._emit("-" + re.escape(high), length)


def _switched(flags: re.Match[str], multiline: bool) -> bool:
    """Return whether `$` matches at line ends once the flags are set."""
    return (multiline or "m" in flags[1]) and "m" not in (flags[2] or "")


def _group(flags: re.Match[str]) -> str:
    """Return the opening of a group with these flags. Greed (U) makes no difference to a search."""
    on, off = flags[1].replace("U", ""), (flags[2] or "").replace("U", "")
    return f"(?{on}{'-' + off if off else ''}:"


def _others(members: str) -> str:
    """Return the members of a class that holds all characters but these ASCII ones."""
    kept = [chr(code) for code in range(128) if not re.match(f"[{members}]", chr(code))]
    return "".join(map(re.escape, kept)) + r"\x80-\U0010ffff"
