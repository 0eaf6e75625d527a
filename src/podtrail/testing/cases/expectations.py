"""What a case expects, in steps: at a time, or when everything is decided."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from podtrail.config import Position
from podtrail.config.duration import parse_duration
from podtrail.config.nodes import ListNode, MapNode, Node, ScalarNode
from podtrail.config.problem import Path, did_you_mean
from podtrail.testing.cases.case_file_reader import CaseFileReader
from podtrail.testing.cases.models import ExpectationModel, LinkModel
from podtrail.testing.cases.outcome_text import STATES, Expected, State, read_outcome, read_state
from podtrail.testing.cases.subjects import Subject, is_subject, read_subject
from podtrail.testing.cases.text_reader import Misread

_KEYS: Final = ("at", *STATES, "pod NAME", "trace NAME")
_ONLY_AT_THE_END: Final = ("number", "spans", "links")


class WantedCount(NamedTuple):
    """How many traces are in a state."""

    state: State
    number: int
    place: Position
    """Of the number."""


@dataclass(frozen=True, slots=True)
class WantedTrace:
    """What is expected of a trace; None where nothing is said."""

    expected: Expected
    number: int | None = None
    spans: int | None = None
    links: tuple[LinkModel, ...] | None = None


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of one subject."""

    subject: Subject
    wanted: WantedTrace
    place: Position
    """Of its key."""
    node: Node
    """What was written about it."""


@dataclass(slots=True)
class CaseStep:
    """Expectations at one time."""

    at: int | None = None
    """Nanoseconds since the case began; None: when everything is decided."""
    expectations: list[Expectation] = field(default_factory=list)
    counts: list[WantedCount] = field(default_factory=list)


def read_steps(reading: CaseFileReader, node: Node | None, path: Path) -> list[CaseStep]:
    """Return the steps of `expect`; what is wrong is noted."""
    match node:
        case MapNode():
            return [_step(reading, node, path)]
        case ListNode(items=items) if items:
            return [_step(reading, item, (*path, at)) for at, item in enumerate(items)]
        case _:
            hint = "write for example expect: {pod web-0: kept by failed}"
            reading.problem(path, "must be a map of what is expected, or a list of those with at", hint)
            return []


def _step(reading: CaseFileReader, node: Node, path: Path) -> CaseStep:
    step = CaseStep()
    if not isinstance(node, MapNode) or not node.entries.keys() - {"at"}:
        reading.problem(path, "must be a map of what is expected", "write for example pod web-0: kept", value=True)
        return step
    step.at = _time(reading, node, path)
    for key, entry in node.entries.items():
        below = (*path, key)
        if state := read_state(key):
            step.counts += _count(reading, state, entry.value, below)
        elif is_subject(key):
            step.expectations += _expectation(reading, key, entry.key, entry.value, below, step.at)
        elif key != "at":
            reading.problem(below, f"unknown key {key!r}", did_you_mean(key, _KEYS, "keys here"))
    return step


def _time(reading: CaseFileReader, node: MapNode, path: Path) -> int | None:
    entry = node.entries.get("at")
    if entry is None:
        return None
    value = entry.value.value if isinstance(entry.value, ScalarNode) else None
    try:
        found = parse_duration(value)
    except ValueError as error:
        message, _, hint = str(error).partition(": ")
        reading.problem((*path, "at"), message, hint, value=True)
        return 0
    if found < 0 or isinstance(value, int):
        reading.problem((*path, "at"), "must be a time since the beginning of the case", "write 30s", value=True)
    return found


def _count(reading: CaseFileReader, state: State, node: Node, path: Path) -> Iterator[WantedCount]:
    value = node.value if isinstance(node, ScalarNode) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        reading.problem(path, "must be how many traces", f"write {state}: 3", value=True)
        return
    yield WantedCount(state, value, node.position)


def _expectation(
    reading: CaseFileReader, key: str, place: Position, node: Node, path: Path, at: int | None
) -> Iterator[Expectation]:
    try:
        subject = read_subject(key, attempts=True)
    except Misread as error:
        reading.misread(error, path)
        return
    if isinstance(node, MapNode):
        model = reading.model(ExpectationModel, path)
        if model is None:
            return
        for early in (name for name in _ONLY_AT_THE_END if at is not None and name in node.entries):
            hint = "put it into a step without at"
            reading.problem((*path, early), "is known when everything has left", hint)
        wanted = WantedTrace(model.expected, model.number, model.spans, model.links)
        yield Expectation(subject, wanted, place, node)
        return
    text = node.value if isinstance(node, ScalarNode) else None
    if not isinstance(node, ScalarNode) or not isinstance(text, str):
        reading.problem(path, "must say what is expected", "write kept by failed, dropped, or a map", value=True)
        return
    try:
        yield Expectation(subject, WantedTrace(read_outcome(text)), place, node)
    except Misread as error:
        reading.misread(error, path, node)
