"""The span of an asynchronous reconciliation, linked to what caused it (KEP-5915 `StartReconcileSpan`)."""

from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind, Tracer, get_current_span

from .annotations import DEFAULT_PREFIX, PropagationCounters, extract_context
from .span import Clock, Log, Span, log_long, start
from .steps import Fields

LINK_SOURCE = "podtrail.link.source"
LINK_TRUSTED = "podtrail.link.trusted"


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
    is off) nothing is read and the span is only logged when long.
    """
    if tracer is None:
        return start(name, attributes, clock=clock, log=log)
    remote = get_current_span(extract_context(annotations, prefix=prefix, counters=counters)).get_span_context()
    if not remote.is_valid:
        return start(name, attributes, clock=clock, tracer=tracer, context=context, kind=SpanKind.CONSUMER, log=log)
    links = (Link(remote, {LINK_SOURCE: "annotation", LINK_TRUSTED: False}),)
    return start(name, attributes, clock=clock, tracer=tracer, links=links, kind=SpanKind.CONSUMER, log=log)
