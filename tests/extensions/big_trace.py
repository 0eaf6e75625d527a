"""A trace with thousands of spans, 18 µs each beside a root of 4 s."""

from podtrail.otlp import Group, Value, encode_span, frame, resource_header, scope_header

TRACE = bytes(range(16))
BEGAN = 1_790_000_000_000_000_000
WHOLE = 4_000_000_000
SHORT = 18_000
_BELOW = 7


def span_id(number: int) -> bytes:
    """8 bytes."""
    return (number + 1).to_bytes(8, "big")


def big_trace(count: int) -> Group:
    """Return it: number 0 is the root, each span has seven below it."""
    spans = [encode_span(trace_id=TRACE, span_id=span_id(0), name="Everything", start=BEGAN, end=BEGAN + WHOLE)]
    for number in range(1, count):
        start = BEGAN + number * WHOLE // (count + 1)
        plugin = f"P{number % 23}"
        told: dict[str, Value] = {
            "scheduler.plugin.name": plugin,
            "scheduler.plugin.extension_point": "filter",
        }
        spans.append(
            encode_span(
                trace_id=TRACE,
                span_id=span_id(number),
                parent_span_id=span_id((number - 1) // _BELOW),
                name=f"plugin: {plugin}" if number % 2 else f"step {number}",
                start=start,
                end=start + SHORT,
                attributes=told if number % 2 else None,
            )
        )
    resource = resource_header({"service.name": "kube-scheduler"})
    return Group(resource, scope_header("test"), TRACE, frame(spans), len(spans))
