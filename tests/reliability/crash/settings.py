"""The configurations of the matrix."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tests.reliability.crash.load import KEEP, Load

Transport = Literal["grpc", "proto", "json"]
Exporter = Literal["otlp_grpc", "otlp_http", "file"]
Storage = Literal["none", "queue", "durable", "both", "tail_sampling"]
CONSUMERS = 3


@dataclass(frozen=True)
class Setting:
    """A pipeline, and what of it is stored."""

    transport: Transport
    load: Load
    exporter: Exporter
    storage: Storage
    fsync: bool = False
    stitching: bool = False
    batch: bool = False

    @property
    def name(self) -> str:
        """Return what it is called in the table."""
        between = {"plain": "", "sampled": "sampler", "linked": "linked_traces", "attempts": "sampler"}[self.load]
        parts = [between, "link_stitching" if self.stitching else "", "batch" if self.batch else ""]
        way = [self.transport, *filter(None, parts), self.exporter]
        return f"{' > '.join(way)}; {self.storage}{', fsync' if self.fsync else ''}"

    @property
    def sampled(self) -> bool:
        """Whether traces wait for a decision."""
        return self.load != "plain"

    @property
    def durable(self) -> bool:
        """Whether what the processors hold is stored."""
        return self.storage in ("durable", "both", "tail_sampling")

    def without_storage(self) -> "Setting":
        """Return the same with nothing stored."""
        return replace(self, storage="none")

    def configuration(self, folder: Path, port: int, decision_wait: str = "1h") -> dict[str, Any]:
        """Return it for a backend at `port`; all files are below `folder`."""
        processors = self._processors(decision_wait)
        pipeline: dict[str, Any] = {
            "receivers": ["otlp"],
            "processors": list(processors),
            "exporters": [self.exporter],
        }
        if self.storage in ("durable", "both"):
            pipeline["durable"] = "file_storage"
        service: dict[str, Any] = {"telemetry": {"metrics": {"level": "none"}}, "pipelines": {"traces": pipeline}}
        config: dict[str, Any] = {
            "receivers": {"otlp": {"protocols": {p: {"endpoint": "127.0.0.1:0"} for p in ("grpc", "http")}}},
            "processors": processors,
            "exporters": {self.exporter: self._exporter(folder, port)},
            "service": service,
        }
        if self.storage != "none":
            storage = {"directory": str(folder / "storage"), "create_directory": True, "fsync": self.fsync}
            config["extensions"] = {"file_storage": storage}
            service["extensions"] = ["file_storage"]
        return config

    def _processors(self, decision_wait: str) -> dict[str, Any]:
        processors: dict[str, Any] = {}
        if self.sampled:
            marked = {"key": KEEP, "values": ["yes"]}
            sampler: dict[str, Any] = {
                "decision_wait": decision_wait,
                "decision_wait_after_root_received": "30ms",
                "decision_cache": {"sampled_cache_size": 100_000, "non_sampled_cache_size": 100_000},
                "policies": [{"name": "marked", "type": "string_attribute", "string_attribute": marked}],
            }
            if self.load == "linked":
                sampler["linked_traces"] = {"keep": True, "grace_period": "1h"}
            if self.storage == "tail_sampling":
                sampler["storage"] = "file_storage"
            processors["tail_sampling"] = sampler
        if self.stitching:
            processors["link_stitching"] = {"reorder_wait": "40ms"}
        if self.batch:
            processors["batch"] = {"timeout": "50ms"}
        return processors

    def _exporter(self, folder: Path, port: int) -> dict[str, Any]:
        if self.exporter == "file":
            return {"path": str(folder / "kept.jsonl"), "append": True, "flush_interval": "0s"}
        queue: dict[str, Any] = {"num_consumers": CONSUMERS, "queue_size": 10_000}
        if self.storage in ("queue", "both"):
            queue["storage"] = "file_storage"
        retry = {"initial_interval": "20ms", "max_interval": "100ms"}
        if self.storage == "none":
            retry["max_elapsed_time"] = "0s"
        return {"endpoint": f"http://127.0.0.1:{port}", "retry_on_failure": retry, "sending_queue": queue}


MATRIX: Sequence[Setting] = (
    Setting("grpc", "plain", "otlp_grpc", "queue"),
    Setting("json", "plain", "otlp_http", "queue", fsync=True),
    Setting("grpc", "plain", "otlp_grpc", "durable"),
    Setting("proto", "plain", "file", "durable"),
    Setting("json", "plain", "otlp_http", "durable"),
    Setting("grpc", "plain", "otlp_grpc", "both", fsync=True, batch=True),
    Setting("grpc", "sampled", "otlp_grpc", "durable"),
    Setting("json", "sampled", "otlp_http", "durable", fsync=True),
    Setting("grpc", "sampled", "file", "durable"),
    Setting("proto", "sampled", "otlp_grpc", "both"),
    Setting("grpc", "sampled", "otlp_grpc", "tail_sampling"),
    Setting("proto", "linked", "otlp_grpc", "durable"),
    Setting("grpc", "linked", "otlp_http", "both", batch=True),
    Setting("grpc", "attempts", "otlp_grpc", "durable", stitching=True),
    Setting("proto", "attempts", "file", "durable", stitching=True),
    Setting("json", "attempts", "otlp_grpc", "both", fsync=True, stitching=True, batch=True),
)
