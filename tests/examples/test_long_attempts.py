"""The configurations that people start from keep what podtrail is for: an attempt that takes minutes and fails."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podtrail.testing import replay

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def _span(
    number: int, name: str, start: int, end: int, parent: int = 0, attributes: Mapping[str, str] | None = None
) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(start * SECOND),
        "endTimeUnixNano": str(end * SECOND),
        "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in (attributes or {}).items()],
    }


def _request(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


@pytest.mark.parametrize("path", ["pipeline.yaml", "docker/sidecar.yaml", "examples/sidecar.yaml"])
def test_an_attempt_that_binds_for_two_minutes_is_kept_whole(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://backend:4317")
    root = _span(1, "SchedulePod", 100, 220, attributes={"scheduler.result": "Error", "k8s.pod.uid": "u"})
    arrivals = [
        (101 * SECOND, _request(_span(2, "schedulingCycle", 100, 101, parent=1))),
        (220 * SECOND, _request(_span(3, "bindingCycle", 101, 220, parent=1), root)),
    ]

    run = replay(ROOT / path, arrivals)

    assert run.kept == {TRACE: [f"{number:016x}" for number in (2, 3, 1)]}
    assert [line["policy"] for line in run.decisions] == ["failed"]
