"""What `podtrail validate` warns of: settings that are legal, as in the Collector, but hardly meant."""

import pytest
from podtrail_processors.tail_sampling.config.sampler import Config

from podtrail.config import Document
from podtrail.config.validation import Validator

ORDER = "depends on the order in which spans arrive: a trace that grows through the range is kept"


def warned(block: str) -> list[str]:
    """Return where something is warned of, and what is said."""
    check = Validator(Document.from_text(block, "sampler.yaml", {}).root)
    assert check.read(Config, ()) is not None, check.problems
    return [warning.headline.partition(": ")[2] for warning in check.warnings]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("type: and", "and::and_sub_policy: without policies it keeps everything"),
        ("type: drop", "drop::drop_sub_policy: without policies it drops everything"),
        (
            "type: latency, latency: {threshold_ms: 1, upper_threshold_ms: 2}",
            f"latency::upper_threshold_ms: {ORDER}",
        ),
        (
            "type: numeric_attribute, numeric_attribute: {key: k, min_value: 0, max_value: 9}",
            "numeric_attribute::min_value: a bound of 0 counts as none",
        ),
        (
            "type: string_attribute, string_attribute: {key: k, invert_match: true}",
            "string_attribute::values: without values it keeps everything",
        ),
        (
            "type: string_attribute, string_attribute: {key: k, values: [a, '']}",
            "string_attribute::values::1: has no effect: an empty text is never matched",
        ),
        ("type: latency", "latency::threshold_ms: without a threshold it keeps what took 1 ms or more"),
        (
            "type: latency, latency: {threshold_ms: 5, upper_threshold_ms: 5}",
            "latency::upper_threshold_ms: is not above threshold_ms: it keeps nothing",
        ),
        (
            "type: probabilistic, probabilistic: {sampling_percentage: 500}",
            "probabilistic::sampling_percentage: more than 100 is everything",
        ),
        ("type: probabilistic", "probabilistic::sampling_percentage: of no percentage it keeps nothing"),
        (
            "type: numeric_attribute, numeric_attribute: {key: k, min_value: 10, max_value: 5}",
            "numeric_attribute::max_value: is less than min_value: it keeps nothing",
        ),
        ("type: numeric_attribute, numeric_attribute: {min_value: 1}", "numeric_attribute::key: names no attribute"),
        ("type: string_attribute, string_attribute: {values: [a]}", "string_attribute::key: names no attribute"),
        ("type: boolean_attribute", "boolean_attribute::key: names no attribute"),
        (
            "type: span_count, span_count: {min_spans: 5, max_spans: 4}",
            "span_count::max_spans: is less than min_spans: it keeps nothing",
        ),
        ("type: rate_limiting", "rate_limiting::spans_per_second: at no rate it keeps nothing"),
        (
            "type: bytes_limiting, bytes_limiting: {burst_capacity: 9}",
            "bytes_limiting::bytes_per_second: at no rate it keeps only one burst",
        ),
        ("type: always_sample, latency: {threshold_ms: 1}", "latency: has no effect: the type is always_sample"),
        ("type: always_sample, extra: {a: 1}", "extra: is not known and passed over, as in the Collector"),
    ],
)
def test_what_a_policy_is_hardly_meant_to_do_is_told_at_its_key(policy: str, expected: str) -> None:
    assert warned(f"policies: [{{name: p, {policy}}}]") == [f"policies::0::{expected}"]


def test_parts_of_a_policy_are_looked_at_as_well() -> None:
    part = "{name: q, type: latency, latency: {threshold_ms: 1, upper_threshold_ms: 2}}"
    (warning,) = warned(f"policies: [{{name: p, type: and, and: {{and_sub_policy: [{part}]}}}}]")
    assert warning.startswith("policies::0::and::and_sub_policy::0::latency::upper_threshold_ms: depends on the order")


def test_a_composite_says_what_it_ignores() -> None:
    parts = "composite_sub_policy: [{name: a, type: always_sample}, {name: b, type: always_sample}]"
    total = "max_total_spans_per_second: 9"
    assert (
        warned(f"policies: [{{name: p, type: composite, composite: {{{total}, {parts}, policy_order: [a, b]}}}}]") == []
    )
    ignored = "policy_order: [b, a], rate_allocation: [{policy: c, percent: 9}]"
    assert warned(f"policies: [{{name: p, type: composite, composite: {{{parts}, {ignored}}}}}]") == [
        "policies::0::composite::policy_order: has no effect: the policies are asked in the order of their list",
        "policies::0::composite::max_total_spans_per_second: at no rate it keeps nothing",
        "policies::0::composite::rate_allocation::0::policy: has no effect: no policy of the list has this name",
    ]


def test_a_drop_policy_that_holds_everything_back_is_told() -> None:
    drop = "{name: d, type: drop, drop: {drop_sub_policy: [{name: e, type: always_sample}]}}"
    (warning,) = warned(f"sampling_strategy: span-ingest\npolicies: [{drop}]")
    assert warning.startswith("policies::0: with span-ingest no trace is kept")
    assert warned(f"policies: [{drop}]") == []
