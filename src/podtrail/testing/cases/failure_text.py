"""Failures as text: a line to grep, then only what differs, then how the policies voted."""

from collections.abc import Iterator, Sequence
from typing import Final

from podtrail.config import printable
from podtrail.otlp import PolicyVote
from podtrail.testing.cases.coverage import CoverageRow
from podtrail.testing.cases.judging import CaseFailure, Difference

_VOTES: Final = {"sampled": "yes", "not_sampled": "no", "dropped": "drop", None: "-"}
_LONGEST: Final = 300


def failure_lines(failure: CaseFailure) -> Iterator[str]:
    """Yield a failure line by line, the one to grep first. Nothing in it can move a cursor."""
    yield printable(failure.headline)
    yield from difference_lines(failure.differences)
    if failure.votes:
        yield printable(f"    how the policies voted on {failure.voted_on}:")
        yield from vote_lines(failure.votes)


def difference_lines(differences: Sequence[Difference]) -> Iterator[str]:
    """Yield what was expected and what was got, one under the other."""
    width = max((len(difference.what) for difference in differences), default=0)
    for difference in differences:
        yield printable(f"    {difference.what:{width}}  expected  {_cut(difference.expected)}")
        yield printable(f"    {'':{width}}  got       {_cut(difference.got)}")


def vote_lines(votes: Sequence[PolicyVote]) -> Iterator[str]:
    """Yield the votes of policies, and why."""
    width = max(len(vote.policy) for vote in votes) if votes else 0
    for vote in votes:
        shadow = " (shadow)" if vote.shadow else ""
        yield printable(f"      {vote.policy:{width}}  {_VOTES[vote.decision]:4}  {_cut(vote.why)}{shadow}").rstrip()


def coverage_lines(rows: Sequence[CoverageRow]) -> Iterator[str]:
    """Yield the table of policies."""
    width = max((len(printable(row.policy)) for row in rows), default=0)
    config = None
    for row in rows:
        if row.config != config:
            config = row.config
            yield f"{'POLICY':{width}}  SAID YES  DECIDED  {printable(config)}"
        note = "" if row.decided else "  never decided" if row.fired else "  never said yes"
        yield f"{printable(row.policy):{width}}  {row.fired:>8}  {row.decided:>7}{note}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
