"""What happened in a range of time, as a report."""

from collections.abc import Iterator, Mapping

from podtrail.pages.chart import AXIS
from podtrail.reports.document import (
    DrawnBar,
    ForeignText,
    NodeCell,
    PluginCell,
    PodCell,
    ReportCell,
    ReportDocument,
    ReportTable,
    TraceCell,
    heads,
    left_out,
    numbers,
    table,
)
from podtrail.story import DECISION_WORDS, clock, duration, several, stamp
from podtrail.story.change_question import change_rows, change_sentence, generations
from podtrail.story.incident import Incident
from podtrail.story.listing import count_words
from podtrail.story.pod_facts import pod_title
from podtrail.story.slow_part import SlowPart, slow_part


def incident_report(incident: Incident, *, page: str = "") -> ReportDocument:
    """Return the report of an incident.

    Args:
        incident: what happened.
        page: the address that shows it.
    """
    span = incident.range
    facts = [
        ("from", stamp(span.start)),
        ("to", stamp(span.end)),
        ("attempts", f"{'at least ' if incident.at_least else ''}{incident.attempts_in_all:,}"),
        ("Pods tried", f"{incident.tried:,}"),
        ("Pods concerned", f"{incident.pods_in_all:,}"),
        ("decisions", _decisions(incident.decisions)),
    ]
    parts = [
        *_over_time(incident),
        *_reasons(incident),
        *_pods(incident),
        *_changes(incident),
        *_beside(incident),
        *_plugins(incident),
        *_slowest(incident),
        *_nodes(incident),
        *_failures(incident),
    ]
    return ReportDocument(
        kind="Incident",
        title=span.words,
        lead=_lead(incident),
        facts=facts,
        parts=parts,
        page=page,
        notes=tuple(incident_notes(incident)),
    )


def _lead(incident: Incident) -> str:
    told = incident.beside
    if told is None:
        return incident.sentence
    changed = f"The scheduler's configuration changed at {clock(told.at_unix_nano)}"
    return f"{incident.sentence} {changed}: {generations(told)}. {change_sentence(told)}"


def incident_notes(incident: Incident) -> Iterator[str]:
    """Yield what to know about the figures."""
    yield "Times are UTC, by the clock of the spans. An attempt belongs to the time in which it ended."
    if incident.earliest_unix_nano > incident.range.before().start:
        yield f"The earliest attempt that is known began at {stamp(incident.earliest_unix_nano)}."
    if incident.before_at_least:
        until = stamp(incident.gone_until_unix_nano)
        yield f"Not every attempt that ended until {until} is still counted: there were more."
    if incident.pods_gone:
        yield f"No longer held, so counted but not listed: {several(incident.pods_gone, 'Pod')} tried in this time."
    if incident.briefly:
        of = several(incident.briefly, "attempt")
        yield f"Of {of} in this time it is not known where the time went: plugins may have taken longer than is told."


def _decisions(decisions: Mapping[str, int]) -> str:
    told = [f"{count:,} {DECISION_WORDS.get(what, 'not decided')}" for what, count in decisions.items()]
    return ", ".join(told) or "none"


