"""The metrics reference is what the code says, and the names are as Prometheus advises."""

import re
from pathlib import Path

import pytest

from tools.docs import instruments
from tools.docs.instruments import Described, described
from tools.docs.metric_advice import ADVICE

ROOT = Path(__file__).parents[3]
METRICS = {metric.name: metric for metric in described(ROOT)}
OWN = [metric for metric in METRICS.values() if not metric.name.startswith("otelcol_")]
_UNITS = {
    "milliseconds",
    "ms",
    "microseconds",
    "minutes",
    "kib",
    "mib",
    "kilobytes",
    "megabytes",
    "percent",
    "percentage",
}


def test_names_that_are_put_together_are_found() -> None:
    assert {"otelcol_processor_batch_timeout_trigger_send", "podtrail_webhook_connections"} <= METRICS.keys()
    assert METRICS["otelcol_processor_tail_sampling_shadow_policies_bytes"].labels == ("kept_by", "policy")
    assert METRICS["otelcol_extension_file_storage_failures"].labels == ("extension", "storage", "operation")
    assert len(METRICS) > 130


@pytest.mark.parametrize("metric", OWN, ids=lambda metric: metric.name)
def test_a_name_of_ours_is_as_prometheus_advises(metric: Described) -> None:
    assert re.fullmatch(r"(podtrail|trace_context)_[a-z0-9]+(_[a-z0-9]+)*", metric.name)
    assert not set(metric.name.split("_")) & _UNITS, "base units: seconds, bytes, ratios"
    assert metric.kind != "counter" or metric.name.endswith("_total")
    assert metric.kind != "histogram" or metric.name.endswith(("_seconds", "_bytes", "_spans"))
    assert not metric.name.endswith(("_count", "_sum", "_bucket"))
    for label in metric.labels:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", label)
        assert label not in ("le", "quantile", "job", "instance")


def test_each_help_is_a_sentence() -> None:
    assert [each.name for each in METRICS.values() if not each.help.endswith(".") or len(each.help) <= 8] == []


def test_what_is_linked_from_the_advice_is_there() -> None:
    for text in ADVICE.values():
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert (ROOT / "docs" / target).is_file(), target


def test_a_metric_that_can_not_be_followed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments, "TREES", ("receivers",))
    module = tmp_path / "receivers" / "podtrail_receivers" / "handing_over.py"
    module.parent.mkdir(parents=True)
    module.write_text("def make(metrics, name):\n    metrics.counter(name, 'Things.')\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"handing_over.py:2: can't tell which metric this is: 'name'"):
        described(tmp_path)


def test_two_metrics_of_one_name_must_be_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instruments, "TREES", ("receivers",))
    module = tmp_path / "receivers" / "podtrail_receivers" / "handing_over.py"
    module.parent.mkdir(parents=True)
    module.write_text("metrics.counter('a', 'Things.')\nmetrics.gauge('a', 'Things.')\n", encoding="utf-8")
    with pytest.raises(ValueError, match="a is made in two ways"):
        described(tmp_path)
