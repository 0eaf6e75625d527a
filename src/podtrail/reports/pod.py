"""A Pod's story as a report."""

from collections.abc import Sequence

from podtrail.pages.chart import span_bar
from podtrail.reports.document import (
    DrawnBar,
    ForeignText,
    PodCell,
    ReportCell,
    ReportDocument,
    ReportLines,
    ReportTable,
    TraceCell,
    heads,
    left_out,
    numbers,
    table,
)
from podtrail.story import (
    AttemptStory,
    Library,
    LifeMoment,
    PodStory,
    TraceStory,
    answer,
    clock,
    duration,
    sentence,
    stamp,
    where_in_a_line,
)
from podtrail.story.compare import compare
from podtrail.story.lines import plain
from podtrail.story.pod import who_said_no
from podtrail.story.pod_facts import pod_title

_MOST_ATTEMPTS = 20
_MOST_SPANS = 60


def pod_report(library: Library, pod: PodStory, now: int, *, live: bool, page: str = "") -> ReportDocument:
    """Return the report of a Pod at `now`; `live`: that is the present. `page` is the address that shows it."""
    told = library.why_pod(pod, now, live=live)
    created, _ = library.requests_of(pod)
    moments = library.life_of(pod) if pod.on_node else ()
    spent = " ".join(map(plain, where_in_a_line(pod, created))) if moments else ""
    held = next((one for one in reversed(pod.attempts) if library.store.get(one.trace_id)), None)
    trace = library.trace(held.trace_id) if held else None
    parts: list[ReportTable | ReportLines] = []
    if told is not None:
        parts.append(ReportLines("Why", told.lines))
    parts += [*_refusals(pod), *_life(moments, spent), *_attempts(library, pod)]
    parts += _trace(held, trace) if held and trace else []
    if len(pod.attempts) > 1:
        parts.append(ReportLines("First and last", compare(pod.attempts[0], pod.attempts[-1])))
    return ReportDocument(
        kind="Pod",
        title=PodCell(pod_title(pod), pod.key),
        lead=sentence(pod, now),
        facts=_facts(pod),
        parts=parts,
        page=page,
        notes=[f"Told as of {stamp(now)}{'' if live else ', the end of what is held'}. Times are UTC."],
    )


def _facts(pod: PodStory) -> list[tuple[str, ReportCell]]:
    last = pod.last
    facts: list[tuple[str, ReportCell]] = [
        ("state", "slow" if pod.slow else pod.state),
        ("uid", ForeignText(pod.uid or "not in its spans")),
        ("attempts", f"{pod.tries:,}"),
    ]
    if pod.since_unix_nano is not None:
        facts.append(("queued since", stamp(pod.since_unix_nano)))
    if last is not None:
        facts += [("last try", stamp(last.start_unix_nano)), ("trace of it", TraceCell(last.trace_id))]
    if pod.node:
        facts.append(("node", ForeignText(pod.node)))
    if last is not None and last.profile:
        facts.append(("profile", ForeignText(last.profile)))
    if last is not None and last.generation:
        facts.append(("configuration", ForeignText(last.generation)))
    return facts


def _refusals(pod: PodStory) -> list[ReportTable]:
    told = pod.explained
    if told is None or told.result == "Success":
        return []
    rows: list[list[ReportCell]] = [
        [
            ForeignText(no.plugin or "not named"),
            "-" if no.nodes is None else f"{no.nodes:,}",
            ForeignText(no.status),
            ForeignText(no.reason),
            ForeignText(", ".join(no.names)),
        ]
        for no in told.why.rejections
    ]
    columns = heads("Plugin", *numbers("Nodes"), "Status", "Reason", "Some of them")
    return table(f"Who said no in attempt {told.number}", columns, rows)


def _life(moments: Sequence[LifeMoment], spent: str) -> list[ReportTable]:
    rows: list[list[ReportCell]] = [
        [
            clock(one.at_unix_nano),
            duration(one.at_unix_nano - moments[0].at_unix_nano),
            ForeignText(one.what),
            duration(one.took),
        ]
        for one in moments
    ]
    return table(
        "Its life", heads("At", *numbers("Since the first"), "What", *numbers("Took")), rows, ForeignText(spent)
    )


def _attempts(library: Library, pod: PodStory) -> list[ReportTable]:
    attempts = pod.attempts
    rows: list[list[ReportCell]] = []
    for at, one in enumerate(attempts):
        same = at > 0 and answer(attempts[at - 1]) == answer(one)
        if same and at < len(attempts) - 1:
            continue
        rows.append(
            [
                f"{one.number or 0:,}",
                clock(one.start_unix_nano),
                ForeignText(one.result or "not told"),
                duration(one.queue_wait),
                duration(one.duration),
                "same" if same else ForeignText(_said(one)),
                ForeignText(library.decision(one)),
                TraceCell(one.trace_id),
            ]
        )
    rows = rows if len(rows) <= _MOST_ATTEMPTS else [rows[0], *rows[1 - _MOST_ATTEMPTS :]]
    columns = heads(*numbers("#"), "Started", "Result", *numbers("Queue", "Took"), "Answer", "Spans", "Trace")
    note = f"Of {pod.tries:,} attempts those are listed whose answer is another than that of the one before."
    return table("Attempts", columns, rows, note if len(rows) < pod.tries else "")


def _said(attempt: AttemptStory) -> str:
    if attempt.result == "Success":
        return attempt.selected_node
    return attempt.bind_error or who_said_no(attempt.why) or attempt.message


def _trace(attempt: AttemptStory, trace: TraceStory) -> list[ReportTable]:
    shown = trace.rows[:_MOST_SPANS]
    rows: list[list[ReportCell]] = [
        [
            ForeignText("· " * min(row.depth, 15) + (row.name or "(no name)")),
            duration(row.offset),
            duration(row.duration),
            DrawnBar(*span_bar(row.offset, row.duration, trace.duration), bad=row.error),
        ]
        for row in shown
    ]
    columns = heads("Span", *numbers("Starts", "Took"), "Drawn")
    title = f"Trace of attempt {attempt.number}, {duration(trace.duration)}"
    return table(title, columns, rows, left_out(len(rows), trace.span_count, "spans"))
