"""Where the time of an attempt went, and how long that usually takes."""

from collections.abc import Iterable

from podtrail.story.attempt import AttemptStory
from podtrail.story.bind import read_bind_refusal
from podtrail.story.lines import Line, TextPiece, columns, dim, line, safe
from podtrail.story.pace import PluginPace
from podtrail.story.pod import PodStory, slow_attempt, who_said_no
from podtrail.story.words import clock, duration, several

_ALL = 99


def how_it_went(pod: PodStory, pace: PluginPace | None) -> list[Line]:
    """Return where the time went, of the slowest attempt when it was slow."""
    attempt = slow_attempt(pod) if pod.slow else pod.last
    if attempt is None:
        return []
    of = f"Attempt {attempt.number}: queue" if pod.tries > 1 else "Queue"
    lines = [*_before(pod), spent(attempt, of)]
    if pod.slow:
        lines += time_table(attempt, pace)
    return lines


def spent(attempt: AttemptStory, queue: str = "Queue") -> Line:
    """Return how long queue, scheduling and binding took."""
    if (attempt.queue_wait, attempt.cycle, attempt.binding) == (None, None, None):
        which = "" if queue == "Queue" else f" in attempt {attempt.number}"
        return line(f"How long queue, scheduling and binding took{which}: not in this source.")
    cycles = f"scheduling {_told(attempt.cycle)}, binding {_told(attempt.binding)}"
    if attempt.cycle is None and attempt.binding is None:
        cycles = f"scheduling and binding {_told(None)}"
    elif attempt.binding is None and attempt.result != "Success":
        cycles = f"scheduling {_told(attempt.cycle)}"  # it did not come to the binding
    return line(f"{queue} {_told(attempt.queue_wait)}, {cycles}.")


def _told(length: int | None) -> str:
    return "not in this source" if length is None else duration(length)


def _before(pod: PodStory) -> Iterable[Line]:
    """Yield what the attempts before the last one met with."""
    if len(pod.attempts) < 2:
        return
    last = pod.attempts[-2]
    bound = any(attempt.result == "Success" for attempt in pod.attempts[:-1])  # one uid, twice
    before = f"{several(pod.tries - 1, 'attempt')} before{'' if bound else ' failed'}, the last of them"
    result = safe(last.result, 60) or "no result"
    said = read_bind_refusal(last.bind_error).why if last.bind_error else who_said_no(last.why, _ALL)
    if last.result == "Success":
        said = last.selected_node
    yield line(f"{before}: {result}{': ' if said else ''}{safe(said)}.")


def time_table(attempt: AttemptStory, pace: PluginPace | None) -> list[Line]:
    """Return where the time of an attempt went."""
    took = attempt.duration
    if not attempt.phases or not took:
        return [line(dim("Where the time went: not in this source (the spans of this attempt are not here)."))]
    rows: list[tuple[str | TextPiece, ...]] = []
    for phase in attempt.phases:
        share = round(100 * min(phase.took, took) / took)
        if not share and rows:
            continue
        by_one = phase.plugin and 2 * phase.plugin_took >= phase.took
        what = f"plugin {safe(phase.plugin, 60)}" if by_one else several(phase.plugins, "plugin")
        usual = f"its median: {duration(pace.median)}" if pace and by_one and not rows and pace.calls > 1 else ""
        length = phase.plugin_took if by_one else phase.took
        percent = TextPiece(f"{share} %", "" if rows else "held")
        rows.append((percent, f"{phase.name}, {what}" if phase.plugins else phase.name, duration(length), dim(usual)))
    lines = columns(rows, right=1)
    slowest = attempt.phases[0].plugin
    if pace and slowest and pace.calls > 1 and pace.slow and attempt.phases[0].plugin_took >= 2 * pace.median:
        often = f"took at least half as long in {pace.slow:,} of its last {pace.calls:,} calls seen"
        lines.append(line(f"{safe(slowest, 60)} {often}, first at {clock(pace.first_slow)} UTC."))
    return lines
