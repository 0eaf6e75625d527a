"""examples/durable.yaml and docs/reliability.md: run as their user would, and killed in the middle."""

import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from podtrail.cli import main
from tests.reliability.conftest import Sender, healthy, ids, sender
from tests.service.conftest import Process, free_port, get, until

__all__ = ["free_port", "get", "healthy", "sender", "until"]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "durable.yaml"
PAGE = ROOT / "docs" / "reliability.md"
PODTRAIL = Path(sys.executable).parent / "podtrail"
ATTEMPTS = 40


@pytest.fixture
def run(tmp_path: Path, healthy: Any) -> Iterator[Callable[..., Process]]:
    """Return a function that starts the example on one folder, with a backend that takes everything."""
    running: list[Process] = []
    anywhere = ("receivers.otlp.protocols.grpc.endpoint", "extensions.health_check.endpoint")
    settings = [f"--set={key}=127.0.0.1:0" for key in (*anywhere, "service.telemetry.metrics.address")]
    settings.append("--set=processors.tail_sampling.decision_wait_after_root_received=1s")
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{healthy.port}",
        "STORAGE": str(tmp_path / "storage"),
    }

    def start(*more: str) -> Process:
        command = ["run", "--config", str(EXAMPLE), *settings, *more]
        running.append(Process([str(PODTRAIL)], command, tmp_path, environment))
        return running[-1].ready()

    yield start
    for process in running:
        process.close()


def halves(number: int) -> list[ExportTraceServiceRequest]:
    """Return a failed attempt as it comes: the phases in one request, its root in another."""
    phases, last = ExportTraceServiceRequest(), ExportTraceServiceRequest()
    trace_id, root = (number + 1).to_bytes(16, "big"), (number * 10 + 1).to_bytes(8, "big")
    now = time.time_ns()
    times = {"start_time_unix_nano": now, "end_time_unix_nano": now + 1}
    scope = phases.resource_spans.add().scope_spans.add()
    for at in range(3):
        span_id = (number * 10 + at + 2).to_bytes(8, "big")
        scope.spans.add(trace_id=trace_id, span_id=span_id, parent_span_id=root, name="schedulingCycle", **times)
    span = (
        last.resource_spans.add()
        .scope_spans.add()
        .spans.add(trace_id=trace_id, span_id=root, name="SchedulePod", **times)
    )
    span.attributes.add(key="scheduler.result").value.string_value = "Unschedulable"
    return [phases, last]


def test_killed_in_the_middle_and_started_again_it_delivers_all_that_it_had_acknowledged(
    run: Callable[[], Process], sender: Callable[[Process], Sender], healthy: Any, until: Any, tmp_path: Path
) -> None:
    attempts = [halves(number) for number in range(ATTEMPTS)]
    first = run()
    before = sender(first)
    for phases, root in attempts[: ATTEMPTS // 2]:
        assert before.send(phases).taken
        assert before.send(root).taken
    for phases, _ in attempts[ATTEMPTS // 2 :]:
        assert before.send(phases).taken  # whose roots come later: these traces are undecided
    first.tell(signal.SIGKILL)
    first.end()
    second = run()
    after = sender(second)
    for _, root in attempts[ATTEMPTS // 2 :]:
        assert after.send(root).taken
    acknowledged = before.acknowledged + after.acknowledged
    assert acknowledged.total() == ATTEMPTS * 4
    until(lambda: healthy.came.keys() >= acknowledged.keys())
    second.tell(signal.SIGTERM)
    assert second.end() == 0
    assert healthy.came.keys() == acknowledged.keys()
    # What was under way to the backend when podtrail was killed may come once more, nothing else.
    under_way = sum((ids(sent) for attempt in attempts[: ATTEMPTS // 2] for sent in attempt), Counter[bytes]())
    assert healthy.came - acknowledged <= under_way


def test_what_a_crash_has_left_is_a_recording_as_the_page_shows(
    run: Callable[[], Process], sender: Callable[[Process], Sender], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    process = run()
    here = sender(process)
    for phases, root in map(halves, range(10)):
        assert here.send(phases).taken
        assert here.send(root).taken
    process.tell(signal.SIGKILL)
    process.end()
    shown = re.findall(r"^\$ podtrail (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line.split()[0] for line in shown] == ["recording", "replay"]
    log = str(tmp_path / "storage" / "pipelines")
    for line in shown:
        words = line.replace("/var/lib/podtrail/storage/pipelines", log).split()
        words = [str(EXAMPLE) if word == "examples/durable.yaml" else word for word in words]
        done = CliRunner().invoke(main, words, env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://backend.example:4317"})
        assert done.exit_code == 0, done.stderr
        assert "skipped" not in done.stderr
        if "stat" in words:
            assert "40 spans, 10 traces" in done.stdout
    decisions = (tmp_path / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(decisions) == 10


def test_the_folder_is_its_owners_alone_and_every_metric_that_the_page_names_is_there(
    run: Callable[..., Process], sender: Callable[[Process], Sender], get: Any, free_port: Any, tmp_path: Path
) -> None:
    port = free_port()
    process = run(f"--set=service.telemetry.metrics.address=127.0.0.1:{port}")
    assert sender(process).send(halves(0)[0]).taken
    _, page = get(f"http://127.0.0.1:{port}/metrics")
    there = set(re.findall(r"^# TYPE (\w+)", page, re.MULTILINE))
    named = set(re.findall(r"`(otelcol_extension_file_storage_\w+)`", PAGE.read_text(encoding="utf-8")))
    assert len(named) >= 10
    assert {name for name in there if name.startswith("otelcol_extension_file_storage_")} == named
    storage = tmp_path / "storage"
    assert storage.stat().st_mode & 0o777 == 0o700
    files = [path for path in storage.rglob("*") if path.is_file()]
    assert files
    assert {(path.stat().st_mode & 0o777, path.stat().st_uid) for path in files} == {(0o600, os.getuid())}
