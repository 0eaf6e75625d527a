"""`filter` drops what meets a condition and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.filter import FACTORY, Config
from podtrail_processors.ottl import SPAN, Condition, EvaluationError, Telemetry
from pydantic import ValidationError

from podtrail.component import Context
from podtrail.otlp import (
    Batch,
    Event,
    Group,
    SpanView,
    Value,
    encode_span,
    frame,
    raw_span_reader,
    resource_header,
    scope_header,
    split,
)
from podtrail.testing import replay
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large

SECOND = 1_000_000_000


def group(*names: str, service: str = "shop", events: Sequence[str] = (), **attributes: Value) -> Group:
    """Return spans of these names as a group."""
    spans = [
        encode_span(
            trace_id=b"t" * 16,
            span_id=bytes([at]) * 8,
            name=name,
            start=1,
            end=2,
            attributes=attributes,
            events=[Event(1, event, {"event": event}) for event in events],
        )
        for at, name in enumerate(names, 1)
    ]
    header = resource_header({"service.name": service})
    return Group(header, scope_header("library", "2"), b"t" * 16, frame(spans), len(spans))


class Run:
    """A filter that took one batch."""

    def __init__(self, settings: Mapping[str, Any], *groups: Group) -> None:
        self.context = Context(id="filter/test")
        made = FACTORY.create(Config.model_validate(settings), self.context)
        batches: Sequence[Batch] = made.add(Batch(groups, 1), 1).out
        self.groups = [group for batch in batches for group in batch.groups]
        self.spans = [SpanView(raw) for group in self.groups for raw in split(group.spans)]
        self.names = [span.name for span in self.spans]


def spans(*conditions: str, **more: object) -> dict[str, object]:
    """Return settings that drop spans."""
    return {"traces": {"span": list(conditions)}} | more


def test_drops_spans_that_meet_one_of_the_conditions() -> None:
    run = Run(spans('name == "health"', 'IsMatch(name, "^/ready")'), group("work", "health", "/readyz"), group("more"))
    assert run.names == ["work", "more"]
    assert run.context.ledger.sampled_out == 2
    assert run.context.metrics.snapshot()["otelcol_processor_filter_spans.filtered"] == {"filter=filter/test": 2}


def test_what_meets_no_condition_passes_as_the_same_bytes() -> None:
    untouched = group("work", "more", kind="good")
    run = Run(spans('name == "health"', 'attributes["kind"] == "bad"'), untouched)
    assert run.groups[0] is untouched


def test_a_group_of_which_nothing_is_left_is_gone() -> None:
    run = Run(spans('resource.attributes["service.name"] == "probe"'), group("a", "b", service="probe"))
    assert run.groups == []
    assert run.context.ledger.sampled_out == 2


def test_drops_events_and_leaves_their_spans() -> None:
    config = {"traces": {"spanevent": ['name == "retry"', 'attributes["event"] == "noise"']}}
    run = Run(config, group("work", events=["retry", "told", "noise"], kind="good"))
    assert [event.name for event in run.spans[0].events] == ["told"]
    assert run.spans[0].attributes == {"kind": "good"}
    assert run.context.ledger.sampled_out == 0


def test_drops_resources_before_it_looks_at_spans() -> None:
    config = {"traces": {"resource": ['attributes["service.name"] == "probe"'], "span": ['name == "health"']}}
    run = Run(config, group("a", service="probe"), group("health", "b"))
    assert run.names == ["b"]


@pytest.mark.parametrize(
    ("conditions", "left"),
    [
        (['span.name == "a"'], ["b"]),
        (['span.name == "a"', 'resource.attributes["service.name"] == "shop"'], []),
        (['resource.attributes["service.name"] == "shop"'], []),
        (['instrumentation_scope.name == "library"'], []),
        (["IsRootSpan()"], []),
        ([{"context": "span", "conditions": ['name == "b"']}], ["a"]),
        ([{"context": "scope", "conditions": ['version == "3"']}], ["a", "b"]),
        ([{"context": "Resource", "conditions": ['attributes["service.name"] == "shop"']}], []),
        ([{"conditions": ['span.name == "a"']}, {"conditions": ['scope.name == "other"']}], ["b"]),
    ],
)
def test_conditions_say_what_they_are_about(conditions: list[object], left: list[str]) -> None:
    assert Run({"trace_conditions": conditions}, group("a", "b")).names == left


def test_conditions_of_one_list_are_about_the_lowest_that_any_of_them_names() -> None:
    config = {"trace_conditions": ['span.name == "a"', 'spanevent.name == "noise"']}
    run = Run(config, group("a", "b", events=["noise", "told"]))
    assert [[event.name for event in span.events] for span in run.spans] == [[], ["told"]]


@pytest.mark.parametrize(("mode", "left"), [("ignore", ["a"]), ("silent", ["a"]), ("Propagate", [])])
def test_a_condition_without_an_answer_is_passed_over_or_costs_the_batch(mode: str, left: list[str]) -> None:
    run = Run(spans('Int(attributes["n"]) > 5', 'name == "b"', error_mode=mode), group("a", "b", n="many"))
    assert run.names == left
    assert run.context.ledger.dropped == ({} if left else {"filter_error": 2})


def test_what_has_no_answer_is_logged_once_a_minute_unless_silent(caplog: pytest.LogCaptureFixture) -> None:
    for mode in ("ignore", "silent"):
        made = FACTORY.create(Config.model_validate(spans('attributes["n"] * 2 > 5', error_mode=mode)), Context(id="f"))
        for now in (1, 2, 61 * SECOND):
            made.add(Batch([group("a", "b", n="many")], now), now)
    assert len(caplog.messages) == 2
    assert 'no answer of the condition attributes["n"] * 2 > 5' in caplog.messages[0]


def test_verdicts_of_samplers_pass_even_when_all_spans_are_dropped() -> None:
    from podtrail.testing.attempts import no_room

    made = FACTORY.create(Config.model_validate(spans("true")), Context(id="filter"))
    batch = no_room().batch()
    (out,) = made.add(batch, 1).out
    assert (list(out.groups), out.verdicts) == ([], batch.verdicts)


@pytest.mark.parametrize(
    ("settings", "place", "problem"),
    [
        (spans('name == "a"', 'nam == "b"'), ("traces", "span", 1), "line 1, column 1 of .*unknown path 'span.nam'"),
        (spans("name =="), ("traces", "span", 0), "column 8"),
        ({"traces": {"resource": ['name == "a"']}}, ("traces", "resource", 0), "unknown path 'resource.name'"),
        ({"trace_conditions": ['name == "a"']}, ("trace_conditions", 0), "there are scope.name, span.name"),
        ({"trace_conditions": ["1 == 2"]}, ("trace_conditions", 0), "no path says"),
        ({"trace_conditions": ["IsRootSpan()", {"context": "span"}]}, ("trace_conditions",), "not both"),
        ({"trace_conditions": [{}]}, ("trace_conditions", 0), "a group has conditions"),
        (spans("true") | {"trace_conditions": ["IsRootSpan()"]}, (), "can't be used together"),
        ({"metrics": {"metric": ['name == "a"']}}, ("metrics",), "traces only"),
        ({"log_conditions": ["true"]}, ("log_conditions",), "traces only"),
        ({"spans": {"include": {"match_type": "strict"}}}, ("spans",), "write what is to be dropped as conditions"),
    ],
)
def test_what_can_not_be_read_is_refused_where_it_stands(
    settings: dict[str, object], place: tuple[str | int, ...], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem) as caught:
        Config.model_validate(settings)
    assert caught.value.errors()[0]["loc"] == place


def test_settings_that_are_hardly_meant_are_warned_of() -> None:
    assert [text for _, text in Config().warnings()] == ["without conditions it drops nothing"]
    assert "loses all spans" in Config.model_validate(spans("true", error_mode="propagate")).warnings()[0][1]


def test_stands_in_a_pipeline_and_the_ledger_balances() -> None:
    config = {
        "receivers": {"otlp": {"protocols": {"grpc": {}}}},
        "processors": {"filter": spans('name == "health"')},
        "exporters": {"debug": {}},
        "service": {"pipelines": {"traces": {"receivers": ["otlp"], "processors": ["filter"], "exporters": ["debug"]}}},
    }
    kept, dropped = (
        {"traceId": "01" * 16, "spanId": id * 8, "name": name} for id, name in (("01", "a"), ("02", "health"))
    )
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [kept, dropped]}]}]}
    run = replay(config, [(1, request)])
    assert run.kept == {"01" * 16: ["01" * 8]}


CONDITIONS = [
    'name == "a"',
    'attributes["n"] > 1',
    'attributes["n"] * 2 > 2',
    'IsMatch(attributes["text"], "^x") and name != "b"',
    'not (attributes["text"] == "x")',
    'resource.attributes["service.name"] == "shop" and attributes["n"] == nil',
    'Len(attributes["text"]) == 1 or name == "c"',
]
ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={"n": st.sampled_from([1, 2, 1.5, "2"]), "text": st.sampled_from(["x", "xy", 5, ""])}
)


@given(
    st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from("abc"), ATTRIBUTES, st.sampled_from(["shop", "etcd"])), max_size=6),
    st.sampled_from(["ignore", "silent"]),
)
def test_what_a_glance_rules_out_would_not_have_been_dropped(
    conditions: list[str], made: list[tuple[str, dict[str, Any], str]], mode: str
) -> None:
    alone = [group(name, service=service, **attributes) for name, attributes, service in made]
    together = Run(spans(*conditions, error_mode=mode), *alone)
    one_by_one = [one for one in alone if not any(_holds(condition, one) for condition in conditions)]
    assert together.groups == one_by_one


def _holds(text: str, of: Group) -> bool:
    """Ask a condition about a group's span without any shortcut."""
    telemetry: Any = Telemetry()
    telemetry.resource, telemetry.scope, telemetry.now = of.resource, of.scope, 1
    (telemetry.span,) = raw_span_reader({"name", "attributes"})(of.spans)
    try:
        return Condition(text, SPAN).holds(telemetry)
    except EvaluationError:
        return False


@settings(max_examples=large(10, 100))
@given(st.lists(st.sampled_from(["a", "health"]), min_size=1, max_size=5))
def test_keeps_the_contract_of_processors(names: list[str]) -> None:
    config = Config.model_validate(spans('name == "health"', error_mode="silent"))
    arrivals = [Arrival(at, Batch([group(name)], at)) for at, name in enumerate(names, 1)]
    check_processor(lambda context: FACTORY.create(config, context), arrivals)
