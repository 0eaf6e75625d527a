"""The example of a scheduler plugin, tried as its documentation says: what the summary shows of it."""

import json
from pathlib import Path

from tests.forked_run import forked_run

ROOT = Path(__file__).parents[2]


def test_the_plugin_example_shows_who_waits_for_what(tmp_path: Path, free_ports: list[int]) -> None:
    page, otlp, metrics = free_ports[:3]
    done = forked_run(
        *("run", "--exit-when-done", "--json"),
        *("--config", str(ROOT / "examples" / "scheduler-plugin" / "simulation.yaml")),
        *("--set", f"extensions.viewer.endpoint=localhost:{page}"),
        *("--set", f"extensions.viewer.otlp_endpoint=localhost:{otlp}"),
        *("--set", f"exporters.otlp_grpc.endpoint=http://localhost:{otlp}"),
        *("--set", f"service.telemetry.metrics.address=localhost:{metrics}"),
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["balanced"]
    assert {waiting["reason"] for waiting in told["waiting"]} == {
        "Flavour: node(s) had another example.com/colour",
        "NodeResourcesFit: Insufficient cpu",
    }
