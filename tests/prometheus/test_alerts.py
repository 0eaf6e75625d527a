"""When each alert goes off, and when it does not: promtool plays hours in an instant."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.prometheus.conftest import MONITORING

RUNBOOKS = MONITORING.parents[1] / "docs" / "runbooks"
PLACE = "runbooks.example"
"""Where they are, unless somebody says it."""
QUEUE = {"otelcol_exporter_queue_capacity{exporter='a'}": "100x60"}
ATTEMPTS = "podtrail_scheduling_attempts_total{profile='default-scheduler',result='%s'}"
TOOK = "podtrail_scheduling_attempt_duration_seconds_bucket{profile='p',result='Success',le='%s'}"
LATENCY = "otelcol_processor_tail_sampling_sampling_decision_timer_latency_bucket{le='%s'}"
EVICTED = "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early"
CASES: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "PodtrailDown": ({"up{job='podtrail'}": "1x10 0x50"}, {"up{job='podtrail'}": "1x60"}),
    "PodtrailLosingSpans": (
        {"podtrail_dropped_spans_total{exporter='a',reason='queue_full'}": "_x55 7x5"},
        {"podtrail_dropped_spans_total{exporter='a',reason='queue_full'}": "7x60"},
    ),
    "PodtrailRefusing": (
        {"otelcol_receiver_refused_spans{receiver='otlp'}": "0+5x60"},
        {"otelcol_receiver_refused_spans{receiver='otlp'}": "0x20 5x40"},
    ),
    "PodtrailRefusingEverything": (
        {
            "otelcol_receiver_refused_spans{receiver='otlp'}": "0+5x60",
            "otelcol_receiver_accepted_spans{receiver='otlp'}": "0+5x50 250x10",
        },
        {
            "otelcol_receiver_refused_spans{receiver='otlp'}": "0+5x60",
            "otelcol_receiver_accepted_spans{receiver='otlp'}": "0+1x60",
        },
    ),
    "PodtrailQueueFilling": (
        {**QUEUE, "otelcol_exporter_queue_size{exporter='a'}": "90x60"},
        {**QUEUE, "otelcol_exporter_queue_size{exporter='a'}": "70x60"},
    ),
    "PodtrailEvictingUndecided": ({EVICTED: "0x55 3x5"}, {EVICTED: "3x60"}),
    "PodtrailDecidingLate": (
        {LATENCY % "1000": "0+0x60", LATENCY % "2000": "0+60x60", LATENCY % "+Inf": "0+60x60"},
        {LATENCY % "1000": "0+60x60", LATENCY % "2000": "0+60x60", LATENCY % "+Inf": "0+60x60"},
    ),
    "PodtrailLedgerUnbalanced": (
        {"podtrail_ledger_spans{exporter='a',term='missing'}": "0x10 2x50"},
        {"podtrail_ledger_spans{exporter='a',term='missing'}": "0x60"},
    ),
    "PodsPendingLong": (
        {
            "podtrail_scheduling_pending_pods{plugin='NodeResourcesFit'}": "1x60",
            "podtrail_scheduling_pending_since_timestamp_seconds{plugin='NodeResourcesFit'}": "60x60",
        },
        {
            "podtrail_scheduling_pending_pods{plugin='NodeResourcesFit'}": "1x60",
            "podtrail_scheduling_pending_since_timestamp_seconds{plugin='NodeResourcesFit'}": "3000x60",
        },
    ),
    "SchedulerSlow": (
        {TOOK % "1.024": "0+5x60", TOOK % "2.048": "0+60x60", TOOK % "+Inf": "0+60x60"},
        {TOOK % "0.512": "0+60x60", TOOK % "1.024": "0+60x60", TOOK % "+Inf": "0+60x60"},
    ),
    "SchedulerFailing": (
        {ATTEMPTS % "Error": "0+10x60", ATTEMPTS % "Success": "0+60x60"},
        {ATTEMPTS % "Error": "0+1x60", ATTEMPTS % "Success": "0+60x60"},
    ),
}
"""By alert: what an hour of trouble looks like, and one without; samples a minute apart."""


def played(name: str, series: Mapping[str, str], *, fires: bool) -> Mapping[str, Any]:
    """Return a test of promtool's: is the alert on at the end of the hour?"""
    return {
        "interval": "1m",
        "input_series": [{"series": text, "values": values} for text, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) > 0',
                "eval_time": "60m",
                "exp_samples": [{"value": 1}] if fires else [],
            }
        ],
    }


def test_every_alert_has_its_hours(rules: Mapping[str, Any]) -> None:
    assert {rule["alert"] for group in rules["groups"] for rule in group["rules"]} == CASES.keys()


@pytest.mark.prometheus
def test_alerts_go_off_in_trouble_and_not_without(programs: Path, rules: Mapping[str, Any], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(json.dumps(rules), encoding="utf-8")
    tests = [
        {"name": f"{name}: {fires}", **played(name, series, fires=fires)}
        for name, hours in CASES.items()
        for series, fires in zip(hours, (True, False), strict=True)
    ]
    suite = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "suite.yaml").write_text(json.dumps(suite), encoding="utf-8")
    for arguments in (["check", "rules", "rules.yaml"], ["test", "rules", "suite.yaml"]):
        done = subprocess.run([programs / "promtool", *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_says_how_bad_it_is_and_where_its_page_is(rules: Mapping[str, Any]) -> None:
    pages = set()
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        assert rule["labels"]["severity"] in ("critical", "warning")
        page = RUNBOOKS / rule["annotations"]["runbook_url"].removeprefix(f"https://{PLACE}/")
        text = page.read_text("utf-8")
        assert text.startswith(f"# {rule['alert']}\n")
        assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["What it means", "First look", "What to do"]
        pages.add(page.name)
    assert pages | {"README.md"} == {page.name for page in RUNBOOKS.glob("*.md")}
    assert set(re.findall(r"\(([\w-]+\.md)\)", (RUNBOOKS / "README.md").read_text("utf-8"))) == pages


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_where_the_runbooks_are_is_said_once(tmp_path: Path) -> None:
    shutil.copytree(MONITORING, tmp_path / "monitoring")
    kustomization = tmp_path / "monitoring" / "kustomization.yaml"
    text = kustomization.read_text("utf-8")
    assert text.count(f"place={PLACE} ") == 1
    kustomization.write_text(text.replace(f"place={PLACE} ", "place=git.example/podtrail/runbooks "), "utf-8")
    made = subprocess.run(["kubectl", "kustomize", kustomization.parent], check=True, capture_output=True, text=True)
    documents = list(yaml.safe_load_all(made.stdout))
    assert "podtrail-runbooks" not in {document["metadata"]["name"] for document in documents}
    (rules,) = (document["spec"] for document in documents if document["kind"] == "PrometheusRule")
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        place, page = rule["annotations"]["runbook_url"].rsplit("/", 1)
        assert place == "https://git.example/podtrail/runbooks"
        assert (RUNBOOKS / page).exists()
