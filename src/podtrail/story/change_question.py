"""What a change of the scheduler's configuration did: attempts, failures and latency before it and after."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from podtrail.story.attempt import AttemptStory
from podtrail.story.change_sides import MINUTE, AttemptsBeside, attempts_beside
from podtrail.story.change_verdict import ChangeVerdict, judge, verdict_line
from podtrail.story.configuration_change import Changer
from podtrail.story.lines import Line, Style, TextPiece, columns, dim, line, plain, safe, strong
from podtrail.story.past_attempts import CountedAttempt, PastAttempts
from podtrail.story.pod import PodStory
from podtrail.story.words import ago, clock, duration, moment, several

WINDOW = 10 * MINUTE
"""Nanoseconds that are looked at on either side."""
_NEAR = 10 * MINUTE
_MOST_REFUSERS = 4
_FORMS = ("%H:%M", "%H:%M:%S")
_NONE_PAST = PastAttempts()


@dataclass(frozen=True, slots=True)
class ChangeAnswer:
    """A moment with what was before it and after it."""

    at_unix_nano: int
    before_generation: str
    """"" where no change of configuration is told: the moment is just compared."""
    after_generation: str
    made: bytes
    """Trace and span id of what made the change; nothing where attempts don't say."""
    configuration_told: bool
    """Whether any attempt says with which configuration it was made: else no change can be seen."""
    changes: tuple[int, ...]
    """All changes that are held, Unix nanoseconds."""
    before: AttemptsBeside
    after: AttemptsBeside
    verdict: ChangeVerdict
    gone_until_unix_nano: int
    """Attempts that ended until then are not all counted; 0 where all are."""
    asked_unix_nano: int | None = None
    """The moment that was asked for; None for the latest change."""
    old_until_unix_nano: int = 0
    """When the last attempt with the configuration before ended; 0 where no change is told."""


