"""Every line of the JSON log is a record, whoever in the process has something to say."""

import json
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import grpc

from podtrail.otlp import write_request
from podtrail.testing.attempts import MadeAttempt
from tests.service.toolbox import send

TLS = Path(__file__).parents[1] / "data" / "tls"
TRACES = "opentelemetry.proto.collector.trace.v1.TraceService"
TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(506)
"""A TLS handshake that begins and makes no sense."""
OTHERS = """
import gc, logging, threading, warnings
from podtrail.service.logs import configure_logs, log_what_python_prints

class Failing:
    def __del__(self):
        raise KeyError("finalizer")

def fail():
    raise KeyError("thread")

configure_logs("info", "json")
log_what_python_prints()
logging.getLogger("aiohttp.server").error("two\\nlines")
logging.getLogger("grpc").info("nobody wants to know")
warnings.warn("not like this")
Failing()
gc.collect()
thread = threading.Thread(target=fail, name="theirs")
thread.start()
thread.join()
"""


def records(lines: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines]


def test_what_the_core_of_grpc_has_to_say_stands_in_no_log(start: Any) -> None:
    anywhere = {"endpoint": "127.0.0.1:0"}
    tls = {**anywhere, "tls": {"cert_file": str(TLS / "server.pem"), "key_file": str(TLS / "server.key")}}
    method: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(lambda raw, _: b"")
    with ThreadPoolExecutor(2) as threads:
        backend = grpc.server(threads)
        backend.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(TRACES, {"Export": method}),))
        port = backend.add_insecure_port("127.0.0.1:0")
        backend.start()
        exporter = {"endpoint": f"http://127.0.0.1:{port}", "retry_on_failure": {"initial_interval": "100ms"}}
        process = start(
            {
                "receivers": {"otlp": {"protocols": {"grpc": anywhere}}, "otlp/tls": {"protocols": {"grpc": tls}}},
                "exporters": {"otlp_grpc": exporter},
                "service": {
                    "telemetry": {"metrics": {"level": "none"}, "logs": {"encoding": "json"}},
                    "pipelines": {"traces": {"receivers": ["otlp", "otlp/tls"], "exporters": ["otlp_grpc"]}},
                },
            }
        ).ready()
        plain, secure = (
            int(process.line(rf'listening on [^ ]*:(\d+) \(grpc\)", "component": "{id}"')[1])
            for id in ("otlp", "otlp/tls")
        )
        for said in (TLS_HELLO, b"GET / HTTP/1.1\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", secure), timeout=120) as connection:
                connection.sendall(said)
                connection.recv(100)  # gRPC closes what makes no sense, and says so
        send(plain)
        backend.stop(0).wait(30)  # and that it was told to go away
        send(plain)
        process.line("cannot deliver")
        process.tell(signal.SIGTERM)
        process.line("SIGTERM: stopping")
    process.close()
    logged = [line for line in process.lines if not line.startswith("podtrail: ")]  # the command's own last word
    assert {record["level"] for record in records(logged)} <= {"info", "warn"}


def test_libraries_and_python_itself_speak_in_records() -> None:
    done = subprocess.run([sys.executable, "-c", OTHERS], capture_output=True, text=True, check=True)
    library, warning, finalizer, thread = records(done.stderr.splitlines())
    assert (library["logger"], library["level"], library["msg"]) == ("aiohttp.server", "error", "two\nlines")
    assert (warning["logger"], warning["level"]) == ("py.warnings", "warn")
    assert "not like this" in warning["msg"]
    assert "KeyError: 'finalizer'" in finalizer["stacktrace"]
    assert thread["msg"] == "a thread failed: theirs"
    assert "KeyError: 'thread'" in thread["stacktrace"]


def test_a_tree_of_spans_is_lines_in_the_console_log_and_what_spans_say_makes_none(start: Any) -> None:
    process = start(
        {
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": "127.0.0.1:0"}}}},
            "exporters": {"debug": {"verbosity": "detailed"}},
            "service": {
                "telemetry": {"metrics": {"level": "none"}, "logs": {"encoding": "console"}},
                "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["debug"]}},
            },
        }
    ).ready()
    port = int(process.line(r"listening on [^ ]*:(\d+) \(http\)")[1])
    hostile = "\n00:00:00.000 error  forged: line\x1b[2J"
    body = write_request(MadeAttempt(attributes={"said": hostile}).groups())
    request = Request(f"http://127.0.0.1:{port}/v1/traces", body, {"Content-Type": "application/x-protobuf"})
    with urlopen(request, timeout=120) as answer:
        assert answer.status == 200
    process.line(r"^Trace ID: [0-9a-f]{32}$")
    process.line(r"^  SchedulePod  9 ms$")
    process.line(r"^         -> said: Str\(.*forged: line.*\)$")
