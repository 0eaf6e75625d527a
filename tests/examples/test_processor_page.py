"""The configuration of docs/processors.md does what the page says."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podtrail.otlp import write_request
from podtrail.testing import replay
from podtrail.testing.attempts import MadeAttempt, no_room

PAGE = Path(__file__).parents[2] / "docs" / "processors.md"


def configuration() -> str:
    """Return the configuration that the page shows."""
    found = re.search(r"^```yaml\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_the_pipeline_of_the_page_counts_filters_edits_and_samples() -> None:
    secret = {"user.name": "jane", "internal.note": "x"}
    attempts = [no_room(attributes=secret), MadeAttempt(number=2)]
    watch = {"traceId": "07" * 16, "spanId": "08" * 8, "name": "watch"}
    sent: list[tuple[int, bytes | Mapping[str, Any]]]
    sent = [(attempt.start, write_request(attempt.groups())) for attempt in attempts]
    sent.append((attempts[0].start, {"resourceSpans": [{"scopeSpans": [{"spans": [watch]}]}]}))
    run = replay(configuration(), sent)

    assert list(run.kept) == [attempts[0].trace_id.hex()]
    root = next(span.span for span in run.exported["debug"] if span.span.name == "SchedulePod")
    assert root.attributes["deployment.environment"] == "production"
    assert len(str(root.attributes["user.name"])) == 64
    assert "internal.note" not in root.attributes
    assert sum(run.metrics["podtrail_scheduling_attempts_total"].values()) == 2
    assert run.metrics["otelcol_processor_filter_spans.filtered"] == {"filter=filter": 1}


def test_the_page_names_every_metric_of_attempts() -> None:
    run = replay(configuration(), [(1, write_request(no_room().groups()))])
    shown = set(re.findall(r"^\| `(podtrail_scheduling_\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert shown == {re.sub("_(count|sum)$", "", name) for name in run.metrics if "_scheduling_" in name}
