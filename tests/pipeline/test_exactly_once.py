"""What a receiver with `exactly_once` leads to is one exporter to the same brokers, and nothing else leads there."""

import pytest

from podtrail.config import ConfigError
from podtrail.config.document import Document
from podtrail.config.problem import Problem
from podtrail.pipeline.settings import read_settings

BASE = """\
extensions:
  file_storage: {directory: /tmp/somewhere}
receivers:
  kafka:
    brokers: [a:9092, b:9092]
    exactly_once: true
  otlp:
    protocols: {grpc: {endpoint: 127.0.0.1:0}}
exporters:
  kafka:
    brokers: [b:9092, a:9092]
  kafka/elsewhere:
    brokers: [c:9092]
  kafka/stored:
    brokers: [a:9092, b:9092]
    sending_queue:
      storage: file_storage
  kafka/other:
    brokers: [a:9092, b:9092]
    producer: {compression: zstd}
    record_partitioner: {round_robin: {}}
  debug:
service:
  extensions: [file_storage]
  pipelines:
"""


def problems(pipelines: str) -> list[str]:
    """Return what is wrong with these pipelines: where, what, and below it what would be right."""
    try:
        read_settings(Document.from_text(BASE + pipelines, "pipeline.yaml", {}))
    except ConfigError as error:
        return [_told(problem) for problem in error.problems]
    return []


def _told(problem: Problem) -> str:
    lines = str(problem).splitlines()
    return f"{lines[0]}\n{lines[-1].strip()}"


def one(exporters: str) -> str:
    return f"    traces: {{receivers: [kafka], exporters: [{exporters}]}}\n"


def test_one_exporter_to_the_same_brokers_is_right_in_whatever_order_they_are_named() -> None:
    assert problems(one("kafka")) == []


@pytest.mark.parametrize(
    ("exporter", "where", "what", "remedy"),
    [
        (
            "debug",
            "26:46: service::pipelines::traces::exporters::0: exporter 'debug' can't write in",
            "",
            "export with kafka to the same brokers, or remove exactly_once",
        ),
        (
            "kafka/elsewhere",
            "13:5: exporters::kafka/elsewhere::brokers: are not those of",
            ": a transaction is of one cluster",
            "name the same as there (a:9092, b:9092), or remove exactly_once",
        ),
        (
            "kafka/stored",
            "17:16: exporters::kafka/stored::sending_queue::storage: would keep spans beyond",
            "",
            "remove it: what is not delivered is read again from the topic",
        ),
    ],
)
def test_what_can_not_be_in_the_transaction_is_refused_where_it_stands(
    exporter: str, where: str, what: str, remedy: str
) -> None:
    told = f"pipeline.yaml:{where} the transactions of 'kafka', which has exactly_once (pipeline.yaml:6:5){what}"

    assert problems(one(exporter)) == [f"{told}\n{remedy}"]


def test_a_second_exporter_is_refused() -> None:
    assert problems(one("kafka, debug"))[0] == (
        "pipeline.yaml:26:34: service::pipelines::traces::exporters: must be one exporter: receiver 'kafka' has "
        "exactly_once (pipeline.yaml:6:5)\n"
        "give the other exporters a pipeline that reads the topic that this one writes"
    )


def test_exporters_that_share_the_producer_have_to_be_told_the_same() -> None:
    other = "    traces/other: {receivers: [kafka], exporters: [kafka/other]}\n"

    assert [told.split(": is not")[0] for told in problems(one("kafka") + other)] == [
        "pipeline.yaml:20:5: exporters::kafka/other::producer",
        "pipeline.yaml:21:5: exporters::kafka/other::record_partitioner",
    ]


@pytest.mark.parametrize(("first", "column"), [("kafka", 51), ("otlp", 52)])
def test_an_exporter_that_others_lead_to_as_well_is_refused(first: str, column: int) -> None:
    other = "otlp" if first == "kafka" else "kafka"

    (told,) = problems(
        f"    traces: {{receivers: [{first}], exporters: [kafka]}}\n"
        f"    traces/other: {{receivers: [{other}], exporters: [kafka]}}\n"
    )

    assert told == (
        f"pipeline.yaml:27:{column}: service::pipelines::traces/other::exporters::0: exporter 'kafka' is used by "
        "traces, too: it writes in the transactions of 'kafka' alone, which has exactly_once (pipeline.yaml:6:5)\n"
        "give each of the two pipelines an exporter of its own"
    )
