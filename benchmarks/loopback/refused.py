"""What a refused request costs `podtrail run` in CPU, beside one that is taken: by transport and encoding.

The refusing one has a `memory_limiter` with a limit that the process alone exceeds; the other has the same with room.
"""

import http.client
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import grpc

from benchmarks.loopback.processes import cpu_of, wait_for
from benchmarks.wire import request_of_spans
from podtrail.otlp import read_request
from podtrail.otlp.json import write_json_request
from tests.free_ports import free_ports

_METHOD: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_CONFIG: Final = (
    "yaml:{receivers: {otlp: {protocols: {grpc: {endpoint: '127.0.0.1:%d'}, http: {endpoint: '127.0.0.1:%d'}}}}, "
    "processors: {memory_limiter: {check_interval: 1s, limit_mib: %d}, probabilistic_sampler: {sampling_percentage: 0}}"
    ", exporters: {debug: }, service: {telemetry: {metrics: {level: none}, logs: {level: error}}, pipelines: {traces: "
    "{receivers: [otlp], processors: [memory_limiter, probabilistic_sampler], exporters: [debug]}}}}"
)
_REQUESTS: Final = 300
_REFUSES, _TAKES = 1, 4_096
"""Mebibytes."""

Send = Callable[[], bool]
"""Sends a request; returns whether it was taken."""


@contextmanager
def _senders(limit: int, protobuf: bytes, json: bytes) -> Iterator[tuple[int, dict[str, Send]]]:
    """Run podtrail with a limit; yield its process and what sends to it, by the way."""
    grpc_port, http_port = free_ports(2)
    command = [sys.executable, "-m", "podtrail", "run", "--config", _CONFIG % (grpc_port, http_port, limit)]
    with ExitStack() as stack:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        wait_for(grpc_port, process)
        wait_for(http_port, process)
        channel = stack.enter_context(grpc.insecure_channel(f"127.0.0.1:{grpc_port}"))
        export: Any = channel.unary_unary(_METHOD)
        connection = http.client.HTTPConnection("127.0.0.1", http_port)
        stack.callback(connection.close)

        def by_grpc() -> bool:
            try:
                export(protobuf, timeout=60)
            except grpc.RpcError as error:
                if not isinstance(error, grpc.Call) or error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
                return False
            return True

        def by_http(body: bytes, kind: str) -> bool:
            connection.request("POST", "/v1/traces", body, {"content-type": f"application/{kind}"})
            with connection.getresponse() as answer:
                answer.read()
                return answer.status == http.HTTPStatus.OK

        yield (
            process.pid,
            {
                "OTLP gRPC": by_grpc,
                "HTTP protobuf": lambda: by_http(protobuf, "x-protobuf"),
                "HTTP JSON": lambda: by_http(json, "json"),
            },
        )


def _costs(rounds: int, limit: int, bodies: tuple[bytes, bytes]) -> dict[str, Sequence[float]]:
    """Return CPU microseconds of a request, by the way it is sent, a figure a round."""
    found: dict[str, list[float]] = {}
    with _senders(limit, *bodies) as (pid, senders):
        for number in range(rounds + 1):
            for name, send in senders.items():
                began = cpu_of(pid)
                taken = sum(send() for _ in range(_REQUESTS))
                if taken != (0 if limit == _REFUSES else _REQUESTS):
                    raise SystemExit(f"{taken} of {_REQUESTS} requests were taken with a limit of {limit} MiB")
                if number:  # the first warms up
                    found.setdefault(name, []).append((cpu_of(pid) - began) / _REQUESTS * 1e6)
    return dict(found)


def tell_refused(rounds: int) -> None:
    """Print what requests of 512 spans cost that are refused, and that are taken."""
    protobuf = request_of_spans(interleaved=False)
    bodies = protobuf, write_json_request(read_request(protobuf).groups)
    taken, refused = (_costs(rounds, limit, bodies) for limit in (_TAKES, _REFUSES))
    print(
        f"CPU us of a request of 512 spans ({len(bodies[0]):,} bytes, {len(bodies[1]):,} as JSON), median of {rounds}:"
    )
    for name, figures in taken.items():
        one, other = statistics.median(figures), statistics.median(refused[name])
        print(f"  {name:<14} taken {one:7,.0f}  refused {other:7,.0f}  {other / one:.2f}")
