"""What `podtrail reconstruct` reports: what was read, what came of it, what could not be told."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from podtrail.config import printable
from podtrail.reconstruction import Counted, LineCounts, Outcome

_NO_RESULT = "result not known"
_MOST_ROWS = 20


def as_json(
    line_counts: Mapping[str, LineCounts], outcome: Outcome, counted: Sequence[Counted], joined: Mapping[str, int]
) -> dict[str, Any]:
    """Return the report as a mapping for JSON."""
    return {
        "read": {
            source: {
                "lines": counts.lines,
                "used": counts.used,
                "other": counts.other,
                "continued": counts.continued,
                "unknown": dict(counts.unknown),
                "notes": dict(counts.notes),
            }
            for source, counts in line_counts.items()
        },
        "attempts": _by_result(outcome),
        "sources": dict(outcome.sources),
        "lacking": dict(outcome.lacking),
        "notes": dict(outcome.notes),
        "countedByScheduler": dict(_counted(counted)),
        "linkedRequests": dict(joined),
    }


def print_report(
    line_counts: Mapping[str, LineCounts],
    outcome: Outcome,
    counted: Sequence[Counted],
    joined: Counter[str],
    out: TextIO,
) -> None:
    """Print the report as tables."""
    print("{:10} {:>10} {:>10} {:>10} {:>10}".format("READ", "LINES", "USED", "OTHER", "UNKNOWN"), file=out)
    for source, counts in line_counts.items():
        unknown = counts.unknown.total()
        other = counts.other + counts.continued
        print(f"{source:10} {counts.lines:>10,} {counts.used:>10,} {other:>10,} {unknown:>10,}", file=out)
    for line in _notes(line_counts, outcome):
        print(line, file=out)
    attempts = _by_result(outcome)
    print("\n{:30} {:>10} {:>22}".format("ATTEMPTS", "REBUILT", "COUNTED BY SCHEDULER"), file=out)
    told = _counted(counted)
    for result in {**attempts, **told}:
        by_scheduler = f"{told[result]:,}" if result in told else "-"
        print(f"{printable(result):30} {attempts.get(result, 0):>10,} {by_scheduler:>22}", file=out)
    print(f"{'in all':30} {sum(attempts.values()):>10,} {f'{told.total():,}' if told else '-':>22}", file=out)
    _print_counts("TOLD BY", outcome.sources, out)
    _print_counts("NOTHING TELLS", outcome.lacking, out)
    _print_counts("REQUESTS TO THE API SERVER, LINKED", joined, out)


def _notes(line_counts: Mapping[str, LineCounts], outcome: Outcome) -> Iterator[str]:
    for source, counts in line_counts.items():
        for reason, count in counts.unknown.most_common(_MOST_ROWS):
            yield f"{source}: {count:,} unknown: {printable(reason)}"
        for note, count in counts.notes.most_common(_MOST_ROWS):
            yield f"{source}: {printable(note)}: {count:,}"
    for note, count in outcome.notes.most_common(_MOST_ROWS):
        yield f"{printable(note)}: {count:,}"


def _print_counts(title: str, counts: Counter[str], out: TextIO) -> None:
    if not counts:
        return
    print(f"\n{title:40} {'ATTEMPTS':>10}", file=out)
    for what, count in counts.most_common(_MOST_ROWS):
        print(f"{printable(what) or '-':40} {count:>10,}", file=out)


def _by_result(outcome: Outcome) -> dict[str, int]:
    sums: Counter[str] = Counter()
    for (_, result), count in sorted(outcome.attempts.items()):
        sums[result or _NO_RESULT] += count
    return dict(sums)


def _counted(counted: Sequence[Counted]) -> Counter[str]:
    sums: Counter[str] = Counter()
    for one in counted:
        sums[one.result] += one.attempts
    return sums
