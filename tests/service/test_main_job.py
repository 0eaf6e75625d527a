"""The main job, `pipeline.yaml` as it stands, but for ports and pace: what a newcomer sees first."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.service.toolbox import free_port, get

PIPELINE = (Path(__file__).parents[2] / "pipeline.yaml").read_text(encoding="utf-8")


@pytest.fixture
def page() -> int:
    """Where the page is served."""
    return free_port()


@pytest.fixture
def elsewhere(page: int) -> list[str]:
    """Arguments that move every port, and make the workload run as fast as it goes."""
    viewer = free_port()
    values = {
        "receivers.otlp.protocols.grpc.endpoint": "127.0.0.1:0",
        "receivers.otlp.protocols.http.endpoint": "127.0.0.1:0",
        "receivers.scheduler.speed": "0",
        "receivers.scheduler.workload.length": "2m",
        "extensions.health_check.endpoint": "127.0.0.1:0",
        "extensions.viewer.endpoint": f"127.0.0.1:{page}",
        "extensions.viewer.otlp_endpoint": f"127.0.0.1:{viewer}",
        "exporters.otlp_grpc.endpoint": f"${{env:OTEL_EXPORTER_OTLP_ENDPOINT:-http://127.0.0.1:{viewer}}}",
        "service.telemetry.metrics.address": f"127.0.0.1:{free_port()}",
    }
    return [argument for key, value in values.items() for argument in ("--set", f"{key}={value}")]


def test_it_sums_up_when_the_workload_is_through_and_serves_the_page_until_ctrl_c(
    start: Any, elsewhere: list[str], page: int
) -> None:
    process = start(PIPELINE, *elsewhere)
    process.line(rf"^Page +http://127.0.0.1:{page}/ +serving, Ctrl-C stops")
    status, html = get(f"http://127.0.0.1:{page}/")
    assert status == 200
    assert "lost-0" in html
    process.tell(signal.SIGINT)
    assert process.end() == 0
    assert process.log.count("podtrail: done in") == 1
    assert "Traceback" not in process.log


def test_what_is_summed_up_is_all_that_was_decided(start: Any, elsewhere: list[str], tmp_path: Path) -> None:
    process = start(PIPELINE, *elsewhere, "--set", "processors.batch.timeout=2s")
    told = process.line(r"^Traces +([\d,]+) ")[1]
    process.tell(signal.SIGINT)
    assert process.end() == 0
    decisions = (tmp_path / "out" / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    assert int(told.replace(",", "")) == len(decisions)


def test_a_page_on_a_port_that_the_system_chose_is_named_by_that_port(start: Any, elsewhere: list[str]) -> None:
    process = start(PIPELINE, *elsewhere, "--set", "extensions.viewer.endpoint=127.0.0.1:0")
    named = process.line(r"^Page +(http://127.0.0.1:[1-9]\d*/) +serving")[1]
    assert process.line(r"^Waiting .* --endpoint (\S+)")[1] == named
    assert get(named)[0] == 200


def test_with_exit_when_done_both_exporters_have_delivered_all_that_was_kept(
    start: Any, elsewhere: list[str], kept: Any, tmp_path: Path
) -> None:
    process = start(PIPELINE, *elsewhere, "--set", "exporters.file.path=kept.jsonl", "--exit-when-done", "--json")
    assert process.end() == 0
    told = json.loads(process.out)
    assert told["balanced"]
    delivered = {ledger["delivered"] for ledger in told["ledgers"]}
    assert delivered == {sum(map(len, kept().values()))}
    assert {"failed", "sample-5pct"} <= told["kept"].keys()
    decisions = (tmp_path / "out" / "decisions.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(decisions) == told["decided"]


def test_an_endpoint_in_the_environment_takes_the_place_of_the_embedded_backend(
    start: Any, elsewhere: list[str], backend: Any
) -> None:
    endpoint = f"http://127.0.0.1:{backend.port}"
    process = start(PIPELINE, *elsewhere, "--exit-when-done", "--json", OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)
    assert process.end() == 0
    (ledger,) = [ledger for ledger in json.loads(process.out)["ledgers"] if ledger["label"] == "otlp_grpc"]
    assert backend.spans(at_least=1) == ledger["delivered"] > 0


def test_the_schedulers_own_provider_ignores_the_environment(start: Any, elsewhere: list[str], backend: Any) -> None:
    """Spans leave through the pipeline alone, sampled; none goes to the backend past it."""
    endpoint = f"http://127.0.0.1:{backend.port}"
    process = start(
        PIPELINE,
        *elsewhere,
        *("--set", "processors.tail_sampling.policies=[{name: none, type: span_count, span_count: {min_spans: 9999}}]"),
        *("--exit-when-done", "--json"),
        OTEL_EXPORTER_OTLP_ENDPOINT=endpoint,
        OTEL_TRACES_SAMPLER="always_on",
    )
    assert process.end() == 0
    assert backend.requests.empty()
    assert json.loads(process.out)["ledgers"][0]["received"] > 1000
