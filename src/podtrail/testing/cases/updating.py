"""Writes what is into a test file: only what differs changes, so comments and layout stay."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from podtrail.config import Position
from podtrail.config.nodes import MapNode, Node, ScalarNode
from podtrail.testing.cases.case_run import CaseRun, SeenTrace, TraceNow, UnknownSubject
from podtrail.testing.cases.expectations import CaseStep, Expectation
from podtrail.testing.cases.judging import CaseResult, counted, differences
from podtrail.testing.cases.link_words import models_of
from podtrail.testing.cases.outcome_text import Expected, State, holds, read_state
from podtrail.testing.cases.subjects import Subject
from podtrail.testing.cases.text_positions import Mark, Place, marks, scalar


class Edit(NamedTuple):
    """A piece of text in the place of another."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class Update:
    """A test file as it should be."""

    text: str
    changes: int = 0
    left: list[str] = field(default_factory=list)
    """What could not be written, a line each."""


def updated(text: str, results: Sequence[CaseResult]) -> Update:
    """Return a test file with what its cases came to."""
    update = Update(text)
    writer = _Writer(text, update.left)
    for result in results:
        writer.take(result)
    update.changes = len(writer.edits)
    for edit in sorted(writer.edits, reverse=True):
        update.text = update.text[: edit.start] + edit.text + update.text[edit.end :]
    return update


class _Writer:
    """Gathers edits."""

    def __init__(self, text: str, left: list[str]) -> None:
        self.edits: list[Edit] = []
        self._text = text
        self._marks: Mapping[Place, Mark] = marks(text)
        self._left = left
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def take(self, result: CaseResult) -> None:
        trial, case = result.trial, result.case
        if trial is None:
            self._left += [failure.headline for failure in result.failures]
            return
        if "expect" not in case.node.entries:
            self._write_expect(result, trial)
        for step in case.steps:
            self._step(result, step, trial)

    def _step(self, result: CaseResult, step: CaseStep, trial: CaseRun) -> None:
        time = None if step.at is None else trial.begin + step.at
        for count in step.counts:
            got = counted(trial, time).get(count.state, 0)
            if got != count.number:
                mark = self._mark_at(count.place)
                self.edits.append(Edit(mark.start, mark.end, str(got)))
        for expectation in step.expectations:
            try:
                found = trial.find(expectation.subject)
            except UnknownSubject as error:
                self._leave(result, expectation, str(error))
                continue
            rows = [(seen, seen.at(time, sampled=trial.sampled)) for seen in found]
            if any(differences(expectation.wanted, seen, now, trial) for seen, now in rows):
                self._expectation(result, step, expectation, rows, trial)

    def _leave(self, result: CaseResult, expectation: Expectation, why: str) -> None:
        self._left.append(f"{expectation.place}: {result.case.name}: {expectation.subject}: not updated: {why}")

    def _expectation(
        self,
        result: CaseResult,
        step: CaseStep,
        expectation: Expectation,
        rows: Sequence[tuple[SeenTrace, TraceNow]],
        trial: CaseRun,
    ) -> None:
        if any(now.state is None for _, now in rows):
            self._leave(result, expectation, "at that time it has not arrived yet")
        elif isinstance(expectation.node, MapNode):
            if len(rows) > 1:
                self._leave(result, expectation, "it stands for several attempts: expect something of each")
            else:
                self.edits += self._fields(expectation, expectation.node, *rows[0], trial)
        elif isinstance(expectation.node, ScalarNode):
            self._short(result, step, expectation, expectation.node, rows)

    def _short(
        self,
        result: CaseResult,
        step: CaseStep,
        expectation: Expectation,
        node: ScalarNode,
        rows: Sequence[tuple[SeenTrace, TraceNow]],
    ) -> None:
        fitting = [str(_fit(expectation.wanted.expected, now)) for _, now in rows]
        value = self._mark_of(node)
        if len(set(fitting)) == 1:
            self.edits.append(Edit(value.start, value.end, scalar(fitting[0], value.style, flow=value.flow)))
            return
        key = self._mark_at(expectation.place)
        if value.flow:
            self._leave(result, expectation, "its attempts differ: write them in lines of their own")
            return
        indent = self._newline + " " * (expectation.place.column - 1)
        others = {other.subject for other in step.expectations if other is not expectation}
        split = [one for one in _split(expectation.subject, fitting) if one[0] not in others]
        lines = [f"{scalar(str(subject))}: {scalar(text)}" for subject, text in split]
        self.edits.append(Edit(key.start, value.end, indent.join(lines)))

    def _fields(
        self, expectation: Expectation, node: MapNode, seen: SeenTrace, now: TraceNow, trial: CaseRun
    ) -> Iterator[Edit]:
        """Yield an edit for each key whose value is another."""
        fit = _fit(expectation.wanted.expected, now)
        told: dict[str, str] = {"decision": fit.state}
        if "by" in node.entries and expectation.wanted.expected.by is not None:
            told["by"] = fit.by or ""
        if "because" in node.entries and expectation.wanted.expected.because is not None:
            told["because"] = fit.because or ""
        for key, text in told.items():
            below = node.entries[key].value
            if key == "decision" and isinstance(below, ScalarNode) and read_state(str(below.value)) == text:
                continue
            if isinstance(below, ScalarNode) and below.value != text:
                mark = self._mark_of(below)
                yield Edit(mark.start, mark.end, scalar(text, mark.style, flow=mark.flow))
        for key, was, got in (
            ("number", expectation.wanted.number, seen.number),
            ("spans", expectation.wanted.spans, len(seen.left)),
        ):
            if was is not None and was != got:
                mark = self._mark_of(node.entries[key].value)
                yield Edit(mark.start, mark.end, "null" if got is None else str(got))
        if any(difference.what == "links" for difference in differences(expectation.wanted, seen, now, trial)):
            mark = self._mark_of(node.entries["links"].value)
            links = [
                ", ".join(f"{key}: {_written(value)}" for key, value in model.model_dump(exclude_none=True).items())
                for model in models_of(seen, trial)
            ]
            yield Edit(mark.start, mark.end, f"[{', '.join(f'{{{link}}}' for link in links)}]")

    def _mark_of(self, node: Node) -> Mark:
        return self._mark_at(node.position, collection=not isinstance(node, ScalarNode))

    def _mark_at(self, place: Position, *, collection: bool = False) -> Mark:
        return self._marks[Place(place.line, place.column, collection)]

    def _write_expect(self, result: CaseResult, trial: CaseRun) -> None:
        case = result.case
        name = case.node.entries["name"].key
        mark = self._mark_of(case.node)
        if mark.flow:
            self._left.append(f"{case.place}: {case.name}: not updated: write the case in lines of its own")
            return
        end = self._text.find("\n", mark.end)
        end = len(self._text) if end < 0 else end - (self._newline == "\r\n")
        outer, inner = " " * (name.column - 1), " " * (name.column + 1)
        lines = [f"{outer}expect:", *(f"{inner}{line}" for line in _all(result, trial))]
        self.edits.append(Edit(end, end, "".join(self._newline + line for line in lines)))


