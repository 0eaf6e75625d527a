"""The summary of a run on a terminal, or as JSON. Text from spans is escaped first; rich never sees its markup."""

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TextIO

from podtrail.cli.typed_program import typed_program
from podtrail.story import LedgerLine, RunSummary, clip, duration, shell_word, to_json, visible

if TYPE_CHECKING:
    from rich.text import Text

_LABEL = 11
_NUMBER = 6
_USUAL_PAGE = "http://localhost:15927/"
"""Where `podtrail why` asks by itself."""
_REASON = 120
"""Longest reason; a longer one is clipped in the middle."""


def as_json(summary: RunSummary) -> str:
    """Return the summary as one JSON object, the ledgers with their difference."""
    told = to_json(summary)
    assert isinstance(told, dict)
    ledgers = [{**_object(ledger), "difference": ledger.difference} for ledger in summary.ledgers]
    return json.dumps({**told, "balanced": summary.balanced, "ledgers": ledgers}, ensure_ascii=False)


def _object(ledger: LedgerLine) -> dict[str, object]:
    told = to_json(ledger)
    assert isinstance(told, dict)
    return dict(told)


def print_summary(summary: RunSummary, out: TextIO, *, serving: bool = False, colour: bool | None = None) -> None:
    """Print the summary. `serving`: the page still is; `colour`: by default on a terminal without NO_COLOR."""
    from rich.console import Console

    if colour is None:
        colour = out.isatty() and not os.environ.get("NO_COLOR")
    system: Literal["standard"] | None = "standard" if colour else None
    console = Console(file=out, color_system=system, force_terminal=colour, highlight=False)
    for line in _lines(summary, serving=serving):
        console.print(line, soft_wrap=True)


def _lines(summary: RunSummary, *, serving: bool) -> "list[Text]":
    from rich.text import Text

    lines = [Text(f"podtrail: done in {duration(summary.took)}")]
    pods = sum(summary.pods.values())
    if pods:
        forgotten = f"; {summary.forgotten_pods:,} older are no longer held" if summary.forgotten_pods else ""
        lines.append(_row("Pods", pods, _counts(summary.pods) + forgotten))
    else:
        lines.append(_row("Pods", 0, "none seen: no span was the root of a scheduling attempt (SchedulePod)"))
    if summary.attempts:
        lines.append(_row("Attempts", sum(summary.attempts.values()), _counts(summary.attempts)))
    if summary.decided:
        kept = sum(summary.kept.values())
        by_policy = ", ".join(f"{visible(clip(policy))} {count:,}" for policy, count in summary.kept.items())
        share = f"{kept:,} kept ({100 * kept / summary.decided:.0f} %)"
        lines.append(_row("Traces", summary.decided, share + (f": {by_policy}" if by_policy else "")))
    lines += [_ledger(ledger, label=len(summary.ledgers) > 1) for ledger in summary.ledgers]
    if summary.links:
        lines.append(_row("Links", sum(summary.links.values()), _counts(summary.links) + _unresolved(summary)))
    lines += _waiting(summary, serving=serving)
    if summary.written:
        lines.append(_row("Written", None, ", ".join(map(visible, summary.written))))
    if summary.page and serving:
        lines.append(_row("Page", None, f"{visible(summary.page)}   serving, Ctrl-C stops"))
    return lines


def _row(label: str, number: int | None, rest: str, style: str = "") -> "Text":
    from rich.text import Text

    line = Text(f"{label:<{_LABEL}}")
    if number is not None:
        line.append(f"{number:>{_NUMBER},}".rjust(_NUMBER), "bold").append("  ")
    return line.append(rest, style)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {visible(clip(name))}" for name, count in counts.items())


def _unresolved(summary: RunSummary) -> str:
    targets = {
        "to traces that were not kept": summary.links_to_dropped,
        "to traces never seen": summary.unresolved_links - summary.links_to_dropped,
    }
    told = ", ".join(f"{links:,} {target}" for target, links in targets.items() if links)
    return f"; {told}" if told else ""


def _ledger(ledger: LedgerLine, *, label: bool) -> "Text":
    dropped = sum(ledger.dropped.values())
    reasons = ", ".join(f"{visible(reason)} {count:,}" for reason, count in ledger.dropped.items() if count)
    created = f"+ {ledger.created:,} created " if ledger.created else ""
    seldom = {
        "rejected": ledger.rejected,
        f"dropped ({reasons})": dropped,
        "in memory": ledger.in_memory,
        "in queue": ledger.in_queue,
    }
    delivered = f"{ledger.delivered:,} delivered" + (f" to {visible(ledger.label)}" if label else "")
    terms = (delivered, f"{ledger.sampled_out:,} sampled out", *(f"{n:,} {what}" for what, n in seldom.items() if n))
    equation = f"{created}= {' + '.join(terms)}"
    if not ledger.difference:
        return _row("Spans", ledger.received, equation)
    missing = f"{ledger.difference:,} missing" if ledger.difference > 0 else f"{-ledger.difference:,} too many"
    return _row("Spans", ledger.received, f"{equation}   DOES NOT BALANCE: {missing}", "red")


def _waiting(summary: RunSummary, *, serving: bool) -> "list[Text]":
    """Return what Pods wait for, each with a question that can be asked now: of the page, or of what was written."""
    lines = []
    reasons = [visible(clip(waiting.reason, _REASON)) for waiting in summary.waiting]
    width = max(map(len, reasons), default=0)
    if serving:
        whom = f" --endpoint {shell_word(summary.page)}" if summary.page != _USUAL_PAGE else ""
    else:
        whom = f" --from {' '.join(map(shell_word, summary.written))}"
    program = typed_program()
    askable = bool(summary.page) if serving else bool(summary.written)
    for at, (waiting, reason) in enumerate(zip(summary.waiting, reasons, strict=True)):
        example = shell_word(f"{waiting.namespace}/{waiting.name}" if waiting.name else waiting.key)
        if waiting.cluster:
            example = f"{example} --cluster {shell_word(waiting.cluster)}"
        row = _row("" if at else "Waiting", waiting.pods, reason)
        if askable and (serving or not waiting.gated):  # a gated Pod leaves no span in a file
            row.append(f"{'':<{width - len(reason)}}   e.g. {program} why pod {example}{whom}")
        lines.append(row)
    if summary.more_waiting:
        lines.append(_row("", summary.more_waiting, "for other reasons"))
    return lines
