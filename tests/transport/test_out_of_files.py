"""A process that may open no more files: connections wait, and the log says so once."""

import re
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path

CONFIG = """\
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:0"}}}}
exporters: {debug: }
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [debug]}}
"""
FILES = 48


def test_connections_wait_when_files_are_used_up_and_the_log_says_so_once(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    # By a shell: a process with threads, as one with gRPC is, must not run Python between fork and exec.
    limited = ["sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh"]
    process = subprocess.Popen(
        [*limited, sys.executable, "-m", "podtrail", "run", "--config", str(config)], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process, ExitStack() as connections:
        try:
            listening = next(match for line in process.stderr if (match := re.search(r"127.0.0.1:(\d+)", line)))
            port = int(listening[1])
            for _ in range(FILES):
                connections.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120))
            assert "connections have to wait: Too many open files" in next(process.stderr)
            connections.close()
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/traces", b"", {"Content-Type": "application/x-protobuf"}
            )
            with urllib.request.urlopen(request, timeout=120) as answer:
                assert answer.status == 200
        finally:
            process.send_signal(signal.SIGTERM)
        said = process.stderr.read()
    assert said.count("\n") <= 3
    assert "Traceback" not in said
