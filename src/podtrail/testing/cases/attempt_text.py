"""The compact language of attempts: `2 failed attempts by NodeResourcesFit, then success in 40ms`.

attempts = group { [","] ["then"] group }
group    = [count] outcome { clause }
count    = NUMBER | "a" | "an" | "one"
outcome  = "success" | "successful attempt" | "failure" | "failed attempt" | "error"
         | "erroneous attempt" | "unschedulable attempt"
           (each in the plural, too)
clause   = "by" plugin { "and" plugin }     who said no
         | "in" DURATION                    how long each took (9ms)
         | "after" DURATION                 how long after the end of the attempt before
         | "at" DURATION                    when the first starts, since the beginning of the case
         | "every" DURATION                 from start to start
         | "waited" DURATION                in the scheduling queue (2ms)
         | "arriving" DURATION ["later"]    how long after its end its spans arrive (0s)
         | "on" NODE                        where it went
         | "because" TEXT                   the message; in quotes
plugin   = NAME [ TEXT ] [ "on" NUMBER ["nodes"] ]     TEXT, in quotes, is its reason
"""

from collections.abc import Callable
from typing import Any, Final

from podtrail.testing.attempts.planned import AttemptResult, PlannedAttempts, PlannedRefusal
from podtrail.testing.cases.text_reader import Misread, TextReader

_ONE: Final = ("a", "an", "one")
_OUTCOMES: Final[dict[str, AttemptResult]] = {
    "success": "Success",
    "successes": "Success",
    "failure": "Unschedulable",
    "failures": "Unschedulable",
    "error": "Error",
    "errors": "Error",
}
_ADJECTIVES: Final[dict[str, AttemptResult]] = {
    "successful": "Success",
    "failed": "Unschedulable",
    "unschedulable": "Unschedulable",
    "erroneous": "Error",
}
_ATTEMPTS: Final = ("attempt", "attempts")


def read_attempts(text: str) -> list[PlannedAttempts]:
    """Return the attempts that a text tells of.

    Raises:
        Misread: it can't be read.
    """
    words = TextReader(text)
    plans = [_group(words)]
    while (word := words.peek()) is not None:
        comma, then = words.accept(","), words.accept("then")
        if not (comma or then):
            raise words.unexpected(word, (*_CLAUSES, "then"), "what follows")
        plans.append(_group(words))
    return plans


def _group(words: TextReader) -> PlannedAttempts:
    count = 1 if words.accept(*_ONE) else words.number() or 1
    told: dict[str, Any] = {"result": _outcome(words), "count": count}
    while (word := words.peek()) is not None and not word.quoted and word.text.lower() in _CLAUSES:
        key, read = _CLAUSES[word.text.lower()]
        if key in told:
            raise Misread(f"{word.text!r} is said twice of one group", "part groups with: , then", word.at, word.width)
        words.take("a clause")
        told[key] = read(words)
    if "at" in told and "after" in told:
        raise Misread("both at and after are said of one group", "keep one")
    return PlannedAttempts(**told)


def _outcome(words: TextReader) -> AttemptResult:
    word = words.take("success, failure or error")
    text = word.text.lower()
    if word.quoted or text not in (*_OUTCOMES, *_ADJECTIVES, *_ATTEMPTS):
        known = ("success", "failure", "error", "failed attempts", "successful attempts")
        raise words.unexpected(word, known, "an outcome")
    if text in _OUTCOMES:
        return _OUTCOMES[text]
    if text in _ADJECTIVES:
        if not words.accept(*_ATTEMPTS):
            after = words.peek()
            hint = f"write {word.text} attempt, or {word.text} attempts"
            raise Misread(f"{word.text!r} says nothing alone", hint, (after or word).at, (after or word).width)
        return _ADJECTIVES[text]
    raise Misread(
        "does not say how the attempt ended", "write failed attempt, successful attempt, …", word.at, word.width
    )


def _plugins(words: TextReader) -> list[PlannedRefusal]:
    found = [_plugin(words)]
    while words.accept("and"):
        found.append(_plugin(words))
    return found


def _plugin(words: TextReader) -> PlannedRefusal:
    name = words.take("the name of a plugin")
    if name.text == "," or name.text.isdecimal():
        raise Misread(
            f"{name.text!r} is not the name of a plugin", "write by NodeAffinity on 31 nodes", name.at, name.width
        )
    reason, after = "", words.peek()
    if after is not None and after.quoted:
        reason = words.take("a reason").text
    number = words.peek(1)
    count = None
    if number is not None and number.text.isdecimal() and words.accept("on"):
        count = words.number()
        words.accept("node", "nodes")
    return PlannedRefusal(name.text, count, reason)


def _later(words: TextReader) -> int:
    found = words.duration()
    words.accept("later")
    return found


def _text(what: str) -> Callable[[TextReader], str]:
    return lambda words: words.take(what).text


_CLAUSES: Final[dict[str, tuple[str, Callable[[TextReader], Any]]]] = {
    "by": ("by", _plugins),
    "in": ("took", TextReader.duration),
    "after": ("after", TextReader.duration),
    "at": ("at", TextReader.duration),
    "every": ("every", TextReader.duration),
    "waited": ("waited", TextReader.duration),
    "arriving": ("arrives", _later),
    "on": ("node", _text("the name of a node")),
    "because": ("message", _text("a message in quotes")),
}
