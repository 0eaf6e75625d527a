"""What the sampler takes as a configuration, and how it refuses what it can't do."""

from collections.abc import Callable
from typing import Any

import pytest
from podtrail_processors.tail_sampling.config.sampler import Config

from podtrail.config import ConfigError
from podtrail.config.feature_gates import TAIL_STORAGE
from podtrail.testing import replay

Make = Callable[..., Any]


def refusal(block: str) -> str:
    """Return what is said about settings of the sampler."""
    lines = [f"    {line}" for line in block.strip().splitlines()]
    around = [
        "receivers: {otlp: {protocols: {grpc: null}}}",
        "exporters: {debug: null}",
        "service: {pipelines: {traces: {receivers: [otlp], processors: [tail_sampling], exporters: [debug]}}}",
        "processors:",
        "  tail_sampling:",
    ]
    with pytest.raises(ConfigError) as refused:
        replay("\n".join([*around, *lines]), [])
    return str(refused.value)


def test_an_unknown_policy_type_is_named_with_what_there_is() -> None:
    said = refusal("policies: [{name: a, type: always}]")
    assert "unknown sampling policy type 'always'" in said
    assert "supported here: about_pod, always_sample, and, " in said
    assert "did you mean about_pod? supported here: " in refusal("policies: [{name: a, type: about_pods}]")


def test_more_shards_than_the_collector_allows_are_refused() -> None:
    assert "must not exceed 256" in refusal("num_shards: 300")


def test_errors_point_at_their_place() -> None:
    said = refusal("policies:\n  - {name: a, type: status_code, status_code: {status_codes: [ERR]}}")
    assert "configuration:7:" in said
    assert "processors::tail_sampling::policies::0" in said
    assert "unknown status code 'ERR'" in said
    assert "there are OK, ERROR and UNSET" in said


SEVERAL = r"""
policies:
  - name: a
    type: string_attribute
    string_attribute: {key: k, enabled_regex_matching: true, values: ['ok', '\d+\Z', '(', '[']}
  - {name: b, type: status_code, status_code: {status_codes: [error, OK, BAD]}}
  - name: c
    type: and
    and:
      and_sub_policy:
        - {name: x, type: string_attribute, string_attribute: {enabled_regex_matching: true, values: ['(']}}
        - {name: y, type: ottl_condition, ottl_condition: {span: ['nme == 1', 'name ==', 'true'], spanevent: ['foo']}}
        - {name: z, type: status_code, status_code: {status_codes: BAD}}
  - {name: b, type: always_sample}
"""


def test_each_mistake_of_a_list_is_a_finding_at_its_own_place() -> None:
    found = [line.split(": ")[:3] for line in refusal(SEVERAL).splitlines() if line.startswith("configuration:")]
    assert [(place, path.removeprefix("processors::tail_sampling::policies::")) for place, path, *_ in found] == [
        ("configuration:9:81", "0::string_attribute::values::1"),
        ("configuration:9:90", "0::string_attribute::values::2"),
        ("configuration:9:95", "0::string_attribute::values::3"),
        ("configuration:10:67", "1::status_code::status_codes::0"),
        ("configuration:10:78", "1::status_code::status_codes::2"),
        ("configuration:15:107", "2::and::and_sub_policy::0::string_attribute::values::0"),
        ("configuration:16:71", "2::and::and_sub_policy::1::ottl_condition::span::0"),
        ("configuration:16:83", "2::and::and_sub_policy::1::ottl_condition::span::1"),
        ("configuration:16:115", "2::and::and_sub_policy::1::ottl_condition::spanevent::0"),
        ("configuration:17:72", "2::and::and_sub_policy::2::status_code::status_codes"),
        ("configuration:18:16", "3::name"),
    ]


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("{name: a, type: numeric_attribute, numeric_attribute: {key: k}}", "min_value or max_value"),
        ("{name: a, type: probabilistic, probabilistic: {sampling_percentage: .nan}}", "not a number"),
        ("{name: a, type: scheduling_result}", "at least one of Success, Unschedulable, Error"),
        ("{name: a, type: scheduling_result, scheduling_result: {results: [error]}}", "did you mean Error?"),
        ("{name: a, type: slow_attempt}", "threshold, phases, plugins or queue_wait"),
        ("{name: a, type: slow_attempt, slow_attempt: {phases: {filter: 0s}}}", "filter"),
    ],
)
def test_settings_that_keep_nothing_or_crash_elsewhere_are_refused(policy: str, words: str) -> None:
    assert words in refusal(f"policies: [{policy}]")


def test_keys_without_effect_are_accepted_with_a_warning(policy: Make) -> None:
    gates = {"gates": {TAIL_STORAGE}}
    for key, value in {"num_shards": 4, "expected_new_traces_per_sec": 100, "tail_storage": "file_storage/a"}.items():
        config = Config.model_validate({"policies": [policy("always_sample")], key: value}, context=gates)
        assert [path for path, _ in config.warnings()] == [(key,)]


def test_a_tail_storage_needs_its_gate() -> None:
    said = refusal("tail_storage: file_storage/a")
    assert (
        f'processors::tail_sampling::tail_storage: requires the "{TAIL_STORAGE}" feature gate to be enabled, '
        f"use --feature-gates=+{TAIL_STORAGE}" in said
    )
    assert "did you mean storage? here it is the key that keeps undecided traces on disk, and needs no gate" in said
    config = Config.model_validate({"tail_storage": "file_storage/a"}, context={"gates": {TAIL_STORAGE}})
    assert "did you mean storage? " in config.warnings()[0][1]


def test_without_a_policy_nothing_is_kept_and_that_is_said(sampler: Make, span: Make) -> None:
    made = sampler()
    made.send(0, span(1))
    made.stop(5)
    assert made.decisions == {1: "not_sampled"}
    assert "without a policy" in Config().warnings()[0][1]
