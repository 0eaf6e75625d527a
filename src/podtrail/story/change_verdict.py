"""Whether it is better or worse after a change: by Pods, so that a few that retry often make no change guilty."""

from collections.abc import Sequence
from math import exp, lgamma
from typing import Final, Literal, NamedTuple

from podtrail.story.change_sides import AttemptsBeside
from podtrail.story.lines import Line, Style, TextPiece, line
from podtrail.story.slow_since import LEAST_SLOW
from podtrail.story.words import duration, several

Direction = Literal["better", "worse", "no difference", "can't be said"]
FEWEST_PODS: Final = 10
"""On either side, for a verdict."""
_BY_CHANCE: Final = 0.01
_TIMES: Final = 2
_STYLES: Final[dict[Direction, Style]] = {"better": "good", "worse": "bad"}


class ChangeVerdict(NamedTuple):
    """How it is after a moment, compared with before."""

    failing: Direction
    """By the share of Pods of which an attempt was without success, but for those that had failed before already."""
    pace: Direction
    """By the median time of attempts that found a node."""
    why_not: str
    """Why it can't be said; "" where it can."""


def judge(before: AttemptsBeside, after: AttemptsBeside) -> ChangeVerdict:
    """Return the verdict; chance would show such a difference of Pods once in a hundred times at most."""
    why_not = _why_not(before, after)
    if why_not:
        return ChangeVerdict("can't be said", "can't be said", why_not)
    failing: Direction = "no difference"
    if _chance(before, after) < _BY_CHANCE:
        worse = after.new_failed_pods * before.new_pods > before.new_failed_pods * after.new_pods
        failing = "worse" if worse else "better"
    return ChangeVerdict(failing, _pace(before, after), "")


def _why_not(before: AttemptsBeside, after: AttemptsBeside) -> str:
    if before.at_least or after.at_least:
        return "not every attempt is counted"
    if min(before.new_pods, after.new_pods) < FEWEST_PODS:
        told = f"{several(before.new_pods, 'Pod')} before and {after.new_pods:,} after"
        return f"{told} are too few, {FEWEST_PODS} on either side are needed{_set_apart(after)}"
    return ""


def _pace(before: AttemptsBeside, after: AttemptsBeside) -> Direction:
    if before.median is None or after.median is None or min(before.succeeded, after.succeeded) < FEWEST_PODS:
        return "can't be said"
    if after.median >= max(_TIMES * before.median, before.median + LEAST_SLOW):
        return "worse"
    if before.median >= max(_TIMES * after.median, after.median + LEAST_SLOW):
        return "better"
    return "no difference"


def _chance(before: AttemptsBeside, after: AttemptsBeside) -> float:
    """Return how probable a difference as large is by chance: Fisher's exact test, of both sides."""
    pods, ours = before.new_pods + after.new_pods, after.new_pods
    failed = before.new_failed_pods + after.new_failed_pods
    told = [
        _choose(failed, hit) + _choose(pods - failed, ours - hit) - _choose(pods, ours)
        for hit in range(max(0, ours - (pods - failed)), min(failed, ours) + 1)
    ]
    mine = told[after.new_failed_pods - max(0, ours - (pods - failed))]
    return sum(exp(one) for one in told if one <= mine + 1e-7)


def _choose(of: int, some: int) -> float:
    """Return the logarithm of in how many ways some can be chosen."""
    return lgamma(of + 1) - lgamma(some + 1) - lgamma(of - some + 1)


def verdict_line(verdict: ChangeVerdict, before: AttemptsBeside, after: AttemptsBeside) -> Line:
    """Return it as one sentence."""
    if verdict.why_not:
        return line("Better or worse ", TextPiece("can't be said", "held"), f": {verdict.why_not}.")
    failed = f"{_share(after)} had an attempt without success, {_share(before)} before"
    if verdict.failing == "no difference" and after.new_failed_pods + before.new_failed_pods:
        failed = f"{failed}, which may be chance"
    said: Sequence[Direction] = (verdict.failing, verdict.pace)
    clear = sorted({one for one in said if one in _STYLES}, reverse=True)
    word = " and ".join(clear).capitalize() if clear else "No difference"
    style: Style = _STYLES[clear[0]] if len(clear) == 1 else "held" if clear else ""
    pace = ""
    if verdict.pace in _STYLES:
        pace = f"; to find a node took {duration(after.median)} in the median, {duration(before.median)} before"
    return line(
        TextPiece(word, style), " that can be told" if not clear else "", f": {failed}{pace}{_set_apart(after)}."
    )


def _share(told: AttemptsBeside) -> str:
    failed, pods = told.new_failed_pods, told.new_pods
    return f"{failed:,} of {pods:,} Pods ({100 * failed / pods:.0f} %)"


def _set_apart(after: AttemptsBeside) -> str:
    some = after.pods - after.new_pods
    return f"; {several(some, 'Pod')} that had failed before {'is' if some == 1 else 'are'} set apart" if some else ""
