"""What the metrics page says: names and types as Prometheus wants them, exemplars for who asks for OpenMetrics."""

import asyncio
import urllib.request
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from podtrail.component import Metrics
from podtrail.service.telemetry import OPENMETRICS, TEXT, MetricsServer, exposition
from tests.service.toolbox import free_port, send

TRACE = bytes(range(16))
PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
"""What Prometheus 3 accepts."""


def test_a_counter_without_labels_begins_with_0_so_that_the_first_is_an_increase() -> None:
    metrics = Metrics()
    metrics.counter("podtrail_things_total", "Things.")
    metrics.counter("podtrail_kinds_total", "Things by kind.", ("kind",))
    told = samples(read_text(exposition(metrics)[0].decode()))
    assert told == {"podtrail_things_total": 0}


@pytest.fixture(name="made")
def _made() -> Metrics:
    metrics = Metrics()
    metrics.counter("podtrail_things_total", "Things.", ("kind",)).add(2, "one")
    metrics.counter("otelcol_things", "Things, as the Collector counts them.").add(3)
    metrics.counter("otelcol_things.dotted", "With a dot.").add(4)
    metrics.gauge("podtrail_here", "Now.").read_from(lambda: 5.0)
    metrics.gauge("podtrail_read_total", "Only grows.").read_from(lambda: 6.0)
    took = metrics.histogram("podtrail_took_seconds", "How long.", (1.0, 2.0))
    took.observe(0.5, trace_id=bytes(16), moment=1)
    took.observe(0.7, trace_id=TRACE, moment=1_500_000_000)
    took.observe(1.5)
    return metrics


def read_openmetrics(text: str) -> Any:
    return openmetrics.text_string_to_metric_families(text)  # type: ignore[no-untyped-call]


def samples(families: Any) -> dict[str, float]:
    return {sample.name: sample.value for family in families for sample in family.samples}


async def test_a_port_that_the_system_chose_is_in_the_log(made: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "podtrail")
    async with MetricsServer(made, "127.0.0.1", 0):
        (line,) = caplog.messages
        _, _, _, port, *_ = line.split()
        page = await asyncio.to_thread(urllib.request.urlopen, f"http://127.0.0.1:{port}/metrics")
        with page:
            assert page.status == 200


def test_both_formats_show_the_same_names_and_values(made: Metrics) -> None:
    text, content_type = exposition(made)
    assert content_type == TEXT
    others, openmetrics_type = exposition(made, PROMETHEUS)
    assert openmetrics_type == OPENMETRICS
    told = samples(read_text(text.decode()))
    assert told == samples(read_openmetrics(others.decode()))
    assert told["podtrail_things_total"] == 2
    assert told["otelcol_things"] == 3
    assert told["otelcol_things_dotted"] == 4


def test_what_ends_in_total_is_a_counter_and_no_name_is_changed(made: Metrics) -> None:
    types = dict(line.split()[2:] for line in exposition(made)[0].decode().splitlines() if line.startswith("# TYPE"))
    assert types == {
        "podtrail_things_total": "counter",
        "otelcol_things": "untyped",
        "otelcol_things_dotted": "untyped",
        "podtrail_here": "gauge",
        "podtrail_read_total": "counter",
        "podtrail_took_seconds": "histogram",
    }


def test_a_bucket_names_the_trace_of_its_last_observation(made: Metrics) -> None:
    (took,) = [
        f for f in read_openmetrics(exposition(made, PROMETHEUS)[0].decode()) if f.name == "podtrail_took_seconds"
    ]
    exemplars = {s.labels["le"]: s.exemplar for s in took.samples if s.name.endswith("_bucket")}
    assert (exemplars["2.0"], exemplars["+Inf"]) == (None, None)
    of_first = exemplars["1.0"]
    assert of_first is not None
    assert (of_first.labels, of_first.value) == ({"trace_id": TRACE.hex()}, 0.7)
    assert float(of_first.timestamp) == 1.5
    assert b"trace_id" not in exposition(made)[0]


def test_the_page_gives_exemplars_of_attempts_to_who_asks_for_openmetrics(
    start: Any, otlp_to_file: dict[str, Any]
) -> None:
    page = free_port()
    otlp_to_file["processors"]["scheduling_metrics"] = {}
    otlp_to_file["service"]["pipelines"]["traces"]["processors"] = ["scheduling_metrics", "tail_sampling"]
    otlp_to_file["service"]["telemetry"] = {"metrics": {"address": f"127.0.0.1:{page}"}}
    process = start(otlp_to_file)
    assert send(process.port(), traces=1, spans=1) is SpanExportResult.SUCCESS
    asked = urllib.request.Request(f"http://127.0.0.1:{page}/metrics", headers={"Accept": PROMETHEUS})
    with urllib.request.urlopen(asked, timeout=120) as answer:
        assert answer.headers["Content-Type"] == OPENMETRICS
        families = {family.name: family for family in read_openmetrics(answer.read().decode())}
    took = families["podtrail_scheduling_attempt_duration_seconds"]
    assert [len(s.exemplar.labels["trace_id"]) for s in took.samples if s.exemplar] == [32]
