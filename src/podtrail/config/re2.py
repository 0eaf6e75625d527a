"""Regular expressions as Go's `regexp` has them, searched for by RE2: in time that grows with the text alone."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

import re2

from podtrail.config.mistakes import each

_REMEMBERED = 128
_LONGEST_REMEMBERED = 512
"""In characters: what is remembered stays small, whatever comes."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class NamedGroups:
    """Finds the text of each named group of an expression.

    Raises:
        ValueError: it is none that RE2 knows; the text says why.
    """

    def __init__(self, pattern: str) -> None:
        self._expression = _compiled(pattern)
        self._numbers = dict(sorted(self._expression.groupindex.items(), key=itemgetter(1)))

    @property
    def nameless(self) -> int:
        """How many groups have no name."""
        return int(self._expression.groups) - len(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def find(self, text: str) -> dict[str, str] | None:
        """Return the groups' texts, "" for one that took no part; None when the expression is not found."""
        found = self._expression.search(_sound(text))
        if found is None:
            return None
        return {name: text[slice(*found.span(number))] for name, number in self._numbers.items()}


def finder(patterns: Sequence[str], remembered: int = _REMEMBERED) -> Callable[[str], bool]:
    """Return what says whether one of the expressions is found in a text; it remembers its last answers.

    Raises:
        ValueError: some are none that RE2 knows; the text says which and why.
    """
    expressions = each(partial(_compiled, never_capture=True), patterns)

    def search(text: str) -> bool:
        encoded = _sound(text).encode()
        return any(expression.search(encoded) for expression in expressions)

    known = lru_cache(remembered)(search)
    return lambda text: (known if len(text) <= _LONGEST_REMEMBERED else search)(text)


def _compiled(pattern: str, *, never_capture: bool = False) -> Any:
    options = re2.Options()
    options.log_errors = False  # they would go to stderr, past the log
    options.never_capture = never_capture  # faster where nobody asks for groups
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        reason = "invalid UTF-8"
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
    raise ValueError(f"invalid regular expression {pattern!r}: {reason}")


def _sound(text: str) -> str:
    """Return a text of as many characters that is valid UTF-8: a byte that is not counts as U+FFFD, as in Go."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)
