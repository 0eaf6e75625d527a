"""Who is measured: commands that take OTLP/gRPC on one port of 127.0.0.1 and, but for the floor, send it to another."""

import json
import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import SLOW_MS
from benchmarks.loopback.processes import Ports
from podtrail.otlp.native import IS_LOADED, SWITCH

COLLECTOR = os.environ.get("BENCH_COLLECTOR", "")
"""Path of a Go Collector, which has what the benchmark that it stands in says; "" for none."""
DECISION_WAIT = 2.0
"""Seconds."""

_CONFIG = """\
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 127.0.0.1:{otlp}
processors:
  tail_sampling:
    decision_wait: {wait}s
    num_traces: 200000
    policies: {policies}
  batch:
exporters:
  otlp_grpc:
    endpoint: 127.0.0.1:{sink}
    compression: gzip
    tls:
      insecure: true
service:
  telemetry:
    metrics:
      level: none
  pipelines:
    traces:
      receivers: [otlp]
      processors: [tail_sampling, batch]
      exporters: [otlp_grpc]
"""


Policy = Mapping[str, object]

FAILED: Policy = {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}}
SLOW: Policy = {"name": "slow", "type": "latency", "latency": {"threshold_ms": SLOW_MS}}
SHARE: Policy = {"name": "share", "type": "probabilistic", "probabilistic": {"sampling_percentage": 5}}
THREE = (FAILED, SLOW, SHARE)


class Contender(NamedTuple):
    """One of those who are measured."""

    name: str
    sends: bool
    """Whether it sends on what it takes."""
    samples: bool
    """Whether it keeps only what is worth keeping."""
    policies: Sequence[Policy] = THREE
    """By which podtrail samples."""
    native: bool = True
    """Whether podtrail may use podtrail-native."""
    wait: float = DECISION_WAIT
    """Seconds that a trace is held."""

    def command(self, ports: Ports, home: Path) -> list[str]:
        """Return the command; its files go to `home`."""
        if self.name == "floor":
            return [sys.executable, "-m", "benchmarks.loopback.floor", str(ports.otlp)]
        if self.name == "rotel":
            return _rotel(ports, home)
        config = home / "pipeline.yaml"
        config.write_text(configuration(ports, self.wait, self.policies), encoding="utf-8")
        if self.name == "collector":
            return [COLLECTOR, "--config", str(config)]
        return [*([] if self.native else ["env", f"{SWITCH}=off"]), *podtrail_run(config)]


def configuration(ports: Ports, wait: float = DECISION_WAIT, policies: Sequence[Policy] = THREE) -> str:
    """Return the configuration of podtrail; `wait` is in seconds."""
    return _CONFIG.format(otlp=ports.otlp, sink=ports.sink, wait=wait, policies=json.dumps(policies))


def podtrail_run(config: Path) -> list[str]:
    """Return the command that runs a configuration."""
    return [str(Path(sysconfig.get_path("scripts")) / "podtrail"), "run", "--config", str(config)]


def _rotel(ports: Ports, home: Path) -> list[str]:
    options = {
        "--pid-file": home / "rotel.pid",
        "--otlp-grpc-endpoint": f"127.0.0.1:{ports.otlp}",
        "--otlp-http-endpoint": f"127.0.0.1:{ports.spare}",
        "--exporter": "otlp",
        "--otlp-exporter-protocol": "grpc",
        "--otlp-exporter-compression": "gzip",
        "--otlp-exporter-endpoint": f"http://127.0.0.1:{ports.sink}",
    }
    agent = files("rotel") / "rotel-agent"
    return [str(agent), "start", *(str(word) for option in options.items() for word in option)]


def contenders(wait: float = DECISION_WAIT) -> list[Contender]:
    """Return podtrail, once more in Python where it has its extension, the floor, and the peers that are there."""
    podtrail = Contender("podtrail", sends=True, samples=True, wait=wait)
    found = [podtrail, Contender("floor", sends=False, samples=False)]
    if IS_LOADED:
        found.insert(1, podtrail._replace(name="python", native=False))
    if COLLECTOR:
        found.append(podtrail._replace(name="collector"))
    if find_spec("rotel"):
        found.append(Contender("rotel", sends=True, samples=False))
    return found