def moment_asked(asked: str, now: int) -> int | None:
    """Return the moment that `HH:MM`, `HH:MM:SS` or an ISO 8601 time means, the last one before `now`; UTC.

    Raises:
        ValueError: it is none; the text says what would be.
    """
    if not asked:
        return None
    for form in _FORMS:
        try:
            time = datetime.strptime(asked, form).time()  # noqa: DTZ007 - a time of day, the day is added below
        except ValueError:
            continue
        at = datetime.combine(moment(now).date(), time, UTC)
        at -= timedelta(days=int(_nano(at) > now))
        return _nano(at)
    try:
        at = datetime.fromisoformat(asked)
        return _nano(at if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        raise ValueError("change is a time in UTC: HH:MM, HH:MM:SS or 2026-11-23T14:02:00Z.") from None


def _nano(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000_000


def ask_change(
    pods: Sequence[PodStory], at: int | None, past: PastAttempts = _NONE_PAST, latest: int = 0
) -> ChangeAnswer | str:
    """Return the effect of the change nearest to a moment, of the latest for None; or why there is nothing to tell.

    Args:
        pods: those that are held.
        at: Unix nanoseconds.
        past: attempts that are no longer held with their Pods.
        latest: where the source's clock stands, Unix nanoseconds: what is behind it has not happened yet.
    """
    told = sorted(past.with_held(pods), key=lambda each: each.attempt.start_unix_nano)
    if not told:
        return "no attempt is held"
    changes = _changes(told)
    configuration_told = any(one.attempt.generation for one in told)
    chosen = None
    if at is None:
        if not changes:
            seen = (
                "no change of the scheduler's configuration is told by the attempts that are held"
                if configuration_told
                else "the attempts that are held don't tell the scheduler's configuration: no change of it can be seen"
            )
            return f"{seen}; podtrail why change HH:MM compares before and after a moment"
        chosen = changes[-1]
    else:
        near = [change for change in changes if abs(change[1].start_unix_nano - at) <= _NEAR]
        chosen = min(near, key=lambda change: abs(change[1].start_unix_nano - at), default=None)
    when = chosen[1].start_unix_nano if chosen else at or 0
    others = [change[1].start_unix_nano for change in changes]
    first = max([told[0].attempt.start_unix_nano, when - WINDOW, *(one for one in others if one < when)])
    last = min(
        [max(latest, told[-1].attempt.start_unix_nano) + 1, when + WINDOW, *(one for one in others if one > when)]
    )
    if not first < when < last:
        held = f"{clock(told[0].attempt.start_unix_nano)} to {clock(told[-1].attempt.start_unix_nano)} UTC"
        return f"nothing is held on both sides of {clock(when)} UTC; attempts are held from {held}"
    before = attempts_beside(told, first, when, after=False, at_least=not past.all_since(first))
    after = attempts_beside(told, when, last, after=True, at_least=not past.all_since(when))
    return ChangeAnswer(
        at_unix_nano=when,
        before_generation=chosen[0].generation if chosen else "",
        after_generation=chosen[1].generation if chosen else "",
        made=chosen[1].change if chosen else b"",
        configuration_told=configuration_told,
        changes=tuple(others),
        before=before,
        after=after,
        verdict=judge(before, after),
        gone_until_unix_nano=past.gone_until,
        asked_unix_nano=at,
        old_until_unix_nano=chosen[0].end_unix_nano if chosen else 0,
    )


def _changes(told: Sequence[CountedAttempt]) -> list[tuple[AttemptStory, AttemptStory]]:
    """Return the attempts before and behind each change; each cluster has a configuration of its own."""
    latest: dict[str, AttemptStory] = {}
    changes = []
    for attempt, _, cluster in told:
        if attempt.generation:
            before = latest.get(cluster)
            if before is not None and before.generation != attempt.generation:
                changes.append((before, attempt))
            latest[cluster] = attempt
    return changes


def change_lines(told: ChangeAnswer, changer: Changer | None, now: int, when: Line) -> tuple[list[Line], list[Line]]:
    """Return it in words, and more."""
    at = f"{clock(told.at_unix_nano)} UTC ({ago(told.at_unix_nano, now)})"
    if told.after_generation:
        said = f": {generations(told)}{_by(changer)}."
        first = line("The scheduler's configuration changed at ", strong(at), said, *when)
    else:
        none = "No change of the configuration is told near it."
        unseen = "The attempts don't tell their configuration: no change of it can be seen."
        first = line("Before and after ", strong(at), ". ", none if told.configuration_told else unseen, *when)
    lines = [first, *_asked(told), verdict_line(told.verdict, told.before, told.after), *_table(told), *_left_out(told)]
    others = [one for one in told.changes if one != told.at_unix_nano]
    if others:
        shown = ", ".join(map(clock, others[-5:]))
        lines.append(line(dim(f"Other changes that are held: {shown} UTC")))
    if told.before.at_least:
        until = f"{clock(told.gone_until_unix_nano)} UTC"
        lines.append(line(dim(f"Not every attempt that ended until {until} is still counted: there were more.")))
    return lines, columns(_refusers(told)[_MOST_REFUSERS:50], gap=3)


def generations(told: ChangeAnswer) -> str:
    """Return the configuration before and after, as short as tells them apart."""
    before, after = (safe(each, 40) for each in (told.before_generation, told.after_generation))
    return f"{before[:6]} → {after[:6]}" if before[:6] != after[:6] else f"{before} → {after}"


def _asked(told: ChangeAnswer) -> list[Line]:
    """Say that the change is not at the moment asked for, and between what it lies."""
    asked, at = told.asked_unix_nano, told.at_unix_nano
    if asked is None or not told.after_generation or clock(asked) == clock(at):
        return []
    old = told.old_until_unix_nano
    before = f", the last attempt with the old one ended {clock(old)}" if old <= at else ""
    return [line(f"Asked: {clock(asked)}; the change nearest to it was first seen at {clock(at)}{before}.")]


def _by(changer: Changer | None) -> str:
    if changer is None:
        return ""
    of = f" of {safe(changer.about, 120)}" if changer.about else ""
    name = f"{safe(changer.name, 80)}{of}" if changer.name else f"a span that is not held ({safe(changer.became, 120)})"
    return f", by {name}, trace {changer.trace_id.hex()}"


def latest_change(pods: Sequence[PodStory], since: int, until: int, past: PastAttempts) -> ChangeAnswer | None:
    """Return the effect of the latest change in a range, Unix nanoseconds; None for none, or nothing on one side."""
    told = sorted(past.with_held(pods), key=lambda each: each.attempt.start_unix_nano)
    changed = [after.start_unix_nano for _, after in _changes(told) if since <= after.start_unix_nano <= until]
    answer = ask_change(pods, changed[-1], past) if changed else None
    return answer if isinstance(answer, ChangeAnswer) else None


def change_sentence(told: ChangeAnswer) -> str:
    """Return whether it is better or worse, in one sentence."""
    return plain(verdict_line(told.verdict, told.before, told.after))


def change_rows(told: ChangeAnswer) -> list[tuple[str, ...]]:
    """Return what was before and after as rows of words, the first with what stands on either side."""
    return [tuple(one if isinstance(one, str) else one.text for one in row) for row in _rows(told)]


def _table(told: ChangeAnswer) -> list[Line]:
    lines = columns(_rows(told), gap=3)
    more = len(_refusers(told)) - _MOST_REFUSERS
    if more > 0:
        lines.append(line(dim(f"and {several(more, 'plugin')} more that said no to fewer Pods: -v")))
    return lines


def _rows(told: ChangeAnswer) -> list[tuple[str | TextPiece, ...]]:
    before, after = told.before, told.after
    heads = (dim(f"{name} ({_span(one)})") for name, one in (("before", before), ("after", after)))
    grown: Style = "bad" if told.verdict.failing == "worse" else ""
    rows: list[tuple[str | TextPiece, ...]] = [
        ("", *heads),
        ("Pods", *(_count(one, one.pods) for one in (before, after))),
        ("attempts", *(_count(one, one.attempts) for one in (before, after))),
        ("attempts a minute", *("-" if one.at_least else f"{one.a_minute:,.1f}" for one in (before, after))),
        (
            "without success",
            _share(before, before.failed_pods, before.attempts - before.succeeded),
            TextPiece(_share(after, after.failed_pods, after.attempts - after.succeeded), grown),
        ),
        ("took, median", duration(before.median), _slower(before.median, after.median)),
        ("took, 90 % at most", duration(before.p90), _slower(before.p90, after.p90)),
    ]
    return [*rows, *_refusers(told)[:_MOST_REFUSERS]]


def _span(told: AttemptsBeside) -> str:
    length = duration(told.to_unix_nano - told.from_unix_nano)
    return f"{clock(told.from_unix_nano)} to {clock(told.to_unix_nano)}, {length}"


def _left_out(told: ChangeAnswer) -> list[Line]:
    """Say which attempts are in no figure, so that a late one doesn't stretch a side."""
    sides = ((told.before, "before", told.before.from_unix_nano), (told.after, "after", told.after.to_unix_nano))
    return [
        line(dim(f"{several(one.left_out, 'attempt')} {where} {clock(at)}, with a silence between, not counted."))
        for one, where, at in sides
        if one.left_out
    ]


def _count(told: AttemptsBeside, some: int) -> str:
    return f"{'at least ' if told.at_least else ''}{some:,}"


def _share(told: AttemptsBeside, pods: int, attempts: int) -> str:
    if told.at_least:
        return f"at least {several(pods, 'Pod')}, {several(attempts, 'attempt')}"
    if not told.pods:
        return "-"
    share = f"{100 * pods / told.pods:.0f} %"
    return f"{pods:,} of {told.pods:,} Pods ({share}), {several(attempts, 'attempt')}"


def _slower(before: int | None, after: int | None) -> TextPiece:
    return TextPiece(duration(after), "bad" if before and after and after >= 2 * before else "")


def _refusers(told: ChangeAnswer) -> list[tuple[str, ...]]:
    """Return who said no on either side, who did so to most Pods first."""
    before, after = told.before, told.after
    pods, attempts = (
        Counter(one) + Counter(other)
        for one, other in ((before.refused_pods, after.refused_pods), (before.refused_by, after.refused_by))
    )
    return [
        (
            f"refused by {safe(plugin, 60)}",
            *(_share(one, one.refused_pods.get(plugin, 0), one.refused_by.get(plugin, 0)) for one in (before, after)),
        )
        for plugin in sorted(pods, key=lambda name: (-pods[name], -attempts[name], name))
    ]
