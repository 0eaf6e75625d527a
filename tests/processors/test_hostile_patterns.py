"""A pattern that would occupy a backtracking engine for ever, and a value made for it: the pipeline goes on."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.testing import replay

PATTERN = r"^(\w+\s?)+$"
TRACE = "01" * 16
REGEXP = {"match_type": "regexp", "attributes": [{"key": "value", "value": PATTERN}]}
EXTRACTED = r"^(?P<words>(?:\w+\s?)+)$"


def with_policy(**policy: Any) -> dict[str, Any]:
    return {"tail_sampling": {"decision_wait": "1s", "policies": [{"name": "p", **policy}]}}


@pytest.mark.parametrize(
    "processor",
    [
        with_policy(
            type="string_attribute",
            string_attribute={
                "key": "value",
                "values": [PATTERN],
                "enabled_regex_matching": True,
                "invert_match": True,
            },
        ),
        with_policy(
            type="ottl_condition",
            ottl_condition={"span": [f'not IsMatch(attributes["value"], "{PATTERN}")'.replace("\\", "\\\\")]},
        ),
        {"filter": {"traces": {"span": [f'IsMatch(attributes["value"], "{PATTERN}")'.replace("\\", "\\\\")]}}},
        {"filter": {"traces": {"span": ['IsMatch(attributes["value"], attributes["pattern"])']}}},
        {"attributes": {"actions": [{"key": "x", "action": "delete"}], "include": REGEXP}},
        {"attributes": {"actions": [{"key": "value", "action": "extract", "pattern": EXTRACTED}]}},
        {"attributes": {"actions": [{"pattern": PATTERN, "action": "delete"}]}},
    ],
)
def test_a_value_made_to_hang_a_pattern_does_not(processor: dict[str, Any], in_time: None) -> None:
    hostile = "a" * 40 + "!"
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {}}}},
        "processors": processor,
        "exporters": {"debug": {}},
        "service": {
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": [*processor], "exporters": ["debug"]}}
        },
    }
    attributes = {"value": hostile, hostile: "", "pattern": PATTERN}
    keyed = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    span = {"traceId": TRACE, "spanId": "02" * 8, "name": "a", "attributes": keyed}
    run = replay(config, [(1, {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})])
    assert run.kept == {TRACE: ["02" * 8]}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("[(]", None),
        ("(a{1000}){1000}", "invalid repetition size: {1000}"),
        (r"\pL{1000}", "pattern too large"),
        (r"(?<=a)b", "invalid perl operator: (?<"),
    ],
)
def test_a_pattern_that_is_none_is_told_with_file_line_and_column(
    tmp_path: Path, value: str, problem: str | None
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        f"""receivers: {{otlp: {{protocols: {{grpc: {{}}}}}}}}
processors:
  attributes:
    actions:
      - action: delete
        pattern: '{value}'
exporters: {{debug: {{}}}}
service: {{pipelines: {{traces: {{receivers: [otlp], processors: [attributes], exporters: [debug]}}}}}}
"""
    )
    done = CliRunner().invoke(main, ["validate", f"--config={config}"])
    assert done.exit_code == (2 if problem else 0), done.output
    if problem:
        assert f"{config}:6:18: processors::attributes::actions::0::pattern: " in done.output
        assert f"invalid regular expression {value!r}: {problem}" in done.output
