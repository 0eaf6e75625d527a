"""The span of an asynchronous reconciliation, linked to what caused it (KEP-5915 `StartReconcileSpan`)."""

import re
from collections.abc import Mapping, Sequence
from typing import overload

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Tracer

from .annotations import DEFAULT_PREFIX, PropagationCounters, find, remote_context
from .span import NO_CONTEXT, Clock, Log, Span, log_long
from .steps import Fields

LINK_SOURCE = "podtrail.link.source"
LINK_TRUSTED = "podtrail.link.trusted"


class _Links(Sequence[Link]):
    """The link that annotations ask for, made when a sampler or a recording span looks: the unsampled never do."""

    __slots__ = ("_annotations", "_made", "_others", "_prefix", "_traceparent")

    def __init__(
        self, traceparent: re.Match[str], annotations: Mapping[str, str], prefix: str, others: Sequence[Link]
    ) -> None:
        self._traceparent = traceparent
        self._annotations = annotations
        self._prefix = prefix
        self._others = others
        self._made: tuple[Link, ...] = ()

    def __len__(self) -> int:
        return 1 + len(self._others)

    @overload
    def __getitem__(self, index: int) -> Link: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Link]: ...
    def __getitem__(self, index: int | slice) -> Link | Sequence[Link]:
        if not self._made:
            remote = remote_context(self._traceparent, self._annotations, self._prefix)
            self._made = (Link(remote, {LINK_SOURCE: "annotation", LINK_TRUSTED: False}), *self._others)
        return self._made[index]


def start_reconcile_span(
    name: str,
    annotations: Mapping[str, str],
    *,
    tracer: Tracer | None,
    clock: Clock,
    attributes: Fields,
    context: Context | None = None,
    links: Sequence[Link] = (),
    prefix: str = DEFAULT_PREFIX,
    counters: PropagationCounters | None = None,
    log: Log = log_long,
) -> Span:
    """Starts the CONSUMER span of handling an object with these annotations.

    When they name a remote span, this is a new root with a link to it, marked as not to be trusted because whoever
    wrote the annotation chose it; otherwise the span in `context`, if any, is the parent. `links` are others that it
    has besides. Without `tracer` (tracing is off) nothing is read and the span is only logged when long.
    """
    span = Span(name, attributes, clock, log)
    if tracer is None:
        return span
    traceparent = find(annotations, prefix, counters)
    if traceparent is not None:
        context, links = None, _Links(traceparent, annotations, prefix, links)
    span.record_with(tracer, NO_CONTEXT if context is None else context, links, SpanKind.CONSUMER)
    return span
