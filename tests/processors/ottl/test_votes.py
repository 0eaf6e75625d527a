"""However a policy comes to its vote, it is that of asking every condition about every span, one after another."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1 import trace_pb2
from podtrail_processors.evidence.evidence import Evidence, Header, Readers
from podtrail_processors.ottl import SPAN, SPAN_EVENT, Condition, EvaluationError, SpanData, Telemetry
from podtrail_processors.tail_sampling.holding.held_trace import UNMEASURED
from podtrail_processors.tail_sampling.judging.gates import Gates
from podtrail_processors.tail_sampling.policies.attribute import AttributeEvaluator
from podtrail_processors.tail_sampling.policies.leaves import Leaf
from podtrail_processors.tail_sampling.policies.ottl_vote import OttlCondition
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, NoVote

from podtrail.otlp import (
    Value,
    frame,
    raw_span_reader,
    read_key_value,
    resource_attributes,
    resource_header,
    scope_header,
)
from podtrail.otlp.surroundings import read_event
from tests.sizes import large

NOW = 1_790_000_000_000_000_000
SECOND = 1_000_000_000
Mode = Literal["silent", "propagate"]
FIELDS = frozenset(field.name for field in trace_pb2.Span.DESCRIPTOR.fields)

KEYS = st.sampled_from(["a", "b", "aa"])
VALUES: st.SearchStrategy[Value] = st.sampled_from(["", "x", "xy", "4", 0, 4, 500, -1, 1.5, True, False, None, b"x"])
ATTRIBUTES = st.lists(st.tuples(KEYS, VALUES), max_size=3)


class Trace(NamedTuple):
    """Spans under headers, as they are held."""

    headers: Sequence[Header]
    groups: Sequence[Sequence[bytes]]

    def seen_with(self, readers: Readers) -> Evidence:
        spans = [raw for group in self.groups for raw in group]
        counts = [len(group) for group in self.groups]
        return Evidence(bytes(16), frame(spans), len(spans), self.headers, counts, readers, NOW, UNMEASURED)


def add_attributes(to: Any, attributes: Sequence[tuple[str, Value]]) -> None:
    kinds = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value", bytes: "bytes_value"}
    for key, value in attributes:
        pair = to.add(key=key)
        if value is not None:
            setattr(pair.value, kinds[type(value)], value)


@st.composite
def spans(draw: st.DrawFn) -> bytes:
    start = draw(st.sampled_from([0, NOW, NOW + SECOND, 2**63 + 5]))
    span = trace_pb2.Span(
        trace_id=bytes(16),
        span_id=bytes(8),
        parent_span_id=draw(st.sampled_from([b"", bytes(8), b"parentid"])),
        name=draw(st.sampled_from(["", "bind", "score"])),
        kind=cast("Any", draw(st.sampled_from([0, 1, 2]))),
        flags=draw(st.sampled_from([0, 1])),
        start_time_unix_nano=start,
        end_time_unix_nano=draw(st.sampled_from([0, start, start + 2 * SECOND, NOW + 5])),
    )
    add_attributes(span.attributes, draw(ATTRIBUTES))
    code = draw(st.sampled_from([None, 0, 2]))
    if code is not None:
        span.status.code = cast("Any", code)
    for name in draw(st.lists(st.sampled_from(["", "exception"]), max_size=2)):
        event = span.events.add(name=name, time_unix_nano=NOW)
        add_attributes(event.attributes, draw(ATTRIBUTES))
    return span.SerializeToString()


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    resource = st.sampled_from([resource_header({"a": "x"}), resource_header({"a": 4, "b": ""}), resource_header({})])
    headers = draw(st.lists(st.builds(Header, resource, st.just(scope_header("s", "1"))), min_size=1, max_size=2))
    return Trace(headers, [draw(st.lists(spans(), min_size=1, max_size=3)) for _ in headers])


ON_SPANS = [
    *(f'attributes["{key}"]' for key in ("a", "b", "aa")),
    *('resource.attributes["a"]', "name", "kind", "kind.string", "flags", "status.code", "parent_span_id.string"),
    *('Int(attributes["a"])', 'Len(attributes["b"])', 'attributes["a"] + 1', 'Concat([name, attributes["a"]], "")'),
    *("end_time_unix_nano - start_time_unix_nano", "end_time - start_time", "end_time - start_time_unix_nano"),
]
ON_EVENTS = [
    'attributes["a"]',
    'attributes["b"]',
    "name",
    'span.attributes["a"]',
    "span.name",
    'resource.attributes["a"]',
]
CONSTANTS = ["nil", "true", "4", "500", "1.5", '"x"', '""', '"bind"', '"exception"', "SPAN_KIND_SERVER", "1000000000"]


def conditions(paths: Sequence[str], calls: Sequence[str]) -> st.SearchStrategy[str]:
    path = st.sampled_from(paths)
    side = path | st.sampled_from([*CONSTANTS, 'Duration("1s")'])
    sign = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    comparison = st.tuples(path, sign, side) | st.tuples(side, sign, path)
    asked = [f"{name}({text})" for name in ("IsInt", "IsString", "IsEmpty") for text in paths[:3]]
    more = [f'IsMatch({text}, "^[x4]")' for text in paths[:3]] + [f'HasPrefix({text}, "x")' for text in paths[:3]]
    atom = comparison.map(" ".join) | st.sampled_from([*asked, *more, *calls])
    return st.recursive(
        atom,
        lambda inner: (
            st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(lambda parts: f"({''.join(parts)})")
            | inner.map(lambda text: f"not ({text})")
        ),
        max_leaves=5,
    )


def asked_one_by_one(trace: Trace, of_spans: Sequence[Condition], of_events: Sequence[Condition], mode: Mode) -> str:
    telemetry = Telemetry()
    telemetry.now = NOW

    def holds(conditions: Sequence[Condition]) -> bool:
        for condition in conditions:
            try:
                if condition.holds(telemetry):
                    return True
            except EvaluationError as error:
                if mode == "propagate":
                    raise NoVote from error
        return False

    for (telemetry.resource, telemetry.scope), group in zip(trace.headers, trace.groups, strict=True):
        for span in raw_span_reader(FIELDS)(frame(group)):
            telemetry.span = cast("SpanData", span)
            if holds(of_spans):
                return "sampled"
            for event in span.events:
                telemetry.event = read_event(event)
                if holds(of_events):
                    return "sampled"
    return "not_sampled"


def voted(policy: Evaluator, readers: Readers, gates: Gates, trace: Trace) -> str | None:
    evidence = trace.seen_with(readers)
    try:
        return policy.vote(evidence) if gates.open_for(evidence) else "not_sampled"
    except NoVote:
        return None


@given(data=st.data(), mode=st.sampled_from(["silent", "propagate"]))
@settings(max_examples=large(80, 200))
def test_a_condition_votes_as_if_asked_about_every_span(data: st.DataObject, mode: Mode) -> None:
    of_spans = data.draw(st.lists(conditions(ON_SPANS, ["IsRootSpan()"]), min_size=1, max_size=2))
    of_events = data.draw(st.lists(conditions(ON_EVENTS, []), max_size=1))
    on_spans = [Condition(text, SPAN) for text in of_spans]
    on_events = [Condition(text, SPAN_EVENT) for text in of_events]
    policy = OttlCondition(on_spans, on_events, mode)
    readers = Readers(policy.reads)
    gates = Gates([policy], readers)
    for trace in data.draw(st.lists(traces(), min_size=1, max_size=3)):
        expected: str | None
        try:
            expected = asked_one_by_one(trace, on_spans, on_events, mode)
        except NoVote:
            expected = None
        assert voted(policy, readers, gates, trace) == expected


def values_of(trace: Trace, key: str) -> tuple[list[Value], list[Value]]:
    """Return the values of an attribute on resources and on spans."""
    around = [resource_attributes(header.resource) for header in trace.headers]
    on_spans = []
    for group in trace.groups:
        for span in raw_span_reader(FIELDS)(frame(group)):
            first = [value for name, value in map(read_key_value, span.attributes) if name == key][:1]
            on_spans += first
    return [attributes[key] for attributes in around if key in attributes], on_spans


Meets = Callable[[Value], bool]
SETTINGS: Sequence[tuple[str, dict[str, object], Meets, Meets]] = [
    (
        "string_attribute",
        {"key": "a", "values": ["x", ""]},
        lambda value: value == "x",
        lambda value: value == "x",
    ),
    (
        "string_attribute",
        {"key": "a", "values": ["^x?$"], "enabled_regex_matching": True},
        lambda value: value == "x",
        lambda value: value in ("x", "") or not isinstance(value, str),
    ),
    (
        "numeric_attribute",
        {"key": "a", "min_value": 4, "max_value": 500},
        lambda value: type(value) is int and 4 <= value <= 500,
        lambda value: type(value) is int and 4 <= value <= 500,
    ),
    ("boolean_attribute", {"key": "b", "value": True}, lambda value: value is True, lambda value: value is True),
]


@pytest.mark.parametrize("inverted", [False, True])
@pytest.mark.parametrize(("kind", "block", "on_span", "on_resource"), SETTINGS)
@given(several=st.lists(traces(), min_size=1, max_size=4))
@settings(max_examples=large(25, 100))
def test_an_attribute_is_looked_up_on_every_span(
    kind: str, block: dict[str, object], on_span: Meets, on_resource: Meets, inverted: bool, several: Sequence[Trace]
) -> None:
    policy = Leaf.model_validate({"name": "p", "type": kind, kind: {**block, "invert_match": inverted}}).create()
    assert isinstance(policy, AttributeEvaluator)
    readers = Readers(policy.reads)
    gates = Gates([policy], readers)
    for trace in several:
        around, on_spans = values_of(trace, str(block["key"]))
        matched = any(map(on_resource, around)) or any(map(on_span, on_spans))
        assert voted(policy, readers, gates, trace) == ("sampled" if matched is not inverted else "not_sampled")
