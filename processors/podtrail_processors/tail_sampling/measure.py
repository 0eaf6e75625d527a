"""The size of spans as the Collector measures it, for `maximum_trace_size_bytes`.

It writes them anew and always writes resource, scope, parent and status, be they empty: 2 bytes each. (A sender that
does the same is measured a little larger here than there.)
"""

from podtrail.otlp import Group, span_reader

_EMPTY_FIELD = 2
_read = span_reader({"parent_span_id", "status"})


def measure(group: Group) -> int:
    """Return the bytes of a group as one ResourceSpans message."""
    spans = _read(group.spans)
    unwritten = sum(not span.parent_span_id for span in spans) + sum(not span.status for span in spans)
    scope_spans = (len(group.scope) or _EMPTY_FIELD) + len(group.spans) + _EMPTY_FIELD * unwritten
    length = -(-scope_spans.bit_length() // 7)
    return (len(group.resource) or _EMPTY_FIELD) + 1 + length + scope_spans
