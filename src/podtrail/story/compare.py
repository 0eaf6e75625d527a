"""Attempts of one Pod side by side."""

from collections.abc import Sequence

from podtrail.story.attempt import AttemptStory
from podtrail.story.attempt_comparison import compare_attempts, decision_of
from podtrail.story.bind import read_bind_refusal
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe
from podtrail.story.pod import PodStory, answer, who_said_no
from podtrail.story.words import clock, duration

_MOST = 50
_ANSWER = 70
_FACT = 46
_AFTER_REFUSALS = ("configuration", "decision")


def compare(one: AttemptStory, other: AttemptStory) -> list[Line]:
    """Return two attempts in columns: times, nodes, and how many nodes each plugin refused."""
    told = compare_attempts(one, other)
    rows: list[tuple[str | TextPiece, ...]] = [("", f"#{one.number}", f"#{other.number}")]
    facts = [(safe(fact.what, 40), safe(fact.one, _FACT), safe(fact.other, _FACT)) for fact in told.facts]
    after = [fact for fact in facts if fact[0] in _AFTER_REFUSALS]
    rows += [fact for fact in facts if fact not in after]
    for no in told.refusals:
        same = dim("same") if no.one == no.other else ""
        rows.append((f"refused by {safe(no.plugin, 60)}", f"{no.one:,}", f"{no.other:,}", same))
    return [line(f"Attempt {one.number} compared with attempt {other.number}:"), *columns([*rows, *after])]


def list_attempts(pod: PodStory) -> list[Line]:
    """Return the attempts of a Pod, a line each, those with the answer of the one before in few words."""
    if not pod.attempts:
        return []
    rows: list[tuple[str | TextPiece, ...]] = []
    before: AttemptStory | None = None
    for one in _shown(pod.attempts):
        same = before is not None and answer(before) == answer(one)
        rows.append(
            (
                f"#{one.number}",
                clock(one.start_unix_nano),
                safe(one.result, 40) or "no result",
                duration(one.duration),
                safe(decision_of(one), _FACT),
                one.trace_id.hex(),
                dim("same answer") if same else _answer(one),
            )
        )
        before = one
    missing = pod.tries - len(rows)
    more = [line(dim(f"  {missing:,} more in between are not shown"))] if missing > 0 else []
    return [line("Attempts (started in UTC, result, took, decision, trace):"), *columns(rows), *more]


def _shown(attempts: Sequence[AttemptStory]) -> Sequence[AttemptStory]:
    return attempts if len(attempts) <= _MOST else [attempts[0], *attempts[1 - _MOST :]]


def _answer(attempt: AttemptStory) -> str:
    if attempt.result == "Success":
        return safe(attempt.selected_node, _ANSWER)
    if attempt.bind_error:
        return safe(read_bind_refusal(attempt.bind_error).why, _ANSWER)
    return safe(who_said_no(attempt.why) or attempt.message, _ANSWER)
