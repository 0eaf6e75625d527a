"""What stands in a test file where it is written out in full: the keys, their types and what they mean."""

from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, field_validator

from podtrail.config.types import HOUR, MILLISECOND, Model, NonNegativeDuration
from podtrail.testing.attempts.planned import AttemptResult, PlannedAttempts, PlannedRefusal
from podtrail.testing.cases.outcome_text import Expected, State, check_pattern, read_state
from podtrail.testing.cases.text_reader import Misread

SpanStatus = Literal["unset", "ok", "error"]
SpanKind = Literal["unspecified", "internal", "server", "client", "producer", "consumer"]

_LONGEST: Final = 366 * 24 * HOUR
_INT64: Final = 1 << 63

Lasting = Annotated[NonNegativeDuration, Field(le=_LONGEST)]
"""A time of at most a year, nanoseconds."""


def _fits(value: Any) -> Any:
    """Refuse numbers that no attribute can hold."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        _fits(one)
    if isinstance(value, int) and not -_INT64 <= value < _INT64:
        raise ValueError(f"{value} is beyond 64 bits; quote it if it is text")
    return value


Attributes = Annotated[dict[str, Any], AfterValidator(_fits)]


class RefusalModel(Model):
    """What one plugin refused."""

    nodes: int | None = Field(None, ge=0, le=100_000, description="How many nodes; its share of all when not given.")
    reason: str = Field("", description="Why, in the plugin's words.")


class AttemptModel(Model):
    """One attempt, or several that are alike."""

    result: AttemptResult = Field("Success", description="How it ended: Success, Unschedulable or Error.")
    count: int = Field(1, ge=1, le=100_000, description="How many there are.")
    by: dict[str, int | RefusalModel | None] = Field({}, description="Plugins that said no, each with its nodes.")
    took: Lasting = Field(9 * MILLISECOND, description="How long it took.")
    waited: Lasting = Field(2 * MILLISECOND, description="How long the Pod waited in the queue.")
    at: Lasting | None = Field(None, description="When the first starts, since the case began.")
    after: Lasting | None = Field(None, description="Or: how long after the end of the one before.")
    every: Lasting | None = Field(None, description="From the start of one to that of the next.")
    arrives: Lasting = Field(0, description="How long after its end its spans arrive.")
    node: str = Field("node-07", description="Where the Pod went.")
    message: str = Field("", description="Why it failed; made up from `by` when not given.")
    attributes: Attributes = Field({}, description="Added to the root span.")

    def planned(self) -> PlannedAttempts:
        """Return the same as the compact language says it."""
        told = {name: getattr(self, name) for name in type(self).model_fields if name != "by"}
        refused = [
            PlannedRefusal(plugin, what.nodes, what.reason)
            if isinstance(what, RefusalModel)
            else PlannedRefusal(plugin, what)
            for plugin, what in self.by.items()
        ]
        return PlannedAttempts(by=refused, **told)


class PodModel(Model):
    """A Pod."""

    pod: str = Field(min_length=1, description="The Pod's name.")
    namespace: str = Field("", description="The Pod's namespace; default when not given.")
    uid: str = Field("", description="The Pod's uid; made from its name when not given.")
    attempts: Any = Field(description="Its attempts: text, or a list of them.")


class SpanModel(Model):
    """A span of a trace that is written out."""

    name: str = Field("work", min_length=1, description="The span's name.")
    parent: str = Field("", description="The name of its parent; the first span is the parent of those that name none.")
    orphan: bool = Field(False, description="Its parent never arrives.")
    start: Lasting = Field(0, description="When it starts, after the trace.")
    duration: Lasting = Field(10 * MILLISECOND, description="How long it takes.")
    arrives: Lasting | None = Field(None, description="When it arrives, after the trace began; at its end.")
    status: SpanStatus = Field("unset", description="unset, ok or error.")
    message: str = Field("", description="The message of its status.")
    kind: SpanKind = Field("internal", description="internal, server, client, producer or consumer.")
    attributes: Attributes = Field({}, description="Its attributes.")
    resource: Attributes = Field({}, description="Attributes of its resource; `service.name` is test when not given.")
    events: tuple[str, ...] = Field((), description="Names of its events.")
    trace_state: str = Field("", description="Its W3C trace state.")
    links: tuple[str, ...] = Field((), description="What it links to: `trace NAME` or `pod NAME attempt N`.")


class TraceModel(Model):
    """A trace that is written out."""

    trace: str = Field(min_length=1, description="The trace's name, by which expectations know it.")
    at: Lasting = Field(0, description="When it begins, since the case began.")
    spans: tuple[SpanModel, ...] = Field(min_length=1, description="Its spans, the root first.")


class LinkModel(Model):
    """A link that is expected."""

    type: str | None = Field(None, description="previous-attempt, next-attempt, creation, binding or scheduling.")
    to: str | None = Field(None, description="`attempt 1` (of the same Pod), `pod NAME attempt N` or `trace NAME`.")
    resolved: bool | None = Field(None, description="Whether what it leads to was kept.")


class ExpectationModel(Model):
    """What is expected of a Pod's attempts or of a trace."""

    decision: State = Field(description="kept, dropped or pending.")
    by: str | None = Field(None, description="The policy that decided; empty text: none.")
    because: str | None = Field(None, description="A part of the reason, or a regular expression between slashes.")
    number: int | None = Field(None, ge=1, description="The attempt's number, as link_stitching writes it.")
    spans: int | None = Field(None, ge=0, description="How many spans of it leave the pipeline.")
    links: tuple[LinkModel, ...] | None = Field(None, description="Links it must have; an empty list: it has none.")

    @field_validator("decision", mode="before")
    @classmethod
    def _in_any_spelling(cls, value: object) -> object:
        return (read_state(value) if isinstance(value, str) else None) or value

    @field_validator("because")
    @classmethod
    def _is_pattern(cls, value: str | None) -> str | None:
        try:
            check_pattern(value or "")
        except Misread as error:
            raise ValueError(str(error)) from None
        return value

    @property
    def expected(self) -> Expected:
        """The part of it that the compact language has words for."""
        return Expected(self.decision, self.by, self.because)


class FileModel(Model):
    """A test file, but for its cases."""

    config: Any = Field(description="The configuration: its path, relative to this file, or itself.")
    pipeline: str = Field("", description="Which of its pipelines is tested; needed when it has several.")
    environment: dict[str, str] = Field({}, description="Values for ${env:NAME} in the configuration.")
    feature_gates: tuple[str, ...] = Field((), description="Feature gates, as --feature-gates takes them.")
    cases: Any = Field(description="The cases: each with a name, what is given and what to expect.")
