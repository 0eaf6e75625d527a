"""How long it takes until `podtrail --help` has answered and `podtrail run` is ready, against `python -c pass`.

Ready is when the OTLP port answers and the log says so. Modules are compiled beforehand, as after any first start.
"""

import os
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.loopback.contenders import configuration, podtrail_run
from benchmarks.loopback.processes import answers, free_ports

ROUNDS = 9
LIMITS = {"--help": 0.2, "run": 0.7}
_PODTRAIL = str(Path(sysconfig.get_path("scripts")) / "podtrail")
_CONFIG = Path(__file__).parent.parent / "pipeline.yaml"


def _done(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=_environment())
    return time.perf_counter() - began


def _environment() -> dict[str, str]:
    """Return the environment without what keeps Python from reading compiled modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _ready(config: Path, port: int, *settings: str) -> float:
    """Return the seconds until a configuration runs."""
    command = [*podtrail_run(config), *(word for setting in settings for word in ("--set", setting))]
    began = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=_environment()) as process:
        assert process.stderr is not None
        seen = ""
        for line in process.stderr:
            seen += line
            if "ready: " in line:
                break
        took = time.perf_counter() - began
        served = answers(port)
        process.terminate()
        process.stderr.read()
    if not served:
        raise SystemExit(f"not ready:\n{seen}")
    return took


def _sampling(home: Path) -> float:
    """Tail sampling from OTLP/gRPC to OTLP/gRPC, nothing else."""
    ports = free_ports()
    config = home / "pipeline.yaml"
    config.write_text(configuration(ports), encoding="utf-8")
    return _ready(config, ports.otlp)


def _main_job(home: Path) -> float:
    """The project's own pipeline.yaml, on other ports and without its simulated scheduler."""
    first, second = free_ports(), free_ports()
    text = _CONFIG.read_text(encoding="utf-8").replace("receivers: [otlp, scheduler]", "receivers: [otlp]")
    config = home / "main.yaml"
    config.write_text(re.sub(r"\bout/", f"{home}/", text), encoding="utf-8")
    return _ready(
        config,
        first.otlp,
        f"receivers.otlp.protocols.grpc.endpoint=127.0.0.1:{first.otlp}",
        f"receivers.otlp.protocols.http.endpoint=127.0.0.1:{first.spare}",
        f"extensions.health_check.endpoint=127.0.0.1:{second.otlp}",
        f"extensions.viewer.endpoint=127.0.0.1:{second.spare}",
        f"extensions.viewer.otlp_endpoint=127.0.0.1:{second.sink}",
        f"exporters.otlp_grpc.endpoint=http://127.0.0.1:{second.sink}",
        "service.telemetry.metrics.level=none",
    )


def main() -> None:
    """Print the minimum and the median of each, and its ratio to starting Python."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        cases: dict[str, Callable[[], float]] = {
            "python -c pass": lambda: _done(sys.executable, "-c", "pass"),
            "podtrail --help": lambda: _done(_PODTRAIL, "--help"),
            "run, tail sampling": lambda: _sampling(home),
            "run, pipeline.yaml": lambda: _main_job(home),
        }
        for measure in cases.values():
            measure()
        runs: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(ROUNDS):
            for name, measure in cases.items():
                runs[name].append(measure())
    floor = min(runs["python -c pass"])
    for name, seconds in runs.items():
        least = min(seconds)
        print(f"{name:<20} {least:.3f} / {statistics.median(seconds):.3f} s   {least / floor:5.1f} x python")
    limits = ", ".join(f"{name} {seconds} s" for name, seconds in LIMITS.items())
    print(f"min / median of {ROUNDS}; limits: {limits}")


if __name__ == "__main__":
    main()
