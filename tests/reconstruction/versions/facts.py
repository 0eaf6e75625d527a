"""Which facts of attempts are known from each source: the table of docs/stock-scheduler.md, from the recordings."""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from tests.reconstruction.versions.matrix import HERE, RUNS, VERSIONS, Recording
from tests.reconstruction.versions.rebuilding import Attempt, attempts_of, results

DOCUMENT: Final = HERE.parents[2] / "docs" / "stock-scheduler.md"
BEGIN: Final = "<!-- facts by version: written by ./dev versions --table -->"
END: Final = "<!-- end of facts -->"
_FITS_SEVERAL: Final = ("web-", "again")
_PREEMPTING: Final = "boss"
_NONE: Final = "–"


def _events(attempt: Attempt) -> Iterable[tuple[str, Any]]:
    return ((span.name, event) for span in attempt.spans for event in span.events)


def _is_inferred(attributes: Any, what: str) -> bool:
    """Whether `podtrail.inferred` names a fact."""
    inferred = attributes.get("podtrail.inferred", ())
    return any(what in str(each).partition(": ")[0].split(", ") for each in inferred)


def _names_plugin(attempt: Attempt) -> bool:
    refused = [name for name, event in _events(attempt) if event.name == "plugin rejected"]
    return bool(refused) and "plugin: unknown" not in refused


def _counts_nodes(attempt: Attempt) -> bool:
    return any("scheduler.nodes.count" in event.attributes for _, event in _events(attempt))


def _names_nodes(attempt: Attempt) -> bool:
    return any("scheduler.nodes.names" in event.attributes for _, event in _events(attempt))


def _has_scores(attempt: Attempt) -> bool:
    return any(str(key).startswith("scheduler.score") for span in attempt.spans for key in span.attributes)


def _has_preemption(attempt: Attempt) -> bool:
    return any(name == "SchedulePod" and event.name == "preemption" for name, event in _events(attempt))


def _has_bind(attempt: Attempt) -> bool:
    return any(span.name == "bindingCycle" and not _is_inferred(span.attributes, "start") for span in attempt.spans)


class _Fact(NamedTuple):
    """A fact, the attempts that can have it, and how it shows."""

    title: str
    concerns: Callable[[Attempt], bool]
    is_known: Callable[[Attempt], bool]


def _is_failure_of_filters(attempt: Attempt) -> bool:
    return attempt.result == "Unschedulable" and attempt.pod in ("giant", "picky", "late", "doomed")


_FACTS: Final = (
    _Fact("result", lambda attempt: True, lambda attempt: bool(attempt.result)),
    _Fact("reason by plugin", lambda attempt: attempt.result == "Unschedulable", _names_plugin),
    _Fact("rejecting nodes: number", _is_failure_of_filters, _counts_nodes),
    _Fact("their names", _is_failure_of_filters, _names_nodes),
    _Fact("scores", lambda a: a.result == "Success" and a.pod.startswith(_FITS_SEVERAL), _has_scores),
    _Fact("duration", lambda attempt: True, lambda attempt: not _is_inferred(attempt.root, "start")),
    _Fact("wait in the queue", lambda attempt: True, lambda attempt: "scheduler.queue_wait_ms" in attempt.root),
    _Fact("preemption", lambda a: (a.pod, a.result) == (_PREEMPTING, "Unschedulable"), _has_preemption),
    _Fact("bind", lambda attempt: attempt.result == "Success", _has_bind),
)


def _cells(recording: Recording, source: str) -> tuple[str, ...]:
    attempts = attempts_of(recording, source)
    found, counted = results(attempts), recording.counted
    complete = [result for result in sorted(counted) if found[result] == counted[result]]
    some = [f"some {result}" for result in sorted(counted) if 0 < found[result] < counted[result]]
    share = "all" if found == counted else ", ".join(complete + some) or _NONE
    return (share, *(_share(fact, attempts) for fact in _FACTS))


def _share(fact: _Fact, attempts: list[Attempt]) -> str:
    known = [fact.is_known(attempt) for attempt in attempts if fact.concerns(attempt)]
    return _NONE if not any(known) else "yes" if all(known) else "some"


def table(recordings: Callable[[str, str], Recording]) -> str:
    """Return the table in Markdown, of equal rows one; `recordings` gives the one of a version and a run's name."""
    rows: dict[tuple[str, tuple[str, ...]], dict[str, list[str]]] = {}
    for run in RUNS:
        if run.story != "plain":
            continue
        level = f"{run.verbosity}{', JSON' if run.format == 'json' else ''}"
        for source in ("log", "watch", "both"):
            for minor in VERSIONS:
                cells = _cells(recordings(minor, run.name), source)
                row = rows.setdefault((level if source != "watch" else "any", cells), {})
                if minor not in row.setdefault(source, []):
                    row[source].append(minor)
    titles = ("version", "`-v`", "source", "attempts", *(fact.title for fact in _FACTS))
    lines = [titles, ("---",) * len(titles)]
    for (level, cells), row in rows.items():
        equal = len({tuple(minors) for minors in row.values()}) == 1
        for sources, minors in [(", ".join(row), next(iter(row.values())))] if equal else row.items():
            lines.append((_versions(minors), level, sources, *cells))
    return "\n".join(f"|{'|'.join(f' {cell} ' if cell != '---' else cell for cell in line)}|" for line in lines)


def _versions(minors: list[str]) -> str:
    known = [minor for minor in VERSIONS if minor in minors]
    whole = list(VERSIONS)[list(VERSIONS).index(known[0]) : list(VERSIONS).index(known[-1]) + 1]
    return f"{known[0]} to {known[-1]}" if len(known) > 1 and known == whole else ", ".join(known)


def replaced(document: str, text: str) -> str:
    """Return a document with a table between its two marks."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    assert after, f"the document needs {BEGIN} and {END}"
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{after}"