def _written(value: str | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else scalar(value, flow=True)


def _fit(expected: Expected, now: TraceNow) -> Expected:
    """Return what is expected, changed so that it holds, and says as much as before."""
    assert now.state is not None
    if now.verdict is None:
        return Expected(now.state)
    by = now.verdict.policy or None if expected.by is not None else None
    because = expected.because
    if because is not None and not holds(because, now.verdict.reason):
        because = now.verdict.reason or None
    return Expected(now.state, by, because)


def _split(subject: Subject, fitting: Sequence[str]) -> Iterator[tuple[Subject, str]]:
    """Yield neighbouring attempts that came to the same, and to what."""
    number = max(1, subject.first)
    for text, of in groupby(fitting):
        last = number + len(list(of)) - 1
        yield subject._replace(first=number, last=last), text
        number = last + 1


def _all(result: CaseResult, trial: CaseRun) -> Iterator[str]:
    """Yield everything that a case came to: of what is written out one by one, of recordings in numbers."""
    given = result.case.given
    names = [pod.name for pod in given.pods]
    subjects = [
        Subject("pod", pod.name, pod.namespace if names.count(pod.name) > 1 or given.recordings else "")
        for pod in given.pods
    ]
    for subject in [*subjects, *(Subject("trace", trace.name) for trace in given.traces)]:
        rows = [str(_whole(seen.at(None, sampled=trial.sampled))) for seen in trial.find(subject)]
        told = [(subject, rows[0])] if len(set(rows)) == 1 else _split(subject, rows)
        yield from (f"{scalar(str(one))}: {scalar(text)}" for one, text in told)
    if given.recordings:
        states: tuple[State, ...] = ("kept", "dropped")
        yield from (f"{state}: {counted(trial, None).get(state, 0)}" for state in states)


def _whole(now: TraceNow) -> Expected:
    assert now.state is not None
    return Expected(now.state, now.verdict.policy or None if now.verdict else None)
