"""Memory of a shipped configuration while new Pods fail: it stays below the limit, and nothing is refused.

`./dev bench failing_pods [--config docker/sidecar.yaml] [--pods-per-second N] [--seconds N]`: 1,000 a second for ten
minutes unless told otherwise. podtrail runs the configuration as it is, only its ports are others. Each Pod fails once,
under a uid and a name of its own. Ends with 1 if a span was refused or dropped, or more than `--limit` was resident.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc

from benchmarks.loopback.processes import memory_of, wait_for
from podtrail.otlp import write_request
from podtrail.testing.attempts import MadeAttempt, No
from tests.free_ports import free_ports

_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_AT_ONCE = 50
"""Pods of a request."""
_BACKEND = (
    "yaml:{receivers: {otlp: {protocols: {grpc: {endpoint: 'localhost:%d'}}}}, exporters: {debug: }, service: "
    "{telemetry: {metrics: {level: none}}, pipelines: {traces: {receivers: [otlp], exporters: [debug]}}}}"
)
_COUNTERS = {
    "refused": "otelcol_processor_refused_spans",
    "dropped": "podtrail_dropped_spans_total",
    "Pods remembered": 'otelcol_processor_link_stitching_remembered{.*what="pod"',
    "MiB forgotten": "otelcol_processor_memory_limiter_forgotten_bytes",
}


def requests() -> Iterator[bytes]:
    """Yield requests of `_AT_ONCE` failed attempts."""
    refusals = [
        No(plugin="NodeResourcesFit", reason="Insufficient cpu", nodes=["node-1"]),
        No(plugin="TaintToleration", reason="node(s) had untolerated taint(s)", nodes=["node-2"]),
    ]
    number, begun = 0, time.time_ns() & 0xFFFFFFFF
    while True:
        numbers = range(number, number + _AT_ONCE)
        number = numbers.stop
        made = [
            MadeAttempt(
                uid=f"{begun:08x}-0000-4000-8000-{one:012}",
                name=f"web-{one}",
                result="Unschedulable",
                message="0/2 nodes are available",
                refusals=refusals,
                start=time.time_ns(),
                stitched=False,
            )
            for one in numbers
        ]
        yield write_request(group for one in made for group in one.groups())


def main(arguments: Sequence[str] = ()) -> int:
    """Run it."""
    reader = argparse.ArgumentParser(prog="./dev bench failing_pods", description=(__doc__ or "").partition("\n")[0])
    reader.add_argument("--config", type=Path, default=Path("docker/sidecar.yaml"))
    reader.add_argument("--pods-per-second", type=float, default=1000.0)
    reader.add_argument("--seconds", type=float, default=600.0)
    reader.add_argument("--limit", type=float, default=512.0, help="MiB that may be resident (512)")
    options = reader.parse_args(arguments)
    grpc_port, http_port, health, metrics, page, page_otlp, backend = free_ports(7)
    endpoints = {
        "receivers::otlp::protocols::grpc::endpoint": grpc_port,
        "receivers::otlp::protocols::http::endpoint": http_port,
        "extensions::health_check::endpoint": health,
        "extensions::viewer::endpoint": page,
        "extensions::viewer::otlp_endpoint": page_otlp,
        "service::telemetry::metrics::address": metrics,
    }
    run = [sys.executable, "-m", "podtrail", "run", "--config"]
    moved = [f"--set={key}=localhost:{port}" for key, port in endpoints.items()]
    environ = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://localhost:{backend}"}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="podtrail-failing-"))
        log = stack.enter_context((Path(folder) / "log").open("wb"))
        (Path(folder) / "out").mkdir()
        sink = subprocess.Popen([*run, _BACKEND % backend], stdout=subprocess.DEVNULL, stderr=log)
        stack.callback(sink.wait)
        stack.callback(sink.terminate)
        wait_for(backend, sink)
        config = options.config.resolve()
        one = subprocess.Popen([*run, str(config), *moved], cwd=folder, env=environ, stderr=log)
        stack.callback(one.wait)
        stack.callback(one.terminate)
        wait_for(grpc_port, one)
        return _send(options, grpc_port, metrics, one)


def _send(options: argparse.Namespace, port: int, metrics: int, process: "subprocess.Popen[bytes]") -> int:
    export: Any = grpc.insecure_channel(f"localhost:{port}").unary_unary(_EXPORT)
    began, sent, refused, shown = time.monotonic(), 0, 0, 0.0
    print(f"{'s':>5}  {'Pods':>8}  {'MiB':>6}  " + "  ".join(_COUNTERS))
    for request in requests():
        now = time.monotonic() - began
        if now >= options.seconds or process.poll() is not None:
            break
        if now >= shown:
            shown += options.seconds / 40
            print(
                f"{now:5.0f}  {sent:8,}  {memory_of(process.pid)[0] / (1 << 20):6.0f}  {_counted(metrics)}", flush=True
            )
        time.sleep(max(0.0, sent / options.pods_per_second - now))
        try:
            export(request, timeout=60)
        except grpc.RpcError as error:
            refused += _AT_ONCE
            print(f"{now:5.0f}  refused: {error.details() if isinstance(error, grpc.Call) else error}")
        sent += _AT_ONCE
    rate = sent / (time.monotonic() - began)
    most = memory_of(process.pid)[1] / (1 << 20)
    print(f"{sent:,} Pods at {rate:,.0f} a second, {refused:,} refused; at most {most:.0f} of {options.limit:.0f} MiB")
    print(_counted(metrics))
    return int(refused > 0 or most > options.limit or process.poll() is not None)


def _counted(port: int) -> str:
    with urllib.request.urlopen(f"http://localhost:{port}/metrics") as answer:
        text = answer.read().decode()
    sums = {
        name: sum(float(found) for found in re.findall(rf"^{pattern}.*?\s(\S+)$", text, re.MULTILINE))
        for name, pattern in _COUNTERS.items()
    }
    sums["MiB forgotten"] /= 1 << 20
    return "  ".join(f"{value:{len(name)},.0f}" for name, value in sums.items())
