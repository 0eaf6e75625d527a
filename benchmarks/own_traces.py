"""What podtrail's own traces cost it: CPU a request with them off, for one batch in a hundred, and for all.

Three `podtrail run` beside each other take turns; the best of several rounds counts, the median is shown with it.
Requests of one span, where a span of podtrail's own weighs most, and of 512. A turn lasts until all is written and
sent; what was received must have been delivered.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import grpc

from benchmarks.loopback.processes import cpu_of
from benchmarks.loopback.wire import METHOD, SERVICE
from benchmarks.wire import request_of_spans
from podtrail.otlp import frame, read_request, split, write_request

ROUNDS: Final = int(os.environ.get("BENCH_ROUNDS", "7"))
REQUESTS: Final = {1: 1500, 512: 150}
WAYS: Final[Mapping[str, float | None]] = {"off": None, "1 %": 0.01, "all": 1.0}
LIMITS: Final = {"off": 1.0, "1 %": 1.1}
"""What a request may cost at most, of what it costs with own traces off."""
PATIENCE: Final = 30.0
_IDLE: Final = 0.8
"""Seconds without work: longer than own spans gather."""
_PODTRAIL = Path(sys.executable).parent / "podtrail"


class _Running:
    """A podtrail that writes what comes into a file."""

    def __init__(self, folder: Path, share: float | None, backend: int) -> None:
        telemetry: dict[str, Any] = {"metrics": {"level": "none"}, "logs": {"encoding": "json"}}
        if share is not None:
            otlp = {"protocol": "grpc", "endpoint": f"http://127.0.0.1:{backend}"}
            sampler = {"parent_based": {"root": {"trace_id_ratio_based": {"ratio": share}}}}
            processors = [{"batch": {"schedule_delay": 500, "exporter": {"otlp": otlp}}}]
            telemetry["traces"] = {"processors": processors, "sampler": sampler}
        config = {
            "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
            "exporters": {"file": {"path": str(folder / f"{share}.jsonl")}},
            "service": {
                "telemetry": telemetry,
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["file"]}},
            },
        }
        path = folder / f"{share}.yaml"
        path.write_text(json.dumps(config), encoding="utf-8")
        self._process = subprocess.Popen([_PODTRAIL, "run", "--config", path], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(r"listening on 127\.0\.0\.1:(\d+)", line):
                break
        else:
            raise SystemExit(f"podtrail did not start, see {path}")
        self._rest: list[str] = []
        self._reader = threading.Thread(target=self._rest.extend, args=(self._process.stderr,))
        self._reader.start()
        self._channel = grpc.insecure_channel(f"127.0.0.1:{found[1]}")
        self._call: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(f"/{SERVICE}/{METHOD}")
        self.sent = 0

    def cost(self, body: bytes, spans: int) -> float:
        """Return CPU microseconds a request."""
        before = cpu_of(self._process.pid)
        for _ in range(REQUESTS[spans]):
            self._call(body, timeout=PATIENCE)
        self.sent += spans * REQUESTS[spans]
        return (self._when_idle() - before) / REQUESTS[spans] * 1e6

    def _when_idle(self) -> float:
        """Return its CPU seconds, once it has nothing more to do."""
        reading = cpu_of(self._process.pid)
        while True:
            time.sleep(_IDLE)
            last, reading = reading, cpu_of(self._process.pid)
            if reading - last < _IDLE / 20:
                return last

    def end(self) -> None:
        """End it. SystemExit when something was not delivered."""
        self._channel.close()
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if code or f"{self.sent} received = {self.sent} delivered" not in "".join(self._rest):
            raise SystemExit(f"{self.sent} spans were sent, podtrail says:\n{''.join(self._rest[-3:])}")


@contextmanager
def _backend() -> Iterator[int]:
    """Take own spans; yields the port."""
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(lambda *_: b"")
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler}),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield port
        server.stop(None).wait(PATIENCE)


def _measure(bodies: Mapping[int, bytes]) -> Mapping[int, Mapping[str, Sequence[float]]]:
    """Return CPU microseconds a request, by spans and way, a figure a round."""
    took: dict[int, dict[str, list[float]]] = {spans: {way: [] for way in WAYS} for spans in bodies}
    with tempfile.TemporaryDirectory() as folder, _backend() as backend:
        running = {way: _Running(Path(folder), share, backend) for way, share in WAYS.items()}
        for number in range(ROUNDS + 1):
            for spans, body in bodies.items():
                for way, podtrail in running.items():
                    cost = podtrail.cost(body, spans)
                    if number:  # the first warms up
                        took[spans][way].append(cost)
        for podtrail in running.values():
            podtrail.end()
    return took


def main() -> None:
    """Print ratios, and microseconds of this machine. SystemExit when a share costs more than it may."""
    whole = request_of_spans(interleaved=False)
    first = read_request(whole).groups[0]
    single = write_request([first._replace(spans=frame(list(split(first.spans))[:1]), span_count=1)])
    dear = []
    for spans, ways in _measure({1: single, 512: whole}).items():
        base = min(ways["off"])
        print(f"requests of {spans} spans, podtrail's CPU:")
        for way, figures in ways.items():
            ratio = min(figures) / base
            median = statistics.median(figures)
            print(f"  own traces {way:<4} {min(figures):8.1f} us a request ({median:.1f})  {ratio:.2f} of off")
            if ratio > LIMITS.get(way, ratio):
                dear.append(f"{way} at {spans} spans: {ratio:.2f}")
    if dear:
        raise SystemExit(f"own traces cost too much: {', '.join(dear)}")


if __name__ == "__main__":
    main()
