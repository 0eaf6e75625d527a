"""Comparisons answer as the Collector's did, for every pair of operands, operator, way to write it and error mode.

`comparisons.json.gz` was written by `recorder/main.go`, which asks contrib's pkg/ottl. An answer is 1, 0, E (an error)
or ! (the condition can't be read), one for each left operand, and within that for each right one.
"""

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from podtrail_processors.filter import FACTORY

from podtrail.component import Context
from podtrail.config import ConfigError
from podtrail.otlp import Batch, Group, encode_span, frame, resource_header, scope_header
from podtrail.testing import Run, replay

RECORDED: Mapping[str, Any] = json.loads(gzip.decompress(Path(__file__).with_name("comparisons.json.gz").read_bytes()))
OPERANDS: Sequence[Mapping[str, Any]] = RECORDED["operands"]
LITERALS: Sequence[str] = [operand["literal"] for operand in OPERANDS if "literal" in operand]
OPERATORS: Sequence[str] = list(RECORDED["attributes"])
FAILED = "otelcol_processor_tail_sampling_sampling_policy_evaluation_error"
RAW = encode_span(trace_id=b"t" * 16, span_id=b"s" * 8, name="s", start=1, end=1)
ANY = Group(resource_header({}), scope_header("any"), b"t" * 16, frame([RAW]), 1)


def span(number: int, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    keyed = [{"key": key, "value": value} for key, value in attributes.items() if value is not None]
    return {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "name": "s", "attributes": keyed}


def ran(processor: str, settings: Mapping[str, Any], spans: Sequence[Mapping[str, Any]]) -> Run:
    """Send spans through a pipeline with this processor."""
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": None}}},
        "processors": {processor: settings},
        "exporters": {"debug": None},
        "service": {
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": [processor], "exporters": ["debug"]}}
        },
    }
    return replay(config, [(1, {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})])


def answers(
    conditions: Sequence[str], spans: Sequence[Mapping[str, Any]], mode: str = "propagate"
) -> Iterator[tuple[str, str]]:
    """Yield what `filter` and the policy `ottl_condition` make of conditions on each span."""
    numbers = range(1, len(spans) + 1)
    block = {"error_mode": mode, "span": conditions}
    policies = [{"name": "p", "type": "ottl_condition", "ottl_condition": block}]
    for processor, settings, meant in (
        ("filter", {"error_mode": mode, "traces": {"span": conditions}}, "01"),
        ("tail_sampling", {"policies": policies}, "10"),
    ):
        try:
            run = ran(processor, settings, [span(number, one) for number, one in enumerate(spans, 1)])
        except ConfigError:
            yield processor, "!" * len(spans)
        else:
            left = {int(trace, 16) for trace in run.kept}
            failed = any(run.metrics.get(FAILED, {}).values())
            yield processor, "E" * len(spans) if failed else "".join(meant[number not in left] for number in numbers)


LEFTS = [{"a": left["attribute"]} for left in OPERANDS]


@pytest.mark.parametrize("sign", OPERATORS)
def test_two_attributes(sign: str) -> None:
    pairs = [{"a": left["attribute"], "b": right["attribute"]} for left in OPERANDS for right in OPERANDS]
    for processor, told in answers([f'attributes["a"] {sign} attributes["b"]'], pairs):
        wrong = [
            pairs[at]
            for at, (ours, theirs) in enumerate(zip(told, RECORDED["attributes"][sign], strict=True))
            if ours != theirs
        ]
        assert not wrong, processor


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize(
    ("recorded", "form"),
    [("literal_right", 'attributes["a"] {} {}'), ("literal_left", '{1} {0} attributes["a"]')],
    ids=["literal-right", "literal-left"],
)
def test_an_attribute_and_a_literal(sign: str, recorded: str, form: str) -> None:
    for literal, expected in zip(LITERALS, RECORDED[recorded][sign], strict=True):
        for processor, told in answers([form.format(sign, literal)], LEFTS):
            assert told == expected, (processor, literal)


def alone(condition: str) -> str:
    """Return what the sampler's `filter` makes of a condition about constants alone."""
    try:
        filter_ = FACTORY.create(FACTORY.Config.model_validate({"traces": {"span": [condition]}}), Context(id="filter"))
    except ValueError:
        return "!"
    return "01"[not filter_.add(Batch([ANY], 1), 1).out]


@pytest.mark.parametrize("sign", OPERATORS)
def test_two_literals(sign: str) -> None:
    told = [[alone(f"{left} {sign} {right}") for right in LITERALS] for left in LITERALS]
    assert ["".join(row) for row in told] == RECORDED["literals"][sign]


@pytest.mark.parametrize("mode", ["ignore", "silent", "propagate"])
@pytest.mark.parametrize("case", RECORDED["error_modes"], ids=lambda case: " | ".join(case["conditions"]))
def test_conditions_without_an_answer(case: Mapping[str, Any], mode: str) -> None:
    given = {
        "int": {"intValue": "5"},
        "zero": {"intValue": "0"},
        "text": {"stringValue": "text"},
        "list": {"arrayValue": {"values": [{"intValue": "1"}]}},
    }
    for processor, told in answers(case["conditions"], [given], mode):
        # An error costs `filter` the batch: nothing leaves then, either.
        assert told == (case[mode].replace("E", "1") if processor == "filter" else case[mode]), processor
