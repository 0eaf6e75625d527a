"""Reads a text of the compact language word by word; one that can't stand where it does is told with its place."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from podtrail.config.duration import parse_duration
from podtrail.config.problem import did_you_mean

_TOKEN: Final = re.compile(r"""\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<comma>,)|(?P<word>[^\s,]+))""")
_MOST: Final = 100_000
_LONGEST_SHOWN: Final = 60


class Word(NamedTuple):
    """A word, a comma or a quoted text."""

    text: str
    at: int
    """Its place in the text, from 0."""
    width: int
    quoted: bool = False


class Misread(ValueError):
    """A text of the compact language can't be read."""

    def __init__(self, message: str, hint: str = "", at: int = 0, width: int = 1) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.message = message
        self.hint = hint
        self.at = at
        """The place of what is wrong, from 0."""
        self.width = width


class TextReader:
    """The words of a text, taken one by one."""

    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._words = _split(self._text)
        self._next = 0

    def peek(self, ahead: int = 0) -> Word | None:
        """Return a word that is still to come, None behind the last."""
        at = self._next + ahead
        return self._words[at] if at < len(self._words) else None

    def take(self, what: str) -> Word:
        """Return the next word. `what` it should be is said where there is none.

        Raises:
            Misread: there is none.
        """
        word = self.peek()
        if word is None:
            raise Misread(f"ends where {what} should follow", at=len(self._text))
        self._next += 1
        return word

    def accept(self, *texts: str) -> Word | None:
        """Take the next word if it is one of these."""
        word = self.peek()
        if word is None or word.quoted or word.text.lower() not in texts:
            return None
        self._next += 1
        return word

    def number(self) -> int | None:
        """Take the next word if it is a number.

        Raises:
            Misread: it is out of bounds.
        """
        word = self.peek()
        if word is None or word.quoted or not (word.text.isascii() and word.text.isdecimal()):
            return None
        self._next += 1
        if len(word.text) > len(str(_MOST)) or not 0 < int(word.text) <= _MOST:
            raise Misread(f"{shown(word.text)} must be from 1 to {_MOST}", at=word.at, width=word.width)
        return int(word.text)

    def duration(self) -> int:
        """Take a duration, nanoseconds.

        Raises:
            Misread: it is none, negative or too long.
        """
        word = self.take("a duration such as 40ms")
        try:
            found = parse_duration(word.text)
        except ValueError as error:
            message, _, hint = str(error).partition(": ")
            raise Misread(message, hint, word.at, word.width) from None
        if found < 0:
            raise Misread(f"{word.text} must not be negative", at=word.at, width=word.width)
        return found

    def rest(self) -> str:
        """Take all that is left, as it was written; "" when nothing is."""
        word = self.peek()
        self._next = len(self._words)
        return "" if word is None else self._text[word.at :]

    def unexpected(self, word: Word, known: Sequence[str], what: str) -> Misread:
        """Return the complaint about a word that is not one of those known here."""
        return Misread(f"{what} can't be {shown(word.text)}", did_you_mean(word.text, known, what), word.at, word.width)


def _split(text: str) -> list[Word]:
    words: list[Word] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None, "every character is a word's, a comma or a space"
        kind = found.lastgroup
        assert kind is not None
        quoted = kind in ("double", "single")
        begin = found.start(kind) - quoted
        words.append(Word(found[kind], begin, found.end() - begin, quoted))
        at = found.end()
    return words


def shown(text: str) -> str:
    """Return a word as it stands in a message: quoted, cut when it is long."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…")
