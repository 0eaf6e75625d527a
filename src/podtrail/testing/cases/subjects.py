"""Whom something is said of: `pod web-0`, `pod shop/web-0 attempt 2`, `pod web-0 last attempt`, `trace probe`."""

from typing import Final, NamedTuple

from podtrail.testing.cases.text_reader import Misread, TextReader

_KINDS: Final = ("pod", "trace")
_PARTS: Final = ("in", "attempt", "attempts", "last")


class Subject(NamedTuple):
    """A Pod with all or some of its attempts, or a trace."""

    kind: str
    """`pod` or `trace`."""
    name: str
    namespace: str = ""
    """"" where it is not said."""
    first: int = 0
    """The first of its attempts that is meant, from 1, in order of start; 0: all, -1: the last one."""
    last: int = 0

    def __str__(self) -> str:
        if self.kind == "trace":
            return f"trace {self.name}"
        pod = f"pod {self.namespace}/{self.name}" if self.namespace else f"pod {self.name}"
        if self.first < 0:
            return f"{pod} last attempt"
        if not self.first:
            return pod
        return f"{pod} attempt {self.first}" if self.first == self.last else f"{pod} attempts {self.first}-{self.last}"


def is_subject(text: str) -> bool:
    """Tell whether a key begins as a subject does."""
    return text.partition(" ")[0].lower() in _KINDS and " " in text


def read_subject(text: str, *, attempts: bool) -> Subject:
    """Return whom a text names. `attempts`: whether it may pick attempts of a Pod.

    Raises:
        Misread: a word is none that may stand there, or the namespace is said twice.
    """
    words = TextReader(text)
    kind = words.take("pod or trace")
    if kind.text.lower() not in _KINDS:
        raise words.unexpected(kind, _KINDS, "a subject")
    if kind.text.lower() == "trace":
        name = words.rest().strip("\"'")
        if not name:
            raise Misread("the trace has no name", "write trace NAME", len(text))
        return Subject("trace", name)
    pod = words.take("the Pod's name")
    namespace, slash, name = pod.text.rpartition("/")
    if not name or (slash and not namespace):
        raise Misread(f"{pod.text!r} is not a Pod's name", "write web-0 or shop/web-0", pod.at, pod.width)
    if words.accept("in"):
        if namespace:
            raise Misread("the namespace is said twice", "write shop/web-0, or web-0 in shop", pod.at, pod.width)
        namespace = words.take("a namespace").text
    first, last = _picked(words) if attempts else (0, 0)
    if (word := words.peek()) is not None:
        raise words.unexpected(word, _PARTS if attempts else _PARTS[:1], "what follows the Pod's name")
    return Subject("pod", name, namespace, first, last)


def _picked(words: TextReader) -> tuple[int, int]:
    if words.accept("last"):
        words.accept("attempt")
        return -1, -1
    if not words.accept("attempt", "attempts"):
        return 0, 0
    word = words.take("the attempt's number")
    begin, _, end = word.text.partition("-")
    if not (begin.isdecimal() and (end or begin).isdecimal() and 0 < int(begin) <= int(end or begin)):
        raise Misread(
            f"{word.text!r} is not an attempt's number", "write attempt 2, or attempts 1-3", word.at, word.width
        )
    return int(begin), int(end or begin)
