"""The compact language of what is expected: `kept by failed because scheduler.result=Unschedulable`.

    expectation = ("kept" | "dropped" | "pending") [ "by" POLICY ] [ "because" REASON ]

The words of `podtrail tap --decision` are read as well: sampled is kept, not_sampled is dropped. POLICY goes up to
`because`, so it may have spaces. REASON is a part of the reason in words, or a regular expression (RE2) between
slashes.
"""

import re
from typing import Final, Literal, NamedTuple

from podtrail.config.re2 import finder
from podtrail.otlp.decision_words import read_decision
from podtrail.testing.cases.text_reader import Misread, TextReader

State = Literal["kept", "dropped", "pending"]
STATES: Final[tuple[State, ...]] = ("kept", "dropped", "pending")
_BECAUSE: Final = re.compile(r"(?:^|\s)because(?:\s+|$)")


class Expected(NamedTuple):
    """What was written; None where nothing is said."""

    state: State
    by: str | None = None
    because: str | None = None

    def __str__(self) -> str:
        by = f" by {self.by}" if self.by is not None else ""
        return f"{self.state}{by}" + (f" because {self.because}" if self.because is not None else "")


def read_state(word: str) -> State | None:
    """Return the state that a word means, in any spelling; None for another word."""
    if word.lower() == "pending":
        return "pending"
    try:
        return "kept" if read_decision(word) == "sampled" else "dropped"
    except ValueError:
        return None


def read_outcome(text: str) -> Expected:
    """Return what a text expects.

    Raises:
        Misread: a word is none that may stand there, or one is missing.
    """
    words = TextReader(text)
    word = words.take("kept, dropped or pending")
    state = read_state(word.text)
    if state is None or word.quoted:
        raise words.unexpected(word, STATES, "what is expected")
    following = words.peek()
    if following is None:
        return Expected(state)
    at = following.at
    if state == "pending":
        raise Misread("what is pending has no policy and no reason yet", "write pending alone", at, following.width)
    if not words.accept("by", "because"):
        raise words.unexpected(following, ("by", "because"), "what follows")
    said = text[at:].rstrip()
    head = _BECAUSE.search(said)
    policy = said[: head.start()] if head else said
    because = said[head.end() :] if head else None
    by = policy.partition(" ")[2].strip() if policy else None
    if by == "" or because == "":
        raise Misread(f"{following.text!r} is followed by nothing", "name the policy, or a part of the reason", at)
    if because is not None:
        check_pattern(because, at + (head.end() if head else 0))
    return Expected(state, by, because)


def check_pattern(because: str, at: int = 0) -> None:
    """Refuse a reason between slashes that is no regular expression.

    Raises:
        Misread: it is none.
    """
    if not is_pattern(because):
        return
    try:
        finder([because[1:-1]])
    except ValueError as error:
        raise Misread(str(error), "write a part of the reason, or mend it", at + 1) from None


def is_pattern(because: str) -> bool:
    """Tell whether a reason is a regular expression."""
    return len(because) > 2 and because.startswith("/") and because.endswith("/")


def holds(because: str, reason: str) -> bool:
    """Tell whether a reason is the expected one."""
    return finder([because[1:-1]])(reason) if is_pattern(because) else because in reason
