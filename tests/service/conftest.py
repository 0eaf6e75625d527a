"""`podtrail run` as a process of its own, real SDK clients, and backends that answer from a script."""

import json
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from tests import forks
from tests.service import toolbox
from tests.service.toolbox import PATIENCE

PODTRAIL = Path(sys.executable).parent / "podtrail"
TRACES = "opentelemetry.proto.collector.trace.v1.TraceService"


class Process:
    """A running `podtrail`, with what it has said so far: a fork where it can be one, which costs much less."""

    def __init__(
        self, program: Sequence[str], arguments: Sequence[str], directory: Path, environment: Mapping[str, str]
    ) -> None:
        variables = forks.environment(environment)
        self.popen: forks.PipedFork | subprocess.Popen[str]
        if list(program) == [str(PODTRAIL)] and not any(name.startswith("PYTHON") for name in environment):
            self.popen = forks.PipedFork([*program, *arguments], directory, variables)
        else:
            self.popen = subprocess.Popen(
                [*program, *arguments],
                cwd=directory,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        self.lines: list[str] = []
        self._out: list[str] = []
        self._changed = threading.Condition()
        assert self.popen.stdout is not None
        assert self.popen.stderr is not None
        self._readers = [
            threading.Thread(target=self._read, args=(self.popen.stderr, self.lines)),
            threading.Thread(target=self._read, args=(self.popen.stdout, self._out)),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any, into: list[str]) -> None:
        for line in stream:
            with self._changed:
                into.append(line.rstrip("\n"))
                self._changed.notify_all()
        with self._changed:
            self._changed.notify_all()

    @property
    def log(self) -> str:
        """What came on standard error."""
        return "\n".join(self.lines)

    @property
    def out(self) -> str:
        """What came on standard output; whole after `end`."""
        return "\n".join(self._out)

    def line(self, pattern: str, *, after: int = 0) -> re.Match[str]:
        """Wait for a line of standard error, not one of the first `after`."""

        def found() -> re.Match[str] | None:
            return next((m for line in self.lines[after:] if (m := re.search(pattern, line))), None)

        def silent() -> bool:
            return not self._readers[0].is_alive()

        with self._changed:
            self._changed.wait_for(lambda: found() or silent(), PATIENCE)
            match = found()
        assert match, f"no line like {pattern!r} in:\n{self.log}"
        return match

    def port(self, protocol: str = "grpc") -> int:
        """Wait until the `otlp` receiver listens and return its port."""
        return int(self.line(rf"listening on [^ ]*:(\d+) \({protocol}\)")[1])

    def ready(self) -> "Process":
        """Wait until it says that it is ready."""
        self.line("ready: ")
        return self

    def tell(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.popen.send_signal(number)

    def end(self, seconds: float = PATIENCE) -> int:
        """Wait for the end and return the exit code."""
        code = self.popen.wait(seconds)
        for reader in self._readers:
            reader.join(PATIENCE)
        return code

    def close(self) -> None:
        """End it whatever it does."""
        self.popen.kill()
        self.end()
        for stream in (self.popen.stdout, self.popen.stderr):
            assert stream is not None
            stream.close()


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts `podtrail run` on a configuration (mapping or text) in `tmp_path`.

    It takes further arguments, `program` instead of the console script, and variables of the environment.
    """
    running: list[Process] = []

    def run(
        config: Mapping[str, Any] | str,
        *arguments: str,
        program: Sequence[str] = (str(PODTRAIL),),
        **environment: str,
    ) -> Process:
        path = tmp_path / "config.yaml"
        path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
        process = Process(program, ["run", "--config", str(path), *arguments], tmp_path, environment)
        running.append(process)
        return process

    yield run
    for process in running:
        process.close()


@pytest.fixture
def configure(tmp_path: Path) -> Callable[[Mapping[str, Any] | str], None]:
    """Return a function that puts another configuration in the place of the one that `start` wrote."""

    def write(config: Mapping[str, Any] | str) -> None:
        beside = tmp_path / "config.next"
        beside.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
        beside.replace(tmp_path / "config.yaml")

    return write


@pytest.fixture
def otlp_to_file() -> dict[str, Any]:
    """A configuration: otlp on any free port, tail sampling that keeps everything, a file with decisions."""
    return {
        "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": "127.0.0.1:0"}}}},
        "processors": {"tail_sampling": toolbox.sampler("1h")},
        "exporters": {"file": {"path": "kept.jsonl", "decisions_path": "decisions.jsonl"}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {
                "traces": {"receivers": ["otlp"], "processors": ["tail_sampling"], "exporters": ["file"]},
            },
        },
    }


class Backend:
    """An OTLP backend over gRPC. It answers while `open`, and says what came."""

    def __init__(self) -> None:
        self.requests: queue.Queue[ExportTraceServiceRequest] = queue.Queue()
        self.open = threading.Event()
        self.open.set()
        self.port = 0

    def export(self, raw: bytes, context: grpc.ServicerContext) -> bytes:
        self.requests.put(ExportTraceServiceRequest.FromString(raw))
        while not self.open.wait(0.05) and context.is_active():
            pass
        return ExportTraceServiceResponse().SerializeToString()

    def spans(self, at_least: int) -> int:
        """Wait for so many spans; return how many came."""
        came = 0
        while came < at_least:
            came += count(self.requests.get(timeout=PATIENCE))
        while not self.requests.empty():
            came += count(self.requests.get())
        return came


def count(request: ExportTraceServiceRequest) -> int:
    """Return the number of spans in a request."""
    return sum(len(scope.spans) for resource in request.resource_spans for scope in resource.scope_spans)


@pytest.fixture
def backend() -> Iterator[Backend]:
    """A backend that listens on a free port of 127.0.0.1."""
    handler = Backend()
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(handler.export)
    with ThreadPoolExecutor(16) as threads:
        server = grpc.server(threads)
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(TRACES, {"Export": method}),))
        handler.port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield handler
        handler.open.set()
        server.stop(None).wait(PATIENCE)


@pytest.fixture
def black_hole() -> Iterator[int]:
    """The port of a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


Lines = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def json_lines(tmp_path: Path) -> Lines:
    """Return a function that reads a file of JSON lines in `tmp_path`."""

    def read(name: str) -> list[dict[str, Any]]:
        path = tmp_path / name
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []

    return read


@pytest.fixture
def kept(json_lines: Lines) -> Callable[[], dict[str, list[str]]]:
    """Return a function that reads `kept.jsonl`: trace id to span ids, in hex."""

    def read() -> dict[str, list[str]]:
        traces: dict[str, list[str]] = {}
        for request in json_lines("kept.jsonl"):
            for resource in request["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        traces.setdefault(span["traceId"], []).append(span["spanId"])
        return traces

    return read


@contextmanager
def _occupied() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def occupied() -> Iterator[int]:
    """A port of 127.0.0.1 that somebody listens on."""
    with _occupied() as port:
        yield port


# For tests elsewhere that take them as fixtures.
free_port = pytest.fixture(name="free_port")(lambda: toolbox.free_port)
get = pytest.fixture(name="get")(lambda: toolbox.get)
metrics = pytest.fixture(name="metrics")(lambda: toolbox.metrics)
send = pytest.fixture(name="send")(lambda: toolbox.send)
until = pytest.fixture(name="until")(lambda: toolbox.until)
