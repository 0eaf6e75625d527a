"""Gateways: processes of podtrail that read a topic, decide, and write what is kept to another one."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.kafka.cluster import Kafka

PODTRAIL = Path(sys.executable).parent / "podtrail"


class Job(NamedTuple):
    """What gateways of one group do."""

    source: str
    kept: str
    """The topic that kept spans go to."""
    group: str
    exactly_once: bool
    named: bool = False
    """Whether the group knows its members by name, so that one that comes back in time keeps its partitions."""

    def configuration(self, brokers: Sequence[str]) -> dict[str, Any]:
        """Return it: what has failed is kept, and a third of the rest, after two seconds."""
        client: dict[str, Any] = {"brokers": list(brokers)}
        receiver = {
            **client,
            "traces": {"topics": [self.source]},
            "group_id": self.group,
            "initial_offset": "earliest",
            "session_timeout": "6s",
            "heartbeat_interval": "500ms",
            "idle_timeout": "10s",
            "checkpoints": {"topic": f"checkpoints-{self.group}"},
            "exactly_once": self.exactly_once,
        }
        if self.named:
            receiver["group_instance_id"] = "${env:GATEWAY_NAME}"
        exporter = {
            **client,
            "traces": {"topic": self.kept},
            "partition_traces_by_id": True,
            "producer": {"required_acks": "all"},
            "timeout": "60s",  # a message that is not acknowledged in time is sent again, and may be there twice
            "retry_on_failure": {"initial_interval": "200ms", "max_interval": "1s", "max_elapsed_time": "0s"},
        }
        policies = [
            {"name": "failed", "type": "status_code", "status_code": {"status_codes": ["ERROR"]}},
            {"name": "some", "type": "probabilistic", "probabilistic": {"sampling_percentage": 33}},
        ]
        return {
            "receivers": {"kafka": receiver},
            "processors": {"tail_sampling": {"decision_wait": "2s", "policies": policies}},
            "exporters": {"kafka": exporter},
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {
                    "traces": {"receivers": ["kafka"], "processors": ["tail_sampling"], "exporters": ["kafka"]}
                },
            },
        }


class Gateways:
    """Processes of one group, that come and go."""

    def __init__(self, kafka: Kafka, job: Job, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.alive: list[subprocess.Popen[bytes]] = []
        self._names: dict[int, str] = {}
        """What those are called that are alive, by process id."""
        self._folder = folder
        self._numbers = itertools.count(1)
        self._config = folder / "gateway.yaml"
        self._config.write_text(json.dumps(job.configuration(kafka.addresses())), encoding="utf-8")

    def add(self) -> None:
        """One more joins, under the first name that none has."""
        log = self._folder / f"{next(self._numbers)}.log"
        taken = {self._names[process.pid] for process in self.alive}
        name = next(name for name in map("gateway-{}".format, itertools.count()) if name not in taken)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
        with log.open("wb") as out:
            self.alive.append(
                subprocess.Popen(
                    [PODTRAIL, "run", "--config", str(self._config)],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env={**environment, "GATEWAY_NAME": name},
                )
            )
        self._names[self.alive[-1].pid] = name

    def kill(self, which: int) -> None:
        """One is gone, whatever it was at."""
        process = self.alive.pop(which)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def leave(self, which: int) -> int:
        """One leaves in order; returns its exit code."""
        process = self.alive.pop(which)
        process.send_signal(signal.SIGTERM)
        return process.wait(180)

    def close(self) -> None:
        """Ends what is left."""
        for process in self.alive:
            process.kill()
            process.wait()
        self.alive.clear()

    def complaints(self) -> list[str]:
        """Returns what went wrong as they tell it: errors, and exceptions."""
        text = "\n".join(log.read_text("utf-8", "replace") for log in sorted(self._folder.glob("*.log")))
        return re.findall(r"(?m)^.*(?:\berror\b|ERROR|Traceback|missing).*$", text)
