"""The span of an asynchronous reconciliation, linked to what caused it (KEP-5915 `StartReconcileSpan`)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import overload

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind, Tracer

from .annotations import DEFAULT_PREFIX, PropagationCounters, names_a_span, remote_span
from .span import NO_CONTEXT, Clock, Log, Span, log_long
from .steps import Fields

LINK_SOURCE = "podtrail.link.source"
LINK_TRUSTED = "podtrail.link.trusted"


class _Links(Sequence[Link]):
    """The link that annotations ask for, made when a sampler or a recording span looks: the unsampled never do."""

    __slots__ = ("_annotations", "_counters", "_made", "_prefix")

    def __init__(self, annotations: Mapping[str, str], prefix: str, counters: PropagationCounters | None) -> None:
        self._annotations = annotations
        self._prefix = prefix
        self._counters = counters
        self._made: list[Link] | None = None

    def __bool__(self) -> bool:
        return names_a_span(self._annotations, self._prefix)

    def __len__(self) -> int:
        return len(self._read())

    @overload
    def __getitem__(self, index: int) -> Link: ...
    @overload
    def __getitem__(self, index: slice) -> list[Link]: ...
    def __getitem__(self, index: int | slice) -> Link | list[Link]:
        return self._read()[index]

    def __iter__(self) -> Iterator[Link]:
        return iter(self._read())

    def _read(self) -> list[Link]:
        if self._made is None:
            remote = remote_span(self._annotations, self._prefix, self._counters)
            self._made = [] if remote is None else [_link(remote)]
        return self._made


def _link(remote: SpanContext) -> Link:
    return Link(remote, {LINK_SOURCE: "annotation", LINK_TRUSTED: False})


def start_reconcile_span(
    name: str,
    annotations: Mapping[str, str],
    *,
    tracer: Tracer | None,
    clock: Clock,
    attributes: Fields,
    context: Context | None = None,
    prefix: str = DEFAULT_PREFIX,
    counters: PropagationCounters | None = None,
    log: Log = log_long,
) -> Span:
    """Starts the CONSUMER span of handling an object with these annotations.

    When they name a remote span, this is a new root with a link to it, marked as not to be trusted because whoever
    wrote the annotation chose it; otherwise the span in `context`, if any, is the parent. Without `tracer` (tracing
    is off) nothing is read and the span is only logged when long. What `counters` says of extraction is about roots
    that were sampled, unless there is a `context`.
    """
    span = Span(name, attributes, clock, log)
    if tracer is None:
        return span
    links: Sequence[Link] = ()
    if context is None:
        # A root in either case, so the link need not be made unless it is sampled.
        links = _Links(annotations, prefix, counters)
    elif (remote := remote_span(annotations, prefix, counters)) is not None:
        context, links = None, (_link(remote),)
    span.record_with(tracer, NO_CONTEXT if context is None else context, links, SpanKind.CONSUMER)
    return span
