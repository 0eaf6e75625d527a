"""What reading and writing a request costs a span, against the upstream classes in the same run."""

import json
import time
from collections.abc import Callable

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from podtrail.otlp import read_request, write_request
from podtrail.otlp.json import read_json_request, write_json_request
from podtrail.otlp.native import RUNS
from podtrail.otlp.request import read_in_python

SPANS = 512
TRACES = 64
ROUNDS = 15
SECONDS_A_ROUND = 0.02

_PLUGINS = (
    "NodeResourcesFit",
    "TaintToleration",
    "NodeAffinity",
    "PodTopologySpread",
    "VolumeBinding",
    "ImageLocality",
)


def request_of_spans(*, interleaved: bool) -> bytes:
    """Return a request as a scheduler's SDK sends it: 512 spans of about 170 bytes, eight a trace."""
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add(schema_url="https://opentelemetry.io/schemas/1.37.0")
    resource_spans.resource.attributes.add(key="service.name").value.string_value = "kube-scheduler"
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "k8s.io/kubernetes/pkg/scheduler"
    for number in range(SPANS):
        trace = (number % TRACES if interleaved else number * TRACES // SPANS) + 1
        plugin = _PLUGINS[number % len(_PLUGINS)]
        attributes = {"scheduler.plugin": plugin, "scheduler.extension_point": "Filter", "k8s.node": "n17"}
        start = 1_790_000_000_000_000_000 + number * 1_000
        scope_spans.spans.append(
            Span(
                trace_id=trace.to_bytes(16, "big"),
                span_id=(number + 1).to_bytes(8, "big"),
                parent_span_id=(number // 8 * 8 + 1).to_bytes(8, "big"),
                name=f"Filter/{plugin}",
                kind=Span.SPAN_KIND_INTERNAL,
                flags=257,
                start_time_unix_nano=start,
                end_time_unix_nano=start + 90_000,
                status=Status(),
                attributes=[KeyValue(key=key, value=AnyValue(string_value=v)) for key, v in attributes.items()],
            )
        )
    return request.SerializeToString()


def microseconds_a_span(work: Callable[[], object]) -> float:
    """Return the CPU microseconds that work on a request takes for each span: the best of several rounds."""
    calls, best = 1, float("inf")
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(calls):
            work()
        took = time.process_time() - began
        best = min(best, took / calls)
        if took < SECONDS_A_ROUND:
            calls *= 2
    return best / SPANS * 1e6


def main() -> None:
    """Print CPU per span and its ratio to upstream's for the same work."""
    raw, interleaved = request_of_spans(interleaved=False), request_of_spans(interleaved=True)
    upstream = ExportTraceServiceRequest.FromString(raw)
    groups = read_request(raw).groups
    line = write_json_request(groups)
    parsed = json.loads(line)
    assert write_request(groups) == raw
    assert read_json_request(line).groups == groups

    def decode() -> list[bytes]:
        request = ExportTraceServiceRequest.FromString(raw)
        return [span.trace_id for span in request.resource_spans[0].scope_spans[0].spans]

    measured: list[tuple[str, Callable[[], object], str, Callable[[], object]]] = [
        ("read", lambda: read_request(raw), "upstream parse and trace ids", decode),
        ("read, interleaved traces", lambda: read_request(interleaved), "upstream parse and trace ids", decode),
        ("read in Python", lambda: read_in_python(raw), "read", lambda: read_request(raw)),
        (
            "read in Python, interleaved",
            lambda: read_in_python(interleaved),
            "read, interleaved traces",
            lambda: read_request(interleaved),
        ),
        ("write", lambda: write_request(groups), "upstream serialize", upstream.SerializeToString),
        ("read JSON", lambda: read_json_request(line), "json.loads", lambda: json.loads(line)),
        ("write JSON", lambda: write_json_request(groups), "json.dumps", lambda: json.dumps(parsed)),
    ]
    print(f"{SPANS} spans of {len(raw) / SPANS:.0f} bytes in {len(groups)} groups, CPU us a span; native: {RUNS}")
    for name, ours, peer_name, peer in measured:
        our, their = microseconds_a_span(ours), microseconds_a_span(peer)
        print(f"{name:<28}{our:7.3f}   {peer_name:<29}{their:7.3f}   ratio {our / their:.2f}")


if __name__ == "__main__":
    main()
