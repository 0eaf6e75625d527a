"""Who is measured with a store on disk: podtrail and, where `BENCH_COLLECTOR` names its binary, the Go Collector."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.loopback.contenders import COLLECTOR, THREE, podtrail_run
from benchmarks.loopback.processes import Ports

_ONLY = os.environ.get("BENCH_ONLY", "").split()
"""Words; only those are measured whose names contain one of them."""
_DECISION_WAIT = 4.0
"""Seconds: longer than a sender may stand still on a busy machine, as its traces would be decided in parts."""
_QUEUE = 100_000
"""Requests that a sending queue holds: what overflows is not measured here."""


class Stored(NamedTuple):
    """A pipeline from OTLP/gRPC to OTLP/gRPC, with or without a store."""

    product: str
    """`podtrail` or `collector`."""
    samples: bool
    """Whether it samples tails; otherwise it passes all on."""
    keeps: str
    """What is on disk: "" for nothing, `queue` for the sending queue, `pipeline` for all that arrives."""
    fsync: bool = False
    """Whether an acknowledgement waits for fsync."""
    wait: float = _DECISION_WAIT
    """Seconds that a trace is held."""

    @property
    def sends(self) -> bool:
        """Whether it sends on what it takes."""
        return True

    @property
    def name(self) -> str:
        """What it is called in tables, and its files."""
        return "-".join((self.product, self.job, self.keeps or "nothing", *(["fsync"] if self.fsync else [])))

    @property
    def job(self) -> str:
        """What it does with spans."""
        return "sampling" if self.samples else "passing"

    def command(self, ports: Ports, home: Path) -> list[str]:
        """Return the command; its files, the store among them, go to `home`."""
        config = home / f"{self.name}.json"
        config.write_text(json.dumps(self._configuration(ports, home / f"{self.name}.store")), encoding="utf-8")
        return podtrail_run(config) if self.product == "podtrail" else [COLLECTOR, "--config", str(config)]

    def _configuration(self, ports: Ports, store: Path) -> dict[str, Any]:
        pipeline: dict[str, Any] = {"receivers": ["otlp"], "processors": [], "exporters": ["otlp_grpc"]}
        queue: dict[str, Any] = {"queue_size": _QUEUE}
        settings: dict[str, Any] = {
            "receivers": {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{ports.otlp}"}}}},
            "processors": {},
            "exporters": {
                "otlp_grpc": {
                    "endpoint": f"127.0.0.1:{ports.sink}",
                    "compression": "gzip",
                    "tls": {"insecure": True},
                    "sending_queue": queue,
                }
            },
            "service": {"telemetry": self._telemetry(ports), "pipelines": {"traces": pipeline}},
        }
        if self.samples:
            sampling = {"decision_wait": f"{self.wait}s", "num_traces": 200_000, "policies": THREE}
            settings["processors"] = {"tail_sampling": sampling, "batch": {}}
            pipeline["processors"] = ["tail_sampling", "batch"]
        if self.keeps:
            kept = {"directory": str(store), "create_directory": True, "fsync": self.fsync}
            settings["extensions"] = {"file_storage": kept}
            settings["service"]["extensions"] = ["file_storage"]
        if self.keeps == "queue":
            queue["storage"] = "file_storage"
        elif self.keeps == "pipeline":
            pipeline["durable"] = "file_storage"
        return settings

    def _telemetry(self, ports: Ports) -> dict[str, Any]:
        if self.product == "podtrail":
            return {"metrics": {"address": f"127.0.0.1:{ports.spare}"}}
        return {"logs": {"level": "warn"}, "metrics": {"level": "none"}}


def stored() -> list[Stored]:
    """Return who is measured: each job with nothing on disk, with a store, with a store and fsync."""
    return [each for each in _all() if not _ONLY or any(word in each.name for word in _ONLY)]


def _all() -> Iterator[Stored]:
    for samples in (False, True):
        for product in ("podtrail", *(["collector"] if COLLECTOR else [])):
            yield Stored(product, samples, "")
            keeps = "pipeline" if product == "podtrail" and samples else "queue"
            yield from (Stored(product, samples, keeps, fsync) for fsync in (False, True))
    yield from (Stored("podtrail", False, "pipeline", fsync) for fsync in (False, True))
