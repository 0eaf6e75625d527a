"""podtrail as `./dev run` runs it, but for ports and pace, with a page that tells of all that was simulated."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from tests.free_ports import free_ports

_PIPELINE = Path(__file__).parents[2] / "pipeline.yaml"
_PATIENCE = 60


@contextmanager
def running(folder: Path, length: str = "20m", arrival_rate: float = 0.12) -> Iterator[str]:
    """Run it in a folder, with so much of a workload in simulated time; the page's address, once all is decided."""
    spans, own = free_ports(2)
    values = {
        "receivers.otlp.protocols.grpc.endpoint": "127.0.0.1:0",
        "receivers.otlp.protocols.http.endpoint": "127.0.0.1:0",
        "receivers.scheduler.speed": "0",
        "receivers.scheduler.workload.length": length,
        "receivers.scheduler.workload.arrival_rate": str(arrival_rate),
        "extensions.health_check.endpoint": "127.0.0.1:0",
        "extensions.viewer.endpoint": f"127.0.0.1:{own}",
        "extensions.viewer.otlp_endpoint": f"127.0.0.1:{spans}",
        "exporters.otlp_grpc.endpoint": f"http://127.0.0.1:{spans}",
        "service.telemetry.metrics.address": "127.0.0.1:0",
    }
    settings = [argument for key, value in values.items() for argument in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "podtrail", "run", "--config", str(_PIPELINE), *settings]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        late = Timer(_PATIENCE, process.kill)
        late.start()
        try:
            page = _page(process)
            late.cancel()
            yield page
        finally:
            late.cancel()
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=_PATIENCE)


def _page(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line)
        match line.split():
            case ["Page", address, *_]:
                return address
    raise AssertionError("".join(said))
