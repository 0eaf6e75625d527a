"""Runs what a case is given through the processors of a configuration, and remembers what became of each trace."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from podtrail.component import ComponentError
from podtrail.config.problem import did_you_mean
from podtrail.otlp import ROOT_NAME, Attempt, Batch, Link, SpanView, Verdict, attempts_in, split
from podtrail.pipeline.settings import Settings
from podtrail.replay.flows import Flows
from podtrail.replay.replayer import Replayer
from podtrail.testing.cases.given import Given
from podtrail.testing.cases.outcome_text import State
from podtrail.testing.cases.subjects import Subject
from podtrail.testing.cases.traces import trace_id_of

_NUMBER = "podtrail.attempt.number"
_MOST_NAMES = 20
_LEAST_DIGITS = 8


class UnknownSubject(LookupError):
    """A subject that did not come; the text names those that did."""


class TraceNow(NamedTuple):
    """What is known of a trace at a time."""

    state: State | None
    """None: it has not arrived yet."""
    verdict: Verdict | None


@dataclass(slots=True)
class SeenTrace:
    """What became of a trace."""

    trace_id: bytes
    arrived: int
    """When its first spans came, Unix nanoseconds."""
    attempt: Attempt | None = None
    verdicts: list[Verdict] = field(default_factory=list)
    left: list[bytes] = field(default_factory=list)
    """The spans that left the pipeline."""

    def at(self, time: int | None, *, sampled: bool) -> TraceNow:
        """Return its state at a time (None: in the end), told by when it was decided: looking changes nothing.

        `sampled`: whether the pipeline has a sampler.
        """
        if time is not None and self.arrived > time:
            return TraceNow(None, None)
        known = [verdict for verdict in self.verdicts if time is None or verdict.decided_at <= time]
        if known:
            return TraceNow("kept" if known[-1].decision == "sampled" else "dropped", known[-1])
        if sampled and time is not None and (self.verdicts or self.left):
            return TraceNow("pending", None)
        return TraceNow("kept" if self.left else "dropped", None)

    @property
    def links(self) -> Sequence[Link]:
        """The links of the spans that left."""
        return [link for raw in self.left for link in SpanView(raw).links]

    @property
    def number(self) -> int | None:
        """The attempt's number as link_stitching wrote it."""
        for raw in self.left:
            span = SpanView(raw)
            number = span.attributes.get(_NUMBER)
            if span.name == ROOT_NAME and isinstance(number, int):
                return number
        return None


@dataclass
class CaseRun:
    """What became of the traces of a case."""

    begin: int
    """Unix nanoseconds."""
    traces: Mapping[bytes, SeenTrace]
    """By trace id, in order of arrival."""
    names: Mapping[str, bytes]
    """The ids of traces that have a name."""

    @cached_property
    def sampled(self) -> bool:
        """Whether a sampler has decided anything."""
        return any(seen.verdicts for seen in self.traces.values())

    @cached_property
    def _pods(self) -> Mapping[tuple[str, str], Sequence[SeenTrace]]:
        pods: dict[tuple[str, str], list[SeenTrace]] = {}
        attempts = [(seen.attempt, seen) for seen in self.traces.values() if seen.attempt is not None]
        for attempt, seen in sorted(attempts, key=lambda one: (one[0].start, one[0].trace_id)):
            pods.setdefault((attempt.namespace, attempt.name), []).append(seen)
        return pods

    def find(self, subject: Subject) -> Sequence[SeenTrace]:
        """Return the traces that a subject means.

        Raises:
            UnknownSubject: there is none.
        """
        return [self._trace(subject)] if subject.kind == "trace" else self._attempts(subject)

    def _attempts(self, subject: Subject) -> Sequence[SeenTrace]:
        named = [key for key in self._pods if key[1] == subject.name and subject.namespace in ("", key[0])]
        if len(named) > 1:
            raise UnknownSubject(
                f"several Pods have this name; say which: {', '.join(f'{ns}/{name}' for ns, name in named)}"
            )
        if not named:
            wanted = f"{subject.namespace}/{subject.name}" if subject.namespace else subject.name
            come = list(dict.fromkeys(f"{ns}/{name}" if subject.namespace else name for ns, name in self._pods))
            raise UnknownSubject(
                f"no such Pod came; {did_you_mean(wanted, come[:_MOST_NAMES], 'there are') or 'there are none'}"
            )
        found = self._pods[named[0]]
        if subject.first > len(found):
            raise UnknownSubject(f"it has {len(found)} attempts only")
        if not subject.first:
            return found
        return found[-1:] if subject.first < 0 else found[subject.first - 1 : subject.last]

    def _trace(self, subject: Subject) -> SeenTrace:
        if (known := trace_id_of(subject.name)) in self.traces:
            return self.traces[known]
        wanted = subject.name.lower()
        found = [
            seen
            for trace_id, seen in self.traces.items()
            if len(wanted) >= _LEAST_DIGITS and trace_id.hex().startswith(wanted)  # words may be spelled with a to f
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise UnknownSubject(f"{len(found)} traces have ids that begin like this: write more of it")
        names = [*self.names, *(trace_id.hex() for trace_id in self.traces if trace_id not in self.names.values())]
        raise UnknownSubject(
            f"no such trace came; {did_you_mean(wanted, names[:_MOST_NAMES], 'there are') or 'there are none'}"
        )

    def name_of(self, trace_id: bytes) -> str:
        """Return what a trace is called: a Pod's attempt, a trace's name, or its id."""
        seen = self.traces.get(trace_id)
        if seen is None or seen.attempt is None:
            name = next((name for name, known in self.names.items() if known == trace_id), trace_id.hex())
            return f"trace {name}"
        attempt = seen.attempt
        of = self._pods[attempt.namespace, attempt.name]
        alone = sum(name == attempt.name for _, name in self._pods) == 1
        pod = f"pod {attempt.name}" if alone else f"pod {attempt.namespace}/{attempt.name}"
        return f"{pod} attempt {of.index(seen) + 1}" if len(of) > 1 else pod


def try_out(given: Given, settings: Settings) -> CaseRun:
    """Run what is given through the one pipeline of `settings`, until everything is decided.

    Raises:
        ValueError: a recording is damaged.
        OSError: a recording can't be read.
        ComponentError: a processor can't be made, failed, or lost spans without counting them.
    """
    begin, arrivals = given.arrivals()
    traces: dict[bytes, SeenTrace] = {}
    for arrival, intake in arrivals:
        for group in intake.groups:
            seen = traces.setdefault(group.trace_id, SeenTrace(group.trace_id, arrival))
            seen.attempt = seen.attempt or next(attempts_in(group.spans), None)

    def sink(_pipeline: str, batch: Batch) -> None:
        for verdict in batch.verdicts:
            seen = traces.setdefault(verdict.trace_id, SeenTrace(verdict.trace_id, verdict.arrived))
            seen.verdicts.append(verdict)
        for group in batch.groups:
            traces.setdefault(group.trace_id, SeenTrace(group.trace_id, batch.arrived)).left += split(group.spans)

    flows = Flows("name")
    replayer = Replayer(settings, sink, settings.gates, around=flows.around)
    for arrival, intake in arrivals:
        replayer.add(arrival, intake)
    replayer.finish()
    if faults := flows.faults():
        raise ComponentError("; ".join(faults))
    return CaseRun(begin, traces, given.named)
