"""Trace context in the annotations of Kubernetes objects (KEP-5915: `tracing.k8s.io/traceparent` and its siblings).

Whoever may write an annotation chooses what it says. So it is parsed strictly, becomes a link and never a parent,
its baggage is ignored, and the sampled flag in it decides nothing.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opentelemetry.baggage import get_all as get_all_baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TraceState,
    get_current_span,
    set_span_in_context,
)

DEFAULT_PREFIX = "tracing.k8s.io/"
_TRACEPARENT = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})")
_MAX_TRACESTATE = 512
_BAGGAGE = W3CBaggagePropagator()


@dataclass(frozen=True)
class PropagationCounters:
    """How often context was written to and read from the annotations of one kind of object by one controller."""

    component: str
    controller: str
    resource_kind: str
    # Not Counters: these take several times as long to add to, and every object is counted.
    injected: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    extracted: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def samples(self) -> Iterator[tuple[str, dict[str, str], int]]:
        """Name, labels and value of each counter, as they are exposed."""
        labels = {"component": self.component, "controller": self.controller, "resource_kind": self.resource_kind}
        for name, counter in (("injected", self.injected), ("extracted", self.extracted)):
            for result, value in sorted(counter.items()):
                yield f"trace_context_annotations_{name}_total", {**labels, "result": result}, value


def inject_context(
    annotations: Mapping[str, str],
    context: Context | None,
    *,
    prefix: str = DEFAULT_PREFIX,
    counters: PropagationCounters | None = None,
) -> dict[str, str]:
    """The annotations to write so that the object carries `context`; empty when there is nothing to write.

    An annotation that has the value already is not written again (two writers of one annotation would call each
    other for ever), and a tracestate that belongs to another traceparent is emptied. Write on creation or on a
    change of the specification, never on a status update. `injected` counts success, unchanged and no_context.
    """
    changes = inject_span_context(annotations, get_current_span(context).get_span_context(), prefix, counters)
    if get_all_baggage(context):
        changes.update(_baggage(annotations, context, prefix))
    return changes


def inject_span_context(
    annotations: Mapping[str, str],
    span_context: SpanContext,
    prefix: str = DEFAULT_PREFIX,
    counters: PropagationCounters | None = None,
) -> dict[str, str]:
    """`inject_context` for who has a span and no baggage."""
    trace_id, span_id, _, flags, state, is_valid = span_context
    changes: dict[str, str] = {}
    if is_valid:
        key, value = prefix + "traceparent", f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}"
        if annotations.get(key) != value:
            changes[key] = value
        key, value = prefix + "tracestate", state.to_header() if state else ""
        if annotations.get(key, "") != value:
            changes[key] = value
    if counters is not None:
        counters.injected["success" if changes else "unchanged" if is_valid else "no_context"] += 1
    return changes


def _baggage(annotations: Mapping[str, str], context: Context | None, prefix: str) -> dict[str, str]:
    baggage: dict[str, str] = {}
    _BAGGAGE.inject(baggage, context)
    return {prefix + key: value for key, value in baggage.items() if annotations.get(prefix + key) != value}


def extract_context(
    annotations: Mapping[str, str],
    context: Context | None = None,
    *,
    prefix: str = DEFAULT_PREFIX,
    counters: PropagationCounters | None = None,
) -> Context:
    """`context` (default: an empty one) with the remote span that the annotations name, or unchanged.

    Only version 00 in exactly 55 lower-case characters with non-zero ids is taken; a bad tracestate is left out.
    `extracted` counts success, absent and invalid.
    """
    base = Context() if context is None else context
    traceparent = find(annotations, prefix, counters)
    if traceparent is None:
        return base
    return set_span_in_context(NonRecordingSpan(remote_context(traceparent, annotations, prefix)), base)


def find(annotations: Mapping[str, str], prefix: str, counters: PropagationCounters | None) -> re.Match[str] | None:
    """The traceparent that the annotations have, if it is one; see `extract_context`."""
    value = annotations.get(prefix + "traceparent")
    match = None if value is None else _TRACEPARENT.fullmatch(value)
    if counters is not None:
        counters.extracted["absent" if value is None else "invalid" if match is None else "success"] += 1
    return match


def remote_context(traceparent: re.Match[str], annotations: Mapping[str, str], prefix: str) -> SpanContext:
    """The span that a found traceparent names, with the tracestate beside it."""
    trace_id, span_id, flags = (int(part, 16) for part in traceparent.groups())
    tracestate = annotations.get(prefix + "tracestate", "")
    state = TraceState.from_header([tracestate]) if 0 < len(tracestate) <= _MAX_TRACESTATE else None
    return SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(flags), trace_state=state)
