"""What is known of one plugin: what it refuses, how long it takes by extension point, and since when it is slow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe, strong
from podtrail.story.listing import PluginRow
from podtrail.story.past_attempts import PastAttempts
from podtrail.story.plugin_times import PointTimes, slow_in_short, usual_pace
from podtrail.story.pod import PodStory
from podtrail.story.refusal_index import refusals_of
from podtrail.story.refusals import RefusalCount, RefusalTally, refusal_lines
from podtrail.story.words import ago, clock, duration, several

Times = Mapping[str, tuple[PointTimes, ...]]
"""By plugin, the extension point that took most of the time first."""
_LISTED = 15
_NONE_PAST = PastAttempts()


@dataclass(frozen=True, slots=True)
class PluginAnswer:
    """One plugin, as the attempts tell that are held, and the spans that were kept since the start."""

    plugin: str
    points: tuple[PointTimes, ...]
    """The extension point that took most of the time first."""
    attempts: int
    """Attempts in which it said no, also those that their Pod no longer holds."""
    refusals: tuple[RefusalCount, ...]
    gone_until_unix_nano: int = 0
    """Attempts that ended until then are not all counted; 0 where all are."""


def plugin_names(pods: Sequence[PodStory], times: Times, past: PastAttempts = _NONE_PAST) -> set[str]:
    """Return the names of all plugins that attempts and spans tell of."""
    names = {refusal.plugin for pod in pods for attempt in pod.attempts for refusal in refusals_of(attempt)}
    names |= {phase.plugin for pod in pods for attempt in pod.attempts for phase in attempt.phases}
    names |= {refusal.plugin for one in past.attempts for refusal in refusals_of(one.attempt)}
    return {*names, *times} - {""}


def ask_plugin(pods: Sequence[PodStory], times: Times, plugin: str, past: PastAttempts = _NONE_PAST) -> PluginAnswer:
    """Return what attempts and spans tell of a plugin."""
    tally, attempts = RefusalTally(), 0
    for pod in pods:
        for attempt in pod.attempts:
            refused = [refusal for refusal in refusals_of(attempt) if refusal.plugin == plugin]
            if refused:
                tally.note(pod, attempt, refused)
                attempts += 1
    for key, gone in past.by_pod(pods).items():
        for attempt in gone:
            refused = [refusal for refusal in refusals_of(attempt) if refusal.plugin == plugin]
            if refused:
                tally.note_past(key, attempt, refused)
                attempts += 1
    return PluginAnswer(plugin, times.get(plugin, ()), attempts, tally.told(), past.gone_until)


def plugin_lines(told: PluginAnswer, now: int, when: Line) -> tuple[list[Line], list[Line]]:
    """Return it in words, and more."""
    waiting = sum(count.waiting for count in told.refusals)
    name = ("Plugin ", strong(safe(told.plugin)), ": ")
    slow = [(point.point, point.slowdown) for point in told.points if point.slowdown]
    lines = []
    if slow:
        point, since = max(slow, key=lambda one: one[1].after - one[1].before)
        lines.append(
            line(
                *name,
                TextPiece("slow", "held"),
                f" at {safe(point, 40)} since {clock(since.since_unix_nano)} UTC"
                f" ({ago(since.since_unix_nano, now)}): {duration(since.after)}, before {duration(since.before)}.",
                *when,
            )
        )
    else:
        lines.append(line(*name, f"{safe(usual_pace(told.points))}.", *when))
    lines += _times(told)
    if told.refusals:
        lines.append(
            line(
                f"What it refused in {several(told.attempts, 'attempt')}{_known(told)}, by how many Pods that wait now,"
                " by Pods and by attempts:"
            )
        )
        lines += refusal_lines(told.refusals, now, by_plugin=False, most=3)
    else:
        lines.append(line("It refused no node in the attempts that are held."))
    details = refusal_lines(told.refusals, now, by_plugin=False, most=100, width=1_000)
    details.append(line(dim(f"{waiting:,} refusals are the latest answer of a Pod that waits.")))
    details += [
        line(
            f"Longest call at {safe(each.point, 40)}: ",
            TextPiece(f"podtrail why trace {each.slowest_trace_id.hex()}", "command"),
        )
        for each in told.points
    ]
    return lines, details


def _known(told: PluginAnswer) -> str:
    until = told.gone_until_unix_nano
    return f" (of those that ended until {clock(until)} UTC not all are known)" if until else ""


def _times(told: PluginAnswer) -> list[Line]:
    if not told.points:
        return []
    rows: list[tuple[str | TextPiece, ...]] = [tuple(map(dim, ("CALLS", "MEDIAN", "LONGEST", "POINT", "SLOW")))]
    for each in told.points[:4]:
        longest = duration(each.slowest)
        rows.append(
            (f"{each.calls:,}", duration(each.median), longest, safe(each.point or "-", 40), slow_in_short(each))
        )
    return [line("Its calls in the attempts whose spans were kept:"), *columns(rows, right=3)]


def plugins_lines(rows: Sequence[PluginRow], when: Line) -> tuple[list[Line], list[Line]]:
    """Return all plugins in words, the slowest call first, and those that did not fit."""
    if not rows:
        return [line("No plugin is named by the attempts that are held.", *when)], []
    ordered = sorted(rows, key=lambda row: row.points[0].slowest if row.points else -1, reverse=True)
    lines = [line(strong(several(len(rows), "plugin")), ", the slowest call first.", *when)]
    lines += _table(ordered[:_LISTED])
    if len(ordered) > _LISTED:
        lines.append(line(dim(f"and {len(ordered) - _LISTED:,} more: -v")))
    words = (
        "CALLS to POINT (where it took most time) and IN ALL: attempts whose spans were kept."
        " WAIT: Pods that wait for it. NO: attempts in which it said no."
    )
    return [*lines, line(dim(words))], _table(ordered)


def _table(rows: Sequence[PluginRow]) -> list[Line]:
    heads = ("CALLS", "MEDIAN", "SLOWEST", "IN ALL", "WAIT", "NO", "PLUGIN", "POINT", "SLOW")
    table: list[tuple[str | TextPiece, ...]] = [tuple(map(dim, heads))]
    for row in rows:
        one = row.points[0] if row.points else None
        times = (f"{one.calls:,}", *map(duration, (one.median, one.slowest, row.total))) if one else ("-",) * 4
        said = f"{row.waiting:,}", f"{row.attempts:,}", safe(row.plugin, 60), safe(one.point if one else "-", 40)
        table.append((*times, *said, slow_in_short(one) if one else "no span tells"))
    return columns(table, right=6)