def _over_time(incident: Incident) -> list[ReportTable]:
    results = list(incident.attempts)
    most = max(sum(part.attempts.values()) for part in incident.slices) or 1
    rows: list[list[ReportCell]] = [
        [
            clock(part.start_unix_nano),
            *(f"{part.attempts.get(result, 0):,}" for result in results),
            duration(part.slowest) if part.slowest else "-",
            DrawnBar(0, AXIS * sum(part.attempts.values()) // most),
        ]
        for part in incident.slices
    ]
    columns = heads("From", *numbers(*map(ForeignText, results), "Slowest"), "Drawn")
    return table("Attempts over time", columns, rows if results else [])


def _reasons(incident: Incident) -> list[ReportTable]:
    rows: list[list[ReportCell]] = [
        [
            PluginCell(one.plugin, one.plugin) if one.plugin else "not named",
            ForeignText(one.reason),
            f"{one.attempts:,}",
            f"{one.pods:,}",
            clock(one.first_unix_nano),
            clock(one.last_unix_nano),
        ]
        for one in incident.reasons
    ]
    columns = heads("Plugin", "Reason", *numbers("Attempts", "Pods"), "First", "Last")
    return table("Why attempts failed", columns, rows, left_out(len(rows), incident.reasons_in_all, "reasons"))


def _pods(incident: Incident) -> list[ReportTable]:
    rows: list[list[ReportCell]] = [
        [
            PodCell(pod_title(pod), pod.key),
            "slow" if pod.slow else pod.state,
            f"{pod.attempts:,}",
            f"{pod.failed:,}",
            duration(pod.slowest),
            ForeignText(pod.why),
        ]
        for pod in incident.pods
    ]
    columns = heads("Pod", "Now", *numbers("Attempts", "Failed", "Longest"), "Why")
    return table("Pods concerned", columns, rows, left_out(len(rows), incident.pods_in_all, "Pods"))


def _changes(incident: Incident) -> list[ReportTable]:
    rows: list[list[ReportCell]] = [
        [
            clock(change.at_unix_nano),
            ForeignText(change.before),
            ForeignText(change.after),
            f"{change.pods:,}",
            TraceCell(change.trace_id) if change.trace_id else "not told",
        ]
        for change in incident.changes
    ]
    columns = heads("First attempt", "Before", "After", *numbers("Pods"), "Trace that made it")
    told = ", ".join(f"podtrail why change {stamp(change.at_unix_nano)}" for change in incident.changes[-1:])
    return table("Changes of the scheduler's configuration", columns, rows, f"Before and after the last: {told}")


def _beside(incident: Incident) -> list[ReportTable]:
    if incident.beside is None:
        return []
    (_, *sides), *rows = change_rows(incident.beside)
    cells: list[list[ReportCell]] = [[ForeignText(what), *beside] for what, *beside in rows]
    title = f"Before and after the change at {clock(incident.beside.at_unix_nano)}"
    return table(title, heads("What", *numbers(*sides)), cells, change_sentence(incident.beside))


def _plugins(incident: Incident) -> list[ReportTable]:
    rows: list[list[ReportCell]] = [
        [
            PluginCell(one.plugin, one.plugin),
            f"{one.refused:,}",
            f"{one.pods:,}",
            duration(one.slowest) if one.slowest else "-",
            ForeignText(one.point),
            TraceCell(one.trace_id),
        ]
        for one in incident.plugins
    ]
    columns = heads("Plugin", *numbers("Attempts refused", "Pods", "Slowest"), "Where", "Trace of the slowest")
    note = left_out(len(rows), incident.plugins_in_all, "plugins") or "Refused: it said no to the bind, else to nodes."
    return table("Plugins", columns, rows, note)


def _slowest(incident: Incident) -> list[ReportTable]:
    rows: list[list[ReportCell]] = []
    for one in incident.slowest:
        attempt, slowest = one.attempt, slow_part(one.attempt)
        rows.append(
            [
                PodCell(pod_title(one), one.key),
                f"{attempt.number or 0:,}",
                clock(attempt.start_unix_nano),
                ForeignText(attempt.result or "no result"),
                duration(attempt.duration),
                _mostly(slowest),
                TraceCell(attempt.trace_id),
            ]
        )
    columns = heads("Pod", *numbers("Attempt"), "Started", "Result", *numbers("Took"), "Mostly", "Trace")
    return table("Slowest attempts", columns, rows)


def _mostly(part: SlowPart | None) -> ReportCell:
    if part is None:
        return "-"
    words = f"{part.what} {duration(part.took)}"
    return PluginCell(words, part.plugin) if part.plugin else ForeignText(words)


def _nodes(incident: Incident) -> list[ReportTable]:
    rows: list[list[ReportCell]] = [
        [
            NodeCell(one.node),
            f"{one.bound:,}",
            count_words(one.refused, at_least=one.at_least),
            f"{one.failures:,}",
        ]
        for one in incident.nodes
    ]
    columns = heads("Node", *numbers("Pods bound", "Attempts that refused it", "Failures there"))
    named = "A source names about ten nodes of a refusal; one of all nodes counts for each."
    note = f"{left_out(len(rows), incident.nodes_in_all, 'nodes')} {named}".strip()
    return table("Nodes", columns, rows, note)


def _failures(incident: Incident) -> list[ReportTable]:
    rows: list[list[ReportCell]] = [
        [ForeignText(one.reason), f"{one.times:,}", f"{one.pods:,}", ForeignText(one.error)]
        for one in incident.failures
    ]
    return table("Failures on nodes", heads("Reason", *numbers("Times", "Pods"), "Last, in the kubelet's words"), rows)
