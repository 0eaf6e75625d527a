"""Builders for tests of the sampler: spans with what a test is about, and a sampler that is told the time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from podtrail_processors.tail_sampling import FACTORY

from podtrail.component import Context
from podtrail.otlp import (
    Batch,
    Group,
    Status,
    Value,
    Verdict,
    encode_span,
    frame,
    read_request,
    resource_header,
    scope_header,
    split,
    write_request,
)
from podtrail.otlp import SpanView as View
from podtrail.pipeline.settings import read_settings
from podtrail.replay.replayer import Replayer, read_config
from podtrail.testing.attempts import MadeAttempt

MS = 1_000_000
SECOND = 1_000 * MS
START = 1_790_000_000 * SECOND
ERROR = Status(2, "")


def trace_id(number: int) -> bytes:
    """Return a trace's id."""
    return number.to_bytes(16, "big")


@dataclass
class Made:
    """A span to be sent."""

    trace: int
    id: int = 1
    parent: int = 0
    name: str = "span"
    start: int = START
    end: int = START + 10 * MS
    status: Status | None = None
    flags: int = 0
    trace_state: str = ""
    attributes: Mapping[str, Value] = field(default_factory=dict)
    resource: Mapping[str, Value] = field(default_factory=dict)

    def group(self) -> Group:
        """Return the span as a group of its own."""
        raw = encode_span(
            trace_id=trace_id(self.trace),
            span_id=self.id.to_bytes(8, "big"),
            parent_span_id=self.parent.to_bytes(8, "big") if self.parent else b"",
            name=self.name,
            start=self.start,
            end=self.end,
            status=self.status,
            flags=self.flags,
            trace_state=self.trace_state,
            attributes=self.attributes,
        )
        return Group(resource_header(self.resource), scope_header("test"), trace_id(self.trace), frame([raw]), 1)


class Sampler:
    """A sampler with its ledger, driven in seconds since `START`."""

    def __init__(
        self, settings: Mapping[str, Any], gates: frozenset[str] = frozenset(), id: str = "tail_sampling"
    ) -> None:
        self.context = Context(id=id, pipeline="traces", gates=gates)
        self.under_test = FACTORY.create(FACTORY.Config.model_validate(settings), self.context)
        self.out: list[Batch] = []
        self.received = 0

    def send(self, at: float, *spans: Made) -> None:
        """Hand spans over at a time, after all that is due before it."""
        now = START + round(at * SECOND)
        self.pass_time(at)
        batch = Batch([span.group() for span in spans], now)
        self.received += batch.span_count
        self.out += self.under_test.add(batch, now).out

    def pass_time(self, until: float) -> None:
        """Do what is due."""
        end = START + round(until * SECOND)
        while (due := self.under_test.deadline()) is not None and due <= end:
            while out := self.under_test.expire(due, 100):
                self.out += out

    def stop(self, at: float) -> None:
        """Shut down."""
        self.pass_time(at)
        self.out += self.under_test.drain(START + round(at * SECOND))

    @property
    def verdicts(self) -> Sequence[Verdict]:
        """All verdicts, in order."""
        return [verdict for batch in self.out for verdict in batch.verdicts]

    @property
    def decisions(self) -> Mapping[int, str]:
        """The decision by trace."""
        return {int.from_bytes(verdict.trace_id, "big"): verdict.decision for verdict in self.verdicts}

    @property
    def kept(self) -> Sequence[tuple[int, int]]:
        """Trace and span of all that came out, in order."""
        spans = [View(raw) for batch in self.out for group in batch.groups for raw in split(group.spans)]
        return [(int.from_bytes(span.trace_id, "big"), int.from_bytes(span.span_id, "big")) for span in spans]

    def counted(self, name: str) -> Mapping[str, float]:
        """Return a metric's values."""
        return self.context.metrics.snapshot().get("otelcol_processor_tail_sampling_" + name, {})


def policy(type: str, name: str = "", **settings: object) -> dict[str, object]:
    """Return a policy as a configuration has it."""
    return {"name": name or type, "type": type, type: settings}


Make = Callable[..., Sampler]


@pytest.fixture
def sampler() -> Make:
    """Return what makes a sampler: of policies, and settings by their key."""

    def make(*policies: object, gates: Sequence[str] = (), id: str = "tail_sampling", **settings: object) -> Sampler:
        return Sampler({"policies": list(policies), "decision_wait": "2s"} | settings, frozenset(gates), id)

    return make


@pytest.fixture(name="span")
def _span() -> type[Made]:
    """Return what describes a span to be sent: `span(trace, id, status=…)`."""
    return Made


@pytest.fixture(name="policy")
def _policy() -> Callable[..., dict[str, object]]:
    """Return what writes a policy: `policy("latency", threshold_ms=5)`."""
    return policy


_PIPELINE = """
receivers: {otlp: {protocols: {grpc: {}}}}
processors: {tail_sampling: {decision_wait: 1s, SETTINGS, policies: [POLICIES]}}
exporters: {debug: {}}
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}
"""


@dataclass
class Watched:
    """What a sampler said of attempts, in their order."""

    verdicts: Sequence[Verdict]
    metrics: Mapping[str, Mapping[str, float]]

    @property
    def kept(self) -> Sequence[int]:
        """The positions of those that were kept."""
        return [at for at, verdict in enumerate(self.verdicts) if verdict.decision == "sampled"]

    @property
    def reasons(self) -> Sequence[str]:
        """Why they were decided so, in short."""
        return [verdict.reason for verdict in self.verdicts]

    @property
    def explained(self) -> Sequence[str]:
        """What the first policy says of each, when all is over."""
        return [verdict.explained()[0].why for verdict in self.verdicts]

    def counted(self, name: str) -> Mapping[str, float]:
        """Return a metric's values."""
        return self.metrics.get("otelcol_processor_tail_sampling_" + name, {})


Watch = Callable[..., Watched]


@pytest.fixture
def watch() -> Watch:
    """Return what replays attempts, each arriving when it ends: `watch("{name: p, type: …}", attempts)`."""

    def run(policies: str, attempts: Iterable[MadeAttempt], settings: str = "num_traces: 50000") -> Watched:
        text = _PIPELINE.replace("SETTINGS", settings).replace("POLICIES", policies)
        said: dict[bytes, Verdict] = {}
        replayer = Replayer(
            read_settings(read_config(text), frozenset()),
            lambda _, batch: said.update({verdict.trace_id: verdict for verdict in batch.verdicts}),
        )
        order = list(attempts)
        for attempt in order:
            request = write_request(attempt.groups())
            replayer.add(attempt.start + max(0, attempt.duration), read_request(request))
        replayer.finish()
        return Watched([said[attempt.trace_id] for attempt in order], replayer.host.metrics.snapshot())

    return run
