"""What a case is given: Pods with their attempts, traces span by span, recordings; and the requests they become."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Final

from podtrail.config.duration import HOUR
from podtrail.config.nodes import ListNode, MapNode, Node, ScalarNode
from podtrail.config.problem import Path, did_you_mean
from podtrail.otlp import Intake, Link, read_request, write_request
from podtrail.recording import Damage
from podtrail.replay.replayer import read_records
from podtrail.testing.attempts import START, MadeAttempt
from podtrail.testing.attempts.planned import PlannedAttempts, made, uid_of
from podtrail.testing.cases.attempt_text import read_attempts
from podtrail.testing.cases.case_file_reader import CaseFileReader
from podtrail.testing.cases.models import AttemptModel, PodModel, SpanModel, TraceModel
from podtrail.testing.cases.subjects import is_subject, read_subject
from podtrail.testing.cases.text_reader import Misread
from podtrail.testing.cases.traces import span_id_of, trace_groups, trace_id_of

NAMESPACE: Final = "default"
_LONGEST: Final = 10 * 366 * 24 * HOUR
_FORMS: Final = "a Pod with its attempts, a trace with its spans, or a recording"


@dataclass(frozen=True, slots=True)
class GivenPod:
    """A Pod and the attempts at it."""

    name: str
    namespace: str
    uid: str
    plans: Sequence[PlannedAttempts]

    def attempts(self, begin: int) -> list[tuple[int, MadeAttempt]]:
        """Return arrivals and attempts; `begin`: of the case, Unix nanoseconds."""
        return list(made(self.plans, self.namespace, self.name, self.uid, begin))


@dataclass(frozen=True, slots=True)
class GivenTrace:
    """A trace, span by span."""

    name: str
    model: TraceModel


@dataclass(slots=True)
class Given:
    """Everything that a case is given."""

    pods: list[GivenPod] = field(default_factory=list)
    traces: list[GivenTrace] = field(default_factory=list)
    recordings: list[FilePath] = field(default_factory=list)

    @property
    def named(self) -> Mapping[str, bytes]:
        """The ids of traces that have a name."""
        return {trace.name: trace_id_of(trace.name) for trace in self.traces}

    def arrivals(self) -> tuple[int, list[tuple[int, Intake]]]:
        """Return the beginning of the case in Unix nanoseconds, and what arrives, in order.

        Raises:
            ValueError: a recording is damaged.
            OSError: a recording can't be read.
        """
        recorded = [(record.arrival, record.intake) for record in read_records(self.recordings, _refuse)]
        begin = recorded[0][0] if recorded else START
        own = [
            (arrival, read_request(write_request(attempt.groups())))
            for pod in self.pods
            for arrival, attempt in pod.attempts(begin)
        ]
        links = {
            target: self.link(target) for trace in self.traces for span in trace.model.spans for target in span.links
        }
        own += [
            (arrival, read_request(write_request(groups)))
            for trace in self.traces
            for arrival, groups in trace_groups(trace.name, trace.model, begin, links)
        ]
        return begin, sorted([*recorded, *own], key=lambda one: one[0])

    def link(self, target: str) -> Link:
        """Return a link to an attempt or a trace.

        Raises:
            Misread: there is none of this name.
        """
        subject = read_subject(target, attempts=True)
        if subject.kind == "trace" and subject.name in self.named:
            return Link(self.named[subject.name], span_id_of(subject.name, 0), {})
        for pod in self.pods:
            if subject.kind == "pod" and subject.name == pod.name and subject.namespace in ("", pod.namespace):
                attempts = [attempt for _, attempt in pod.attempts(START)]
                if (number := subject.first or 1) <= len(attempts):
                    attempt = attempts[number - 1 if number > 0 else -1]
                    return Link(attempt.trace_id, attempt.root_id, {})
        raise Misread(f"{target!r} leads nowhere", "name a trace or an attempt that is given too")


def _refuse(damage: Damage) -> None:
    raise ValueError(str(damage))


def read_given(reading: CaseFileReader, node: Node | None, path: Path) -> Given:
    """Return what `given` names; what is wrong is noted."""
    given = Given()
    for at, below in _parts(reading, node, path):
        _Item(reading, given).read(below, at)
    if not reading.problems and not (given.pods or given.traces or given.recordings):
        reading.problem(path, f"must be given something: {_FORMS}")
    if not reading.problems:
        _check(reading, given, path)
    return given


def _parts(reading: CaseFileReader, node: Node | None, path: Path) -> Iterator[tuple[Path, Node]]:
    match node:
        case ListNode():
            yield from (((*path, at), item) for at, item in enumerate(node.items))
        case MapNode() | ScalarNode(value=str()):
            yield path, node
        case _:
            reading.problem(path, f"must be a list of what arrives: {_FORMS}", "write - pod web-0: failed attempt")


def _check(reading: CaseFileReader, given: Given, path: Path) -> None:
    """Note what can be told only of everything together."""
    pods = [f"pod {pod.namespace}/{pod.name}" for pod in given.pods]
    names = pods + [f"trace {trace.name}" for trace in given.traces]
    for twin in sorted({name for name in names if names.count(name) > 1}):
        reading.problem(path, f"{twin} is given twice", "put its attempts into one entry, parted by: , then")
    if any(arrival - START > _LONGEST for pod in given.pods for arrival, _ in pod.attempts(START)):
        reading.problem(path, "takes longer than 10 years", "shorten at, after, every, in or count")
    for trace in given.traces:
        spans = [span.name for span in trace.model.spans]
        for lost in (span.parent for span in trace.model.spans if span.parent and span.parent not in spans):
            what = f"trace {trace.name} has no span {lost!r} that could be a parent"
            reading.problem(
                path, what, did_you_mean(lost, spans, "spans") + "; of one that never arrives: orphan: true"
            )
    for target in (target for trace in given.traces for span in trace.model.spans for target in span.links):
        try:
            given.link(target)
        except Misread as error:
            reading.problem(path, error.message, error.hint)


class _Item:
    """One thing that is given, in any of its forms."""

    def __init__(self, reading: CaseFileReader, given: Given) -> None:
        self._reading = reading
        self._given = given

    def read(self, node: Node, path: Path) -> None:
        """Take it in; what is wrong with it is noted."""
        match node:
            case ScalarNode(value=str(text)):
                self._text(text, node, path)
            case MapNode() if "pod" in node.entries:
                self._pod_model(node, path)
            case MapNode() if "trace" in node.entries:
                if model := self._reading.model(TraceModel, path):
                    self._given.traces.append(GivenTrace(model.trace, model))
            case MapNode() if "recording" in node.entries and len(node.entries) == 1:
                self._recordings(node.entries["recording"].value, (*path, "recording"))
            case MapNode() if node.entries:
                for key, entry in node.entries.items():
                    self._entry(key, entry.value, (*path, key))
            case _:
                self._reading.problem(path, f"must be {_FORMS}", value=True)

    def _text(self, text: str, node: ScalarNode, path: Path) -> None:
        subject, colon, attempts = text.partition(": ")
        try:
            if not colon:
                raise Misread("says nothing of attempts", "write pod web-0: failed attempt, then success")
            pod = read_subject(subject, attempts=False)
        except Misread as error:
            self._reading.misread(error, path, node)
            return
        skipped = len(subject) + len(colon)
        try:
            self._add(pod.name, pod.namespace, read_attempts(attempts))
        except Misread as error:
            self._reading.misread(Misread(error.message, error.hint, error.at + skipped, error.width), path, node)

    def _entry(self, key: str, node: Node, path: Path) -> None:
        if key == "recording":
            self._recordings(node, path)
            return
        try:
            if not is_subject(key):
                raise Misread(f"{key!r} is neither a Pod, a trace nor a recording", "write pod NAME, or trace NAME")
            subject = read_subject(key, attempts=False)
        except Misread as error:
            self._reading.misread(error, path)
            return
        if subject.kind == "pod":
            self._add(subject.name, subject.namespace, self._attempts(node, path))
        else:
            self._trace(subject.name, node, path)

    def _trace(self, name: str, node: Node, path: Path) -> None:
        places = [(*path, at) for at in range(len(node.items))] if isinstance(node, ListNode) else [path]
        spans = [span for place in places if (span := self._reading.model(SpanModel, place))]
        if not places:
            self._reading.problem(
                path, "must have spans", "write for example - {name: GET /, duration: 3ms}", value=True
            )
        elif len(spans) == len(places):
            self._given.traces.append(GivenTrace(name, TraceModel(trace=name, spans=tuple(spans))))

    def _pod_model(self, node: MapNode, path: Path) -> None:
        pod = self._reading.model(PodModel, path)
        attempts = self._attempts(node.get("attempts"), (*path, "attempts"))
        if pod is not None:
            self._add(pod.pod, pod.namespace, attempts, pod.uid)

    def _attempts(self, node: Node | None, path: Path) -> list[PlannedAttempts]:
        match node:
            case ScalarNode(value=str(text)):
                try:
                    return read_attempts(text)
                except Misread as error:
                    self._reading.misread(error, path, node)
                    return []
            case ListNode():
                return [plan for at, item in enumerate(node.items) for plan in self._attempts(item, (*path, at))]
            case MapNode():
                model = self._reading.model(AttemptModel, path)
                return [model.planned()] if model else []
            case _:
                self._reading.problem(path, "must be attempts", "write for example: failed attempt by NodeAffinity")
                return []

    def _add(self, name: str, namespace: str, plans: Sequence[PlannedAttempts], uid: str = "") -> None:
        namespace = namespace or NAMESPACE
        self._given.pods.append(GivenPod(name, namespace, uid or uid_of(namespace, name), plans))

    def _recordings(self, node: Node, path: Path) -> None:
        items = (
            [(path, node)] if not isinstance(node, ListNode) else [((*path, n), i) for n, i in enumerate(node.items)]
        )
        for at, item in items:
            name = self._reading.text(item, at, "the path of a recording")
            if name is None:
                continue
            file = self._reading.folder / name
            if not file.is_file():
                self._reading.problem(at, f"there is no file {file}", "paths are relative to this file", value=True)
            self._given.recordings.append(file)
