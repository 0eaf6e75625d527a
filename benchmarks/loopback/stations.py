"""What spans go through on their way past one machine: agents, gateways, and the Go Collector in their place.

A station takes spans over OTLP/gRPC or from a Kafka topic, samples their tails or not, and sends on what is left over
OTLP/gRPC or into a Kafka topic.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.loopback.contenders import COLLECTOR, Policy, podtrail_run
from benchmarks.loopback.processes import Ports

ALL: tuple[Policy, ...] = ({"name": "all", "type": "always_sample"},)
"""Keeps every trace."""


class Topic(NamedTuple):
    """A topic of a broker."""

    brokers: str
    name: str
    group: str = "benchmark"
    """Of consumers."""


class Station(NamedTuple):
    """One process on the way."""

    name: str
    product: str = "podtrail"
    """`podtrail` or `collector`."""
    source: Topic | None = None
    """Where spans come from; None: OTLP/gRPC."""
    to: Topic | None = None
    """Where they go; None: OTLP/gRPC."""
    key: str = ""
    """`partition_by` of podtrail's kafka exporter; "": the trace's id, as the Collector has it, too."""
    policies: Sequence[Policy] = ()
    """By which it samples; without any it passes all on."""
    wait: float = 2.0
    """Seconds for which it holds a trace."""
    stitches: bool = False
    """Whether it links what it keeps, as gateways and sidecars do."""
    backends: int = 0
    """Among so many backends `load_balancing` chooses; 0: it is not used."""
    batches: bool = True
    """Whether it puts spans together before its exporter."""
    keeps: bool = False
    """Whether its queue is on disk."""
    extra: Mapping[str, Any] = {}
    """Keys of its kafka receiver or exporter besides."""

    @property
    def sends(self) -> bool:
        """Whether it sends to the sink."""
        return self.to is None

    @property
    def samples(self) -> bool:
        """Whether it keeps only what is worth keeping."""
        return bool(self.policies) and tuple(self.policies) != ALL

    def command(self, ports: Ports, home: Path) -> list[str]:
        """Return the command; its files go to `home`."""
        config = home / f"{self.name}.json"
        config.write_text(json.dumps(self._configuration(ports, home)), encoding="utf-8")
        return podtrail_run(config) if self.product == "podtrail" else [COLLECTOR, "--config", str(config)]

    def _configuration(self, ports: Ports, home: Path) -> dict[str, Any]:
        receivers, exporters = self._receivers(ports), self._exporters(ports)
        processors: dict[str, Any] = {}
        if self.policies:
            wait = f"{self.wait}s"
            processors["tail_sampling"] = {"decision_wait": wait, "num_traces": 200_000, "policies": self.policies}
        if self.stitches:
            processors["link_stitching"] = {}
        if self.batches:
            processors["batch"] = {}
        settings: dict[str, Any] = {
            "receivers": receivers,
            "processors": processors,
            "exporters": exporters,
            "extensions": {"health_check": {"endpoint": f"127.0.0.1:{ports.spare}"}},
            "service": {
                "extensions": ["health_check"],
                "telemetry": {"logs": {"level": "warn"}, "metrics": {"level": "none"}},
                "pipelines": {
                    "traces": {
                        "receivers": list(receivers),
                        "processors": list(processors),
                        "exporters": list(exporters),
                    }
                },
            },
        }
        if self.keeps:
            (exporter,) = exporters.values()
            exporter["sending_queue"] = {"storage": "file_storage", "queue_size": 100_000}
            settings["extensions"]["file_storage"] = {"directory": str(home / "store"), "create_directory": True}
            settings["service"]["extensions"].append("file_storage")
        return settings

    def _receivers(self, ports: Ports) -> dict[str, Any]:
        if self.source is None:
            return {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{ports.otlp}"}}}}
        kafka = {
            "brokers": [self.source.brokers],
            "group_id": self.source.group,
            "initial_offset": "earliest",
            "traces": {"topics": [self.source.name]},
        }
        return {"kafka": {**kafka, **self.extra}}

    def _exporters(self, ports: Ports) -> dict[str, Any]:
        # On a machine that stalls for some seconds a shorter one has spans sent twice.
        plain = {"compression": "gzip", "tls": {"insecure": True}, "timeout": "60s"}
        if self.to is not None:
            kafka = {
                "brokers": [self.to.brokers],
                "traces": {"topic": self.to.name},
                **({"partition_by": self.key} if self.key else {"partition_traces_by_id": True}),
                "producer": {"compression": "zstd"},
            }
            return {"kafka": {**kafka, **self.extra}}
        if self.backends:
            # The sink listens on all addresses of the loopback: as many backends as there are names for it.
            names = [f"127.0.0.{number + 1}:{ports.sink}" for number in range(self.backends)]
            return {"loadbalancing": {"protocol": {"otlp": plain}, "resolver": {"static": {"hostnames": names}}}}
        return {"otlp_grpc": {"endpoint": f"127.0.0.1:{ports.sink}", **plain}}
