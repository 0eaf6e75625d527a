"""What conditions mean."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from podtrail_processors.ottl import SPAN, Condition, EvaluationError

from tests.sizes import large

Ask = Callable[..., bool]


@pytest.mark.parametrize(
    "condition",
    [
        "nil == nil",
        "nil <= nil",
        "nil >= nil",
        'attributes["missing"] == nil',
        'attributes["missing"]["below"] == nil',
        'attributes["nothing"] == nil',
        'attributes["map"]["no"]["x"] == nil',
        'attributes["empty"] != nil',
        'attributes["int"] == 404.0',
        'attributes["whole"] == 404',
        '404 <= attributes["int"]',
        "1 < 1.5",
        'attributes["text"] != 5',
        'attributes["yes"] != 1',
        'attributes["int"] != "404"',
        'attributes["list"] == [1, 5, 10]',
        'attributes["list"] != [1, 5, 10.0]',
        'attributes["map"] == {"status": "scheduled", "node": {"name": "n1", "score": 87}}',
        'attributes["bytes"] == 0x0001',
        'attributes["bytes"] > 0x00',
        "7 / 2 == 3",
        "-7 / 2 == -3",
        "7 / 2.0 == 3.5",
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "2 - 3 == -1",
        "2-3 == -1",
        "9223372036854775807 + 1 < 0",
        'attributes["x"] == nil and attributes["int"] == 404',
        "false and true or true",
        "not false and not (true and false)",
        "(IsRootSpan())",
        "true == true",
        "1. == 1",
        ".5 == 0.5",
        "true or 1 / 0 == 1",
    ],
)
def test_holds(holds: Ask, condition: str) -> None:
    assert holds(condition)


@pytest.mark.parametrize(
    "condition",
    [
        "nil < nil",
        "nil > nil",
        'attributes["missing"] <= 5',
        'attributes["missing"] != nil',
        'attributes["int"] == "404"',
        'attributes["yes"] == 1',
        'attributes["yes"] > 0',
        '1 >= attributes["yes"]',
        'attributes["text"] > 5',
        'attributes["list"] < [2]',
        'attributes["map"] == attributes["list"]',
        "kind == true",
        "false and 1 / 0 == 1",
    ],
)
def test_does_not_hold(holds: Ask, condition: str) -> None:
    assert not holds(condition)


@pytest.mark.parametrize(
    "condition",
    [
        'attributes["text"]["x"] == "y"',
        'attributes["list"][9] == 1',
        'attributes["list"]["x"] == 1',
        'attributes["map"][0] == nil',
        "attributes[0] == nil",
        'ParseJSON(attributes["json"])["none"] == nil',
        "ParseJSON(name) == nil",
        "1 / 0 == 1",
        "1.0 / 0 == 1",
        'attributes["missing"] + 1 == 2',
        'attributes["text"] + name == "x"',
        '-attributes["text"] == 1',
        'Len(attributes["missing"]) == 0',
        'Len(attributes["int"]) == 0',
        'Int(attributes["text"]) == 1',
        'Substring(name, 0, 100) == "x"',
        'Bool(attributes["missing"])',
        "Len(name)",
        'HasPrefix(attributes["int"], "4")',
        "trace_state[0] == nil",
        'Duration("soon") < Duration("1s")',
        "start_time + start_time == start_time",
    ],
)
def test_has_no_answer(holds: Ask, condition: str) -> None:
    with pytest.raises(EvaluationError):
        holds(condition)


@pytest.mark.parametrize(
    "condition",
    [
        'name == "Scheduling" and span.name == name',
        'kind == SPAN_KIND_SERVER and kind.string == "Server" and kind.deprecated_string == "SPAN_KIND_SERVER"',
        'status.code == STATUS_CODE_ERROR and status.message == "no nodes"',
        'trace_id.string == "4a183f349c958a1ed4fb219d1cd2fd52"',
        "trace_id == TraceID(0x4a183f349c958a1ed4fb219d1cd2fd52)",
        'span_id == SpanID("80327f7b7e7cfa91") and span_id != SpanID(0x0000000000000000)',
        'parent_span_id.string == "0000000000000000" and parent_span_id == SpanID(0x0000000000000000)',
        'trace_state == "vendor=a,ot=th:8" and trace_state["vendor"] == "a" and trace_state["none"] == ""',
        'end_time - start_time == Duration("1.5s") and start_time < end_time',
        "end_time_unix_nano - start_time_unix_nano == 1500000000",
        "flags == 1 and dropped_attributes_count == 0 and dropped_links_count == 0 and dropped_events_count == 0",
        "Len(events) == 1 and Len(links) == 1 and IsList(events)",
        'resource.attributes["service.name"] == "scheduler" and resource.attributes["labels"]["app"] == "sched"',
        'resource.schema_url == "https://r" and resource.dropped_attributes_count == 0',
        'scope.name == "otelhttp" and instrumentation_scope.version == "0.61.0"',
        'instrumentation_scope.attributes["prio"] >= 5 and scope.schema_url == "https://s"',
        'attributes["map"]["node"]["score"] > 80 and attributes["names"][0] == "NodeAffinity"',
        'attributes[Concat(["in", "t"], "")] == 404 and attributes["list"][1 + 1] == 10',
        "Len(attributes) == 14 and IsMap(resource.attributes)",
    ],
)
def test_paths_of_a_span(holds: Ask, condition: str) -> None:
    assert holds(condition)


@pytest.mark.parametrize(
    "condition",
    [
        'name == "retry" and spanevent.name == name',
        'attributes["attempt"] == 2 and span.attributes["int"] == 404',
        'time - span.start_time == Duration("3ms") and time_unix_nano - span.start_time_unix_nano == 3000000',
        "span.status.code == STATUS_CODE_ERROR and dropped_attributes_count == 0",
        'resource.attributes["service.name"] == "scheduler" and scope.version == "0.61.0"',
    ],
)
def test_paths_of_an_event(holds: Ask, condition: str) -> None:
    assert holds(condition, event=True)


def test_the_index_of_an_event_has_no_answer(holds: Ask) -> None:
    with pytest.raises(EvaluationError):
        holds("event_index == 1", event=True)


def test_a_span_with_a_parent_is_no_root(holds: Ask) -> None:
    assert holds('not IsRootSpan() and parent_span_id.string == "0102030405060708"', parent=bytes(range(1, 9)))


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=large(100, 300))
def test_a_look_at_the_bytes_never_misses_a_span(
    data: st.DataObject, texts: Sequence[str], asked: Callable[..., Any]
) -> None:
    value = st.sampled_from(texts)
    comparison = st.tuples(value, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), value).map(" ".join)
    calls = [f"{name}({text})" for name in ("IsInt", "IsEmpty", "IsString") for text in texts]
    length, second = "end_time - start_time", st.sampled_from(["1s", "1.5s", "2s"]).map('Duration("{}")'.format)
    sign = st.sampled_from(["<", "<=", ">", ">="])
    lengths = st.tuples(st.just(length), sign, second) | st.tuples(second, sign, st.just(length))
    atom = comparison | st.sampled_from(calls) | lengths.map(" ".join) | value.map(lambda text: f'IsMatch({text}, "4")')
    tree = st.recursive(
        atom,
        lambda inner: (
            st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map(lambda parts: f"({''.join(parts)})")
            | inner.map(lambda text: f"not ({text})")
        ),
        max_leaves=6,
    )
    condition = Condition(data.draw(tree), SPAN)
    span = asked(attributes=data.draw(st.sampled_from([{}, {"int": 404}, {"text": "GET", "yes": True}])))
    try:
        held = condition.holds(span.seen_by(condition))
    except EvaluationError:
        assert not condition.never_fails
        assert condition.may_matter(span.trace_for(condition))
    else:
        assert condition.may_hold(span.trace_for(condition)) or not held
        assert condition.may_matter(span.trace_for(condition)) or not held
