"""Compares what a case expects with what became of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from podtrail.component import ComponentError
from podtrail.config import Position
from podtrail.config.types import format_duration
from podtrail.otlp import PolicyVote, Verdict
from podtrail.testing.cases.case_run import CaseRun, SeenTrace, TraceNow, UnknownSubject, try_out
from podtrail.testing.cases.expectations import CaseStep, Expectation, WantedCount, WantedTrace
from podtrail.testing.cases.link_words import missing
from podtrail.testing.cases.outcome_text import holds
from podtrail.testing.cases.suite import Case, Suite

_MOST_OF_ONE: Final = 5


class Difference(NamedTuple):
    """One thing that is not as expected."""

    what: str
    expected: str
    got: str


@dataclass(frozen=True, slots=True)
class CaseFailure:
    """An expectation that does not hold."""

    place: Position
    case: str
    what: str
    """One line: of whom what was expected, and what was got."""
    differences: Sequence[Difference] = ()
    votes: Sequence[PolicyVote] = ()
    voted_on: str = ""
    """The trace that was voted on."""

    @property
    def headline(self) -> str:
        """`file:line:column: case: what`."""
        return f"{self.place}: {self.case}: {self.what}"


@dataclass(slots=True)
class CaseResult:
    """What a case came to."""

    suite: Suite
    case: Case
    failures: list[CaseFailure] = field(default_factory=list)
    verdicts: Sequence[Verdict] = ()
    trial: CaseRun | None = None
    """None when a recording can't be used, or a processor failed."""

    @property
    def passed(self) -> bool:
        """Whether everything is as expected."""
        return not self.failures


def run_case(suite: Suite, case: Case) -> CaseResult:
    """Run a case and return what is not as expected."""
    result = CaseResult(suite, case)
    try:
        result.trial = trial = try_out(case.given, suite.settings)
    except (OSError, ValueError) as error:
        result.failures.append(CaseFailure(case.place, case.name, f"the recording can't be used: {error}"))
        return result
    except ComponentError as error:
        result.failures.append(CaseFailure(case.place, case.name, str(error)))
        return result
    result.verdicts = [verdict for seen in trial.traces.values() for verdict in seen.verdicts]
    for step in case.steps:
        result.failures += _of_step(case, step, trial)
    return result


def _of_step(case: Case, step: CaseStep, trial: CaseRun) -> Iterator[CaseFailure]:
    time = None if step.at is None else trial.begin + step.at
    when = "" if step.at is None else f" at {format_duration(step.at)}"
    for count in step.counts:
        yield from _of_count(case, count, trial, time, when)
    for expectation in step.expectations:
        yield from _of_expectation(case, expectation, trial, time, when)


def _of_count(case: Case, count: WantedCount, trial: CaseRun, time: int | None, when: str) -> Iterator[CaseFailure]:
    got = counted(trial, time).get(count.state, 0)
    if got != count.number:
        difference = Difference(f"traces {count.state}", str(count.number), str(got))
        what = f"expected {count.number} traces {count.state}{when}, got {got}"
        yield CaseFailure(count.place, case.name, what, [difference])


def counted(trial: CaseRun, time: int | None) -> Mapping[str, int]:
    """Return how many traces are in which state at a time."""
    found: dict[str, int] = {}
    for seen in trial.traces.values():
        state = seen.at(time, sampled=trial.sampled).state
        if state is not None:
            found[state] = found.get(state, 0) + 1
    return found


def _of_expectation(
    case: Case, expectation: Expectation, trial: CaseRun, time: int | None, when: str
) -> Iterator[CaseFailure]:
    try:
        found = trial.find(expectation.subject)
    except UnknownSubject as error:
        yield CaseFailure(expectation.place, case.name, f"{expectation.subject}: {error}")
        return
    failing = 0
    for seen in found:
        now = seen.at(time, sampled=trial.sampled)
        differing = differences(expectation.wanted, seen, now, trial)
        if not differing:
            continue
        failing += 1
        if failing > _MOST_OF_ONE:
            continue
        name = trial.name_of(seen.trace_id)
        what = headline(f"{name}{when}", differing)
        votes = now.verdict.explained() if now.verdict is not None else ()
        yield CaseFailure(expectation.place, case.name, what, differing, votes, name)
    if failing > _MOST_OF_ONE:
        what = f"{expectation.subject}{when}: {failing} of {len(found)} are not as expected, {_MOST_OF_ONE} are shown"
        yield CaseFailure(expectation.place, case.name, what)


def headline(whom: str, differing: Sequence[Difference]) -> str:
    """Return the first difference in one line."""
    what, expected, got = differing[0]
    return f"{whom}: expected {expected if what == 'decision' else f'{what} {expected}'}, got {got}"


def differences(wanted: WantedTrace, seen: SeenTrace, now: TraceNow, trial: CaseRun) -> list[Difference]:
    """Return what of what is wanted does not hold for a trace."""
    return list(_differences(wanted, seen, now, trial))


def _differences(wanted: WantedTrace, seen: SeenTrace, now: TraceNow, trial: CaseRun) -> Iterator[Difference]:
    expected, verdict = wanted.expected, now.verdict
    if now.state != expected.state:
        yield Difference("decision", expected.state, described(now))
    policy, reason = (verdict.policy, verdict.reason) if verdict else ("", "")
    if expected.by is not None and policy != expected.by:
        yield Difference("by", expected.by or "no policy", policy or "no policy")
    if expected.because is not None and not holds(expected.because, reason):
        yield Difference("because", expected.because, reason or "no reason")
    if wanted.number is not None and seen.number != wanted.number:
        yield Difference("number", str(wanted.number), "none" if seen.number is None else str(seen.number))
    if wanted.spans is not None and len(seen.left) != wanted.spans:
        yield Difference("spans", str(wanted.spans), str(len(seen.left)))
    if wanted.links is not None:
        for one in missing(wanted.links, seen, trial):
            yield Difference("links", one.wanted, one.got)


def described(now: TraceNow) -> str:
    """Return a state with what decided it."""
    if now.state is None:
        return "nothing: it has not arrived yet"
    if now.verdict is None:
        return now.state
    by = f" by {now.verdict.policy}" if now.verdict.policy else ""
    return f"{now.state}{by} ({now.verdict.reason})" if now.verdict.reason else f"{now.state}{by}"
