"""The size of spans as the Collector measures it, for `maximum_trace_size_bytes`.

It writes them anew and always writes resource, scope, parent and status, be they empty: 2 bytes each. (A sender that
does the same is measured a little larger here than there.)
"""

from collections.abc import Sequence

from podtrail.otlp import Group, SpanFields

_EMPTY_FIELD = 2


def measure(group: Group, spans: Sequence[SpanFields]) -> int:
    """Return the bytes of a group as one ResourceSpans message. `spans`: its spans with `parent_span_id`, `status`."""
    unwritten = sum(not span.parent_span_id for span in spans) + sum(not span.status for span in spans)
    scope_spans = (len(group.scope) or _EMPTY_FIELD) + len(group.spans) + _EMPTY_FIELD * unwritten
    length = -(-scope_spans.bit_length() // 7)
    return (len(group.resource) or _EMPTY_FIELD) + 1 + length + scope_spans
