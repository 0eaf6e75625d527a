"""Attempts of one Pod side by side."""

from collections.abc import Sequence

from podtrail.story.attempt import AttemptStory
from podtrail.story.bind import read_bind_refusal
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe
from podtrail.story.pod import PodStory, answer, who_said_no
from podtrail.story.words import clock, duration

_MOST = 50
_ANSWER = 70


def compare(one: AttemptStory, other: AttemptStory) -> list[Line]:
    """Return two attempts in columns: times, nodes, and how many nodes each plugin refused."""
    rows: list[tuple[str | TextPiece, ...]] = [
        ("", f"#{one.number}", f"#{other.number}"),
        ("started (UTC)", clock(one.start_unix_nano), clock(other.start_unix_nano)),
        ("result", safe(one.result, 40) or "-", safe(other.result, 40) or "-"),
    ]
    for what, first, second in (
        ("queue wait", one.queue_wait, other.queue_wait),
        ("took", one.duration, other.duration),
        ("scheduling", one.cycle, other.cycle),
        ("binding", one.binding, other.binding),
    ):
        rows.append((what, duration(first), duration(second)))
    rows.append(("nodes that fit / all", _fit(one), _fit(other)))
    mine, theirs = _refusals(one), _refusals(other)
    for plugin in dict.fromkeys((*mine, *theirs)):
        before, after = mine.get(plugin, 0), theirs.get(plugin, 0)
        rows.append(
            (f"refused by {safe(plugin, 60)}", _count(before), _count(after), dim("same") if before == after else "")
        )
    if one.generation or other.generation:
        rows.append(("configuration", safe(one.generation, 40) or "-", safe(other.generation, 40) or "-"))
    rows.append(("decision", _decision(one), _decision(other)))
    return [line(f"Attempt {one.number} compared with attempt {other.number}:"), *columns(rows)]


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
                _decision(one),
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


def _decision(attempt: AttemptStory) -> str:
    match attempt.decision:
        case "":
            return "-"
        case "sampled":
            return f"kept: {safe(attempt.policy, 40)}" if attempt.policy else "kept"
        case "dropped":
            return f"dropped: {safe(attempt.policy, 40)}"
        case _:
            return "not kept"


def _refusals(attempt: AttemptStory) -> dict[str, int]:
    """Return how many nodes each plugin refused."""
    counts: dict[str, int] = {}
    for no in attempt.why.rejections:
        if no.nodes is not None:
            who = no.plugin or no.reason
            counts[who] = counts.get(who, 0) + no.nodes
    return counts


def _fit(attempt: AttemptStory) -> str:
    if attempt.why.nodes is None and attempt.why.feasible is None:
        return "-"
    return f"{_count(attempt.why.feasible)} / {_count(attempt.why.nodes)}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
