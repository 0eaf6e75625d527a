"""The configurations that people start from keep what podtrail is for: an attempt that takes minutes and fails."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from podtrail.config.types import parse_duration
from podtrail.testing import replay

ROOT = Path(__file__).parents[2]
SECOND = 1_000_000_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
WAIT = re.compile(r"^ +decision_wait: (\w+)", re.MULTILINE)
AT_ROOTS = re.compile(r"type: (scheduling_result|slow_attempt|latency)\b")
AT_ONCE = "examples/stock-scheduler.yaml"
"""What is rebuilt from the outside comes when it is over."""


def _shown() -> Iterator[tuple[str, str]]:
    """Yield all that is shown of configurations in which policies look at roots and a wait is given: where, and it."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    blocks = [(page, re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)) for page in pages]
    files = [path for folder in ("examples", "docker") for path in sorted((ROOT / folder).rglob("*.yaml"))]
    blocks += [(path, [path.read_text()]) for path in (ROOT / "pipeline.yaml", *files)]
    for path, texts in blocks:
        for number, text in enumerate(texts):
            if AT_ROOTS.search(text) and WAIT.search(text):
                yield f"{path.relative_to(ROOT)}:{number}".removesuffix(":0"), text


SHOWN = dict(_shown())


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


@pytest.mark.parametrize("where", SHOWN)
def test_what_is_shown_to_be_copied_waits_for_attempts_that_take_minutes(where: str) -> None:
    waits = [parse_duration(wait) for wait in WAIT.findall(SHOWN[where])]
    assert (min(waits) >= 300 * SECOND) is (where != AT_ONCE)
