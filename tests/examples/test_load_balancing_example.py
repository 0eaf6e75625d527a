"""examples/load-balancing/ and docs/load-balancing.md: an agent and two gateways, run as their user would."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.examples.test_durable_example import halves
from tests.reliability.conftest import Sender, healthy, ids, sender
from tests.service.conftest import Process, until

__all__ = ["healthy", "sender", "until"]

FOLDER = Path(__file__).parents[2] / "examples" / "load-balancing"
PODTRAIL = Path(sys.executable).parent / "podtrail"
ATTEMPTS = 40


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Return a function that starts one of the examples, with settings and variables."""
    running: list[Process] = []

    def start(name: str, *settings: str, **variables: str) -> Process:
        command = ["run", "--config", str(FOLDER / name), *(f"--set={setting}" for setting in settings)]
        running.append(Process([str(PODTRAIL)], command, tmp_path, variables))
        return running[-1].ready()

    yield start
    for process in running:
        process.close()


def test_each_trace_is_judged_whole_by_one_of_two_gateways(
    run: Callable[..., Process], sender: Callable[[Process], Sender], healthy: Any, until: Any
) -> None:
    backend = f"http://127.0.0.1:{healthy.port}"
    soon = "processors.tail_sampling.decision_wait_after_root_received=1s"
    gateways = [
        run("gateway.yaml", soon, LISTEN="127.0.0.1:0", METRICS="127.0.0.1:0", OTEL_EXPORTER_OTLP_ENDPOINT=backend)
        for _ in range(2)
    ]
    anywhere = ("receivers.otlp.protocols.grpc.endpoint", "extensions.health_check.endpoint")
    agent = run(
        "agent.yaml",
        *(f"{key}=127.0.0.1:0" for key in (*anywhere, "service.telemetry.metrics.address")),
        **{f"GATEWAY_{number}": f"127.0.0.1:{gateway.port()}" for number, gateway in enumerate(gateways, 1)},
    )
    scheduler = sender(agent)
    attempts = [halves(number) for number in range(ATTEMPTS)]
    for half in (0, 1):
        for attempt in attempts:
            assert scheduler.send(attempt[half]).taken
    # Only roots say that an attempt failed: phases come along where their root is.
    sent = sum((ids(half) for attempt in attempts for half in attempt), Counter[bytes]())
    until(lambda: healthy.came.keys() == sent.keys())
    assert healthy.came == sent
    assert "2 backends: +127.0.0.1:" in agent.log
