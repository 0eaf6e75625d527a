"""A root that comes after the decision: who numbers attempts must still hear of it."""

from typing import Any

import pytest

from podtrail.testing import replay

SECOND = 1_000_000_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CONFIG = """
receivers: {otlp: {protocols: {grpc: }}}
processors:
  tail_sampling:
    decision_wait: 1s
    decision_cache: {non_sampled_cache_size: %d}
    policies: [{name: errors, type: status_code, status_code: {status_codes: [ERROR]}}]
exporters: {debug: }
service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}
"""


def _request(span_id: str, name: str) -> dict[str, Any]:
    span = {"traceId": TRACE, "spanId": span_id, "name": name, "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


@pytest.mark.parametrize("cache", [0, 10], ids=["in memory", "in the cache"])
def test_a_late_root_of_a_dropped_trace_has_a_verdict_of_its_own(cache: int) -> None:
    run = replay(
        CONFIG % cache,
        [(SECOND, _request("00f067aa0ba902b7", "filter")), (9 * SECOND, _request("00f067aa0ba902b8", "SchedulePod"))],
    )

    assert [(line["decision"], line.get("rootSpanId")) for line in run.decisions] == [
        ("not_sampled", None),
        ("not_sampled", "00f067aa0ba902b8"),
    ]
    assert run.kept == {}


def test_other_late_spans_are_let_go_in_silence() -> None:
    late = [(at * SECOND, _request(f"{at:016x}", "filter")) for at in (1, 9)]

    assert len(replay(CONFIG % 0, late).decisions) == 1
