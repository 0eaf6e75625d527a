"""Every configuration that the repository shows is right, and those that can run do."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml
from click.testing import CliRunner
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from podtrail.cli import main
from tests.forked_run import forked_run
from tests.service.conftest import PODTRAIL, Process

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
EXAMPLES = sorted(
    path
    for path in (ROOT / "examples").glob("**/*.yaml")
    if not path.stem.endswith("_test")
    and path.stem != "cluster"  # Kubernetes objects
    and path.parent.name != "components"  # which have to be installed: test_components_of_ones_own.py
    and path.parent.name != "scheduler-operator"  # Kubernetes objects: test_scheduler_operator_example.py
)
OTHERS = [ROOT / "pipeline.yaml", *(ROOT / "docker" / name for name in ("sidecar.yaml", "backend.yaml"))]
OTHERS.append(ROOT / "docker" / "scheduler.yaml")
NEEDED = {
    "OTEL_EXPORTER_OTLP_ENDPOINT": "http://backend.example:4317",
    "BACKEND": "https://backend.example:4317",
    "CLUSTER": "production",
    "NODE_NAME": "control-plane-1",
    "GATEWAY": "https://gateway.example:4317",
    "BROKERS": "kafka-1.example:9092,kafka-2.example:9092",
    "GATEWAY_NAME": "gateway-0",
}
PATIENCE = 600.0


def environment(more: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")} | dict(more)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in an empty folder, with what the configurations need of the environment."""
    monkeypatch.chdir(tmp_path)
    without: dict[str, str | None] = {key: None for key in os.environ if key.startswith("OTEL_")}
    return CliRunner(env=without | NEEDED)


def in_documents() -> list[tuple[str, str]]:
    """Return the whole configurations that stand in the documentation, by file and line."""
    found: list[tuple[str, str]] = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        found += [
            (f"{path.name}:{text.count(chr(10), 0, block.start()) + 1}", block[1])
            for block in re.finditer(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
            if re.search(r"^service:", block[1], re.MULTILINE)
        ]
    return found


@pytest.mark.parametrize("path", [*EXAMPLES, *OTHERS], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_configuration_is_right(path: Path, here: CliRunner) -> None:
    done = here.invoke(main, ["validate", "--config", str(path)])
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_says_what_it_is_for_and_how_to_run_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    header = re.match(r"(?:#.*\n)+", text)
    assert header
    assert re.search(rf"^#   .*podtrail (run|replay) --config {path.relative_to(ROOT)}", header[0], re.MULTILINE)


@pytest.mark.parametrize(("place", "text"), in_documents(), ids=lambda value: value if ".md:" in value else "")
def test_a_configuration_in_the_documentation_is_right(place: str, text: str, here: CliRunner) -> None:
    Path("config.yaml").write_text(text, encoding="utf-8")
    done = here.invoke(main, ["validate", "--config", "config.yaml"])
    assert done.exit_code == 0, f"{place}: {done.stderr}"


def test_the_documentation_shows_a_whole_configuration() -> None:
    assert any(place.startswith("README.md") for place, _ in in_documents())


def test_the_recording_example_runs_to_its_end_and_replay_takes_the_same_file(here: CliRunner, tmp_path: Path) -> None:
    recording = str(DATA / "recordings" / "apiserver.otlp.jsonl")
    config = str(ROOT / "examples" / "recording.yaml")
    run = forked_run("run", "--config", config, "--exit-when-done", environment=environment({"RECORDING": recording}))
    assert run.returncode == 0, run.stderr
    live = (tmp_path / "out" / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    done = here.invoke(main, ["replay", "--config", config, recording, "--decisions", "d.jsonl"])
    assert done.exit_code == 0, done.stderr
    replayed = (tmp_path / "d.jsonl").read_text(encoding="utf-8").splitlines()

    def decided(lines: list[str]) -> dict[str, str]:
        return {line["traceId"]: line["policy"] for line in map(json.loads, lines)}

    assert decided(live).keys() == decided(replayed).keys() != set()


@pytest.mark.usefixtures("here")
def test_the_workload_example_shows_what_it_promises(free_ports: list[int]) -> None:
    page, otlp, metrics = free_ports[:3]
    arguments = [
        *("run", "--config", str(ROOT / "examples" / "workload.yaml"), "--exit-when-done", "--json"),
        *("--set", "receivers.scheduler.speed=0"),
        *("--set", f"extensions.viewer.endpoint=localhost:{page}"),
        *("--set", f"extensions.viewer.otlp_endpoint=localhost:{otlp}"),
        *("--set", f"exporters.otlp_grpc.endpoint=http://localhost:{otlp}"),
        *("--set", f"service.telemetry.metrics.address=localhost:{metrics}"),
    ]
    done = forked_run(*arguments)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["balanced"]
    assert told["attempts"].keys() == {"Success", "Unschedulable", "Error"}
    assert {"failed", "slow", "sample-20pct"} <= told["kept"].keys()
    assert any("example.com/gpu" in waiting["reason"] for waiting in told["waiting"])


def test_the_tls_example_takes_spans_from_whoever_has_a_certificate_and_nobody_else(
    tmp_path: Path, free_ports: list[int]
) -> None:
    listen, metrics, nobody = free_ports[:3]
    tls = DATA / "tls"
    variables = {"TLS_DIR": str(tls), "LISTEN": f"127.0.0.1:{listen}", "BACKEND": f"https://127.0.0.1:{nobody}"}
    (tmp_path / "token").write_text("s3cret\n")
    variables |= {"TOKEN_FILE": str(tmp_path / "token"), "CLIENTS": "localhost"}
    arguments = ["run", "--config", str(ROOT / "examples" / "mutual-tls.yaml")]
    arguments += ["--set", f"service.telemetry.metrics.address=127.0.0.1:{metrics}"]
    process = Process([str(PODTRAIL)], arguments, tmp_path, variables)
    try:
        process.line("listening on")
        authority = (tls / "ca.pem").read_bytes()
        known = grpc.ssl_channel_credentials(
            authority, (tls / "client.key").read_bytes(), (tls / "client.pem").read_bytes()
        )
        assert export(listen, known) is SpanExportResult.SUCCESS
        assert export(listen, grpc.ssl_channel_credentials(authority), timeout=3) is SpanExportResult.FAILURE
    finally:
        process.close()


def export(port: int, credentials: grpc.ChannelCredentials, timeout: float = PATIENCE) -> SpanExportResult:
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    provider.get_tracer("test").start_span("SchedulePod").end()
    provider.shutdown()
    exporter = OTLPSpanExporter(f"https://127.0.0.1:{port}", credentials=credentials, timeout=timeout)
    try:
        return exporter.export(memory.get_finished_spans())
    finally:
        exporter.shutdown()


def test_the_policies_example_has_every_key_of_the_policies_it_shows() -> None:
    """A key that is missing there is one that nobody finds."""
    from podtrail.component.registry import find

    factory = find("processor", "tail_sampling")
    assert factory is not None
    shown = yaml.safe_load((ROOT / "examples" / "policies.yaml").read_text(encoding="utf-8"))
    policies: list[dict[str, Any]] = shown["processors"]["tail_sampling"]["policies"]
    validated: Any = factory.Config.model_validate(shown["processors"]["tail_sampling"])
    for policy, read in zip(policies, validated.policies, strict=True):
        block = getattr(read, policy["type"], None)
        if block is not None and policy["type"] in policy:
            assert set(policy[policy["type"]]) == set(type(block).model_fields), policy["name"]
