"""A file that every start empties, behind what goes on after a restart where it was, is worth a warning."""

import pytest

from podtrail.config import Document
from podtrail.pipeline.settings import read_settings

CONFIG = """\
receivers:
  otlp: {{protocols: {{grpc: }}}}
  kafka:
  otlp_json_file: {{include: [a.jsonl], follow: true, storage: {followed}}}
processors:
  tail_sampling:
    storage: {sampled}
    policies: [{{name: all, type: always_sample}}]
exporters:
  {exporter}
extensions: {{file_storage: {{directory: /tmp}}}}
service:
  extensions: [file_storage]
  pipelines:
    traces: {{{pipeline}}}
"""
FILE = "file: {path: kept.jsonl, decisions_path: why.jsonl}"


def told(pipeline: str, exporter: str = FILE, *, followed: str = "", sampled: str = "") -> list[str]:
    text = CONFIG.format(pipeline=pipeline, exporter=exporter, followed=followed, sampled=sampled)
    warnings = read_settings(Document.from_text(text, "c.yaml")).warnings
    found = [f"{warning.headline} | {warning.hint}" for warning in warnings]
    return [line for line in found if "every start empties" in line]


@pytest.mark.parametrize(
    ("pipeline", "stored", "why"),
    [
        ("durable: file_storage, receivers: [otlp], exporters: [file]", {}, "traces is durable by file_storage"),
        (
            "receivers: [otlp], processors: [tail_sampling], exporters: [file]",
            {"sampled": "file_storage"},
            "traces is durable by file_storage",
        ),
        ("receivers: [kafka], exporters: [file]", {}, "kafka, which feeds traces, goes on where it was"),
        (
            "receivers: [otlp, otlp_json_file], exporters: [file]",
            {"followed": "file_storage"},
            "otlp_json_file, which feeds traces, goes on where it was",
        ),
    ],
)
def test_it_is_said_where_and_what_would_be_right(pipeline: str, stored: dict[str, str], why: str) -> None:
    (line,) = told(pipeline, **stored)
    assert line == (
        "c.yaml:10:3: exporters::file::append: every start empties kept.jsonl and why.jsonl; what was delivered there "
        f"does not come again: {why} | append: true"
    )


def test_a_false_that_is_written_out_is_pointed_at() -> None:
    (line,) = told(
        "durable: file_storage, receivers: [otlp], exporters: [recording]",
        "recording: {path: a.jsonl, append: false}",
    )
    assert line.startswith("c.yaml:10:30: exporters::recording::append: every start empties a.jsonl;")


@pytest.mark.parametrize(
    ("pipeline", "exporter"),
    [
        ("receivers: [otlp, otlp_json_file], exporters: [file]", FILE),
        ("durable: file_storage, receivers: [otlp], exporters: [file]", "file: {path: kept.jsonl, append: true}"),
        ("durable: file_storage, receivers: [otlp], exporters: [recording]", "recording: {path: a.jsonl}"),
        ("durable: file_storage, receivers: [otlp], exporters: [debug]", "debug: "),
    ],
)
def test_nothing_is_said_where_files_go_on_or_nothing_else_does(pipeline: str, exporter: str) -> None:
    assert not told(pipeline, exporter)
