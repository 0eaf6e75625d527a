"""Links as a test file writes them, held against those that left the pipeline."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from podtrail.otlp import Link
from podtrail.testing.cases.case_run import CaseRun, SeenTrace, UnknownSubject
from podtrail.testing.cases.models import LinkModel
from podtrail.testing.cases.subjects import read_subject
from podtrail.testing.cases.text_reader import Misread

_TYPE: Final = "podtrail.link.type"
_RESOLVED: Final = "podtrail.link.resolved"


class Missing(NamedTuple):
    """A link that is expected, and which there are, in words."""

    wanted: str
    got: str


def missing(expected: Sequence[LinkModel], seen: SeenTrace, trial: CaseRun) -> Iterator[Missing]:
    """Yield what of the expected links is not there; an empty list expects that there is none."""
    links = seen.links
    told = "; ".join(dict.fromkeys(_text(link, trial) for link in links)) or "no links"
    if not expected and links:
        yield Missing("none", told)
    for wanted in expected:
        if not any(_is(wanted, link, seen, trial) for link in links):
            yield Missing(_wanted(wanted), told)


def models_of(seen: SeenTrace, trial: CaseRun) -> Sequence[LinkModel]:
    """Return the links of a trace as a test file writes them, each once."""
    return list(dict.fromkeys(_model(link, seen, trial) for link in seen.links))


def _model(link: Link, seen: SeenTrace, trial: CaseRun) -> LinkModel:
    kind, resolved = link.attributes.get(_TYPE), link.attributes.get(_RESOLVED)
    to: str | None = None
    if link.trace_id in trial.traces:
        to = trial.name_of(link.trace_id)
        target = trial.traces[link.trace_id].attempt
        if seen.attempt is not None and target is not None and target.pod_uid == seen.attempt.pod_uid:
            to = "attempt" + to.partition(" attempt")[2] if " attempt " in to else to
    return LinkModel(
        type=kind if isinstance(kind, str) else None, to=to, resolved=resolved if isinstance(resolved, bool) else None
    )


def _is(wanted: LinkModel, link: Link, seen: SeenTrace, trial: CaseRun) -> bool:
    if wanted.type is not None and link.attributes.get(_TYPE) != wanted.type:
        return False
    if wanted.resolved is not None and link.attributes.get(_RESOLVED) is not wanted.resolved:
        return False
    return wanted.to is None or link.trace_id in _targets(wanted.to, seen, trial)


def _targets(to: str, seen: SeenTrace, trial: CaseRun) -> set[bytes]:
    text = to
    if to.startswith(("attempt", "last")) and seen.attempt is not None:
        text = f"pod {seen.attempt.namespace}/{seen.attempt.name} {to}"
    try:
        return {found.trace_id for found in trial.find(read_subject(text, attempts=True))}
    except (UnknownSubject, Misread):
        return set()


def _text(link: Link, trial: CaseRun) -> str:
    resolved = link.attributes.get(_RESOLVED)
    kind = link.attributes.get(_TYPE)
    return f"{kind if isinstance(kind, str) else 'a link'} to {trial.name_of(link.trace_id)}" + (
        " (not kept)" if resolved is False else ""
    )


def _wanted(wanted: LinkModel) -> str:
    to = f" to {wanted.to}" if wanted.to else ""
    resolved = {None: "", True: " (kept)", False: " (not kept)"}[wanted.resolved]
    return f"{wanted.type or 'a link'}{to}{resolved}"
