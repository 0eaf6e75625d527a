"""What may stand beside a receiver whose source is cut into partitions, and what has no effect behind it."""

from typing import Any

import pytest

from podtrail.config import ConfigError, Document
from podtrail.pipeline.settings import Settings, read_settings

RECEIVERS = """\
receivers:
  kafka: {group_id: one}
  kafka/two: {group_id: two, traces: {topics: [other]}}
  otlp: {protocols: {grpc: }}
"""
SAMPLER = """\
processors:
  tail_sampling:
    policies: [{name: all, type: always_sample}]
    %s
"""
REST = """\
exporters: {debug: , file: {path: kept.jsonl, append: true}}
extensions: {file_storage: {directory: /var/lib/one}}
service:
  extensions: [file_storage]
  pipelines:
"""


def read(pipelines: str, sampler: str = "decision_wait: 10s") -> Settings:
    return read_settings(Document.from_text(RECEIVERS + SAMPLER % sampler + REST + pipelines, "c.yaml"))


def refused(pipelines: str, sampler: str = "decision_wait: 10s") -> list[str]:
    with pytest.raises(ConfigError) as error:
        read(pipelines, sampler)
    return [
        f"{problem.position}: {'::'.join(map(str, problem.path))}: {problem.message} | {problem.hint}"
        for problem in error.value.problems
    ]


def test_a_receiver_of_another_kind_cannot_feed_the_same_pipeline() -> None:
    (problem,) = refused("    traces: {receivers: [kafka, otlp], exporters: [debug]}\n")
    assert problem == (
        "c.yaml:14:33: service::pipelines::traces::receivers::1: receiver 'otlp' can't feed a pipeline that 'kafka' "
        "feeds: each partition has processors of its own | "
        "give it a pipeline of its own, with the same processors and exporters"
    )


def test_nor_where_the_other_stands_first() -> None:
    (problem,) = refused("    traces: {receivers: [otlp, kafka], exporters: [debug]}\n")
    assert problem.startswith("c.yaml:14:26: service::pipelines::traces::receivers::0: receiver 'otlp' can't feed")


def test_two_of_them_cannot_feed_one_pipeline() -> None:
    (problem,) = refused("    traces: {receivers: [kafka, kafka/two], exporters: [debug]}\n")
    assert problem == (
        "c.yaml:14:33: service::pipelines::traces::receivers::1: receiver 'kafka/two' can't feed a pipeline that "
        "'kafka' feeds already: each partition has processors of its own | "
        "give it a pipeline of its own, with the same processors and exporters; or have 'kafka' read all topics"
    )


def test_a_log_of_arrivals_is_refused_where_it_is_named() -> None:
    whose = "traces is fed by 'kafka' (c.yaml:2:3), whose records are read again after a crash | "
    whose += "remove it: such a pipeline needs no storage"
    pipeline = "    traces: {receivers: [kafka], processors: [tail_sampling], exporters: [debug]%s}\n"
    assert refused(pipeline % ", durable: file_storage") == [
        f"c.yaml:14:92: service::pipelines::traces::durable: {whose}"
    ]
    assert refused(pipeline % "", "storage: file_storage") == [
        f"c.yaml:8:14: processors::tail_sampling::storage: {whose}"
    ]


def test_one_receiver_may_feed_several_pipelines_and_exporters_and_processors_may_be_shared() -> None:
    settings = read(
        """\
    traces: {receivers: [kafka], processors: [tail_sampling], exporters: [debug, file]}
    traces/all: {receivers: [kafka], exporters: [debug]}
    traces/two: {receivers: [kafka/two], processors: [tail_sampling], exporters: [file]}
    traces/otlp: {receivers: [otlp], processors: [tail_sampling], exporters: [file], durable: file_storage}
"""
    )
    assert not settings.warnings
    assert [(pipeline.id, pipeline.partitioned) for pipeline in settings.pipelines] == [
        ("traces", True),
        ("traces/all", True),
        ("traces/two", True),
        ("traces/otlp", False),
    ]


def test_a_storage_of_the_sampler_is_refused_though_a_pipeline_that_others_feed_may_have_it() -> None:
    pipelines = """\
    traces: {receivers: [kafka], processors: [tail_sampling], exporters: [file]}
    traces/otlp: {receivers: [otlp], processors: [tail_sampling], exporters: [file]}
"""
    (problem,) = refused(pipelines, "storage: file_storage")
    assert problem.startswith("c.yaml:8:14: processors::tail_sampling::storage: traces is fed by 'kafka'")


@pytest.mark.parametrize(
    ("sampler", "expected"),
    [
        (
            "stress_relief: {mode: auto, memory_limit_mib: 900}",
            [
                ("8:21: processors::tail_sampling::stress_relief::mode", "only maximum_held_mib can bring relief"),
                (
                    "8:33: processors::tail_sampling::stress_relief::memory_limit_mib",
                    "decides the same, in any process",
                ),
            ],
        ),
        (
            "stress_relief: {mode: auto, maximum_lag: 2s}\n    maximum_held_mib: 64",
            [("8:33: processors::tail_sampling::stress_relief::maximum_lag", "in which nothing is late")],
        ),
        (
            "drop_pending_traces_on_shutdown: true",
            [("8:5: processors::tail_sampling::drop_pending_traces_on_shutdown", "by the partition's next owner")],
        ),
        ("stress_relief: {mode: auto}\n    maximum_held_mib: 64", []),
        ("stress_relief: {mode: off, memory_limit_mib: 900, maximum_lag: 2s}", []),
    ],
)
def test_what_has_no_effect_in_partitions_is_warned_of_with_its_place(sampler: str, expected: Any) -> None:
    pipelines = "    traces: {receivers: [kafka], processors: [tail_sampling], exporters: [file]}\n"
    pipelines += "    traces/otlp: {receivers: [otlp], exporters: [debug], durable: file_storage}\n"
    said = [str(warning).splitlines()[0] for warning in read(pipelines, sampler).warnings]
    about = [line for line in said if "where traces is fed by 'kafka' (c.yaml:2:3): has no effect: " in line]
    assert len(about) == len(expected)
    for line, (place, why) in zip(about, expected, strict=True):
        assert line.startswith(f"c.yaml:{place}: ")
        assert why in line


def test_a_memory_limiter_is_warned_of_behind_partitions_only() -> None:
    pipelines = "    traces: {receivers: [%s], processors: [memory_limiter, tail_sampling], exporters: [file]}\n"
    limiter = "decision_wait: 10s\n  memory_limiter: {check_interval: 1s, limit_mib: 900}"
    told = {
        fed: [str(warning).splitlines()[0] for warning in read(pipelines % fed, limiter).warnings]
        for fed in ("kafka", "otlp")
    }
    (said,) = [line for line in told["kafka"] if "memory_limiter" in line]
    assert said.startswith(
        "c.yaml:9:3: processors::memory_limiter: where traces is fed by 'kafka' (c.yaml:2:3): a partition's time waits "
    )
    assert said.endswith("remove it, and bound tail_sampling by num_traces and maximum_held_mib")
    assert not [line for line in told["otlp"] if "memory_limiter" in line]


def test_where_others_feed_the_sampler_the_same_keys_are_not_warned_of() -> None:
    settings = read(
        """\
    traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug], durable: file_storage}
    traces/k: {receivers: [kafka], exporters: [file]}
    traces/two: {receivers: [kafka/two], exporters: [file]}
""",
        "stress_relief: {mode: auto, memory_limit_mib: 900, maximum_lag: 2s}",
    )
    assert not [warning for warning in settings.warnings if "is fed by" in str(warning)]
