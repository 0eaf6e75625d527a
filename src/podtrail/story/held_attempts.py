"""Which attempts of a Pod are held, by number, and why the others are not."""

from typing import NamedTuple

from podtrail.story.attempt import AttemptStory
from podtrail.story.pod import PodStory


class AttemptsNotHeld(NamedTuple):
    """Attempts in a row that nothing can be told of."""

    first: int
    last: int
    why: str


def attempt_numbered(pod: PodStory, number: int) -> AttemptStory | None:
    """Return an attempt by its number; None for one that is not held."""
    return next((one for one in pod.attempts if one.number == number), None)


def attempts_not_held(pod: PodStory) -> list[AttemptsNotHeld]:
    """Return the numbers up to the last attempt's that are missing, with why."""
    missing: list[AttemptsNotHeld] = []
    before = 0
    for at, one in enumerate(pod.attempts):
        number = one.number or before + 1
        if number > before + 1:
            missing.append(AttemptsNotHeld(before + 1, number - 1, _why(pod, at, number - 1 - before)))
        before = number
    return missing


def why_not_held(pod: PodStory, number: int) -> str:
    """Return why an attempt of this number is not held, in words; "" for one that is."""
    if attempt_numbered(pod, number) is not None:
        return ""
    if number < 1:
        return "attempts are counted from 1"
    if number > pod.tries:
        return f"the last attempt seen is {pod.tries:,}" if pod.tries else "no attempt of this Pod was seen"
    return next((gap.why for gap in attempts_not_held(pod) if gap.first <= number <= gap.last), "")


def nearest_held(pod: PodStory, number: int) -> tuple[AttemptStory | None, AttemptStory | None]:
    """Return the attempts held next before and after a number."""
    before = [one for one in pod.attempts if (one.number or 0) < number]
    after = [one for one in pod.attempts if (one.number or 0) > number]
    return (before[-1] if before else None), (after[0] if after else None)


def _why(pod: PodStory, at: int, missing: int) -> str:
    if at == 0:
        return "before the first attempt that was seen here"
    if at == 1 and pod.forgotten:
        rest = "" if missing == pod.forgotten else ", or were never seen here"
        return f"no longer held: of a Pod with so many the first and the latest are kept{rest}"
    return "not seen here: neither their spans nor a decision about them came"
