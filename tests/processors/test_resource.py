"""`resource` does with the attributes of resources what the Collector's processor does, once for each resource."""

from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from podtrail_processors.resource import FACTORY, Config
from pydantic import ValidationError

from podtrail.component import Context
from podtrail.otlp import Batch, Group, Value, encode_span, frame, resource_attributes, resource_header, scope_header
from podtrail.testing.contracts import Arrival, check_processor

SPAN = encode_span(trace_id=b"t" * 16, span_id=b"s" * 8, name="work", start=1, end=2, attributes={"a": "of the span"})


def group(resource: bytes) -> Group:
    """Return a span under a resource."""
    return Group(resource, scope_header("library"), b"t" * 16, frame([SPAN]), 1)


def passed(actions: object, *resources: bytes) -> list[Group]:
    """Return what comes out."""
    made = FACTORY.create(Config.model_validate({"attributes": actions}), Context(id="resource"))
    (batch,) = made.add(Batch([group(resource) for resource in resources], 1), 1).out
    return list(batch.groups)


@pytest.mark.parametrize(
    ("action", "after"),
    [
        ({"key": "new", "value": 5, "action": "insert"}, {"a": "x", "n": 2, "new": 5}),
        ({"key": "a", "value": 5, "action": "insert"}, {"a": "x", "n": 2}),
        ({"key": "a", "value": True, "action": "update"}, {"a": True, "n": 2}),
        ({"key": "new", "value": 5, "action": "update"}, {"a": "x", "n": 2}),
        ({"key": "a", "value": ["p"], "action": "upsert"}, {"a": ["p"], "n": 2}),
        ({"key": "new", "from_attribute": "a", "action": "upsert"}, {"a": "x", "n": 2, "new": "x"}),
        ({"key": "a", "action": "delete"}, {"n": 2}),
        ({"pattern": "^[an]$", "action": "delete"}, {}),
        ({"key": "n", "converted_type": "string", "action": "convert"}, {"a": "x", "n": "2"}),
        ({"key": "a", "pattern": "(?P<copy>.)", "action": "extract"}, {"a": "x", "n": 2, "copy": "x"}),
    ],
)
def test_an_action_does_what_its_name_says_and_leaves_spans_alone(
    action: dict[str, Any], after: dict[str, Value]
) -> None:
    (left,) = passed([action], resource_header({"a": "x", "n": 2}))
    assert dict(resource_attributes(left.resource)) == after
    assert list(resource_attributes(left.resource)) == list(after), "attributes that stay keep their place"
    assert left._replace(resource=b"") == group(b"")


def test_a_resource_that_is_not_there_gets_what_is_inserted() -> None:
    (left,) = passed([{"key": "k8s.cluster.name", "value": "eu", "action": "insert"}], b"")
    assert resource_attributes(left.resource) == {"k8s.cluster.name": "eu"}


def test_what_a_resource_has_besides_stays() -> None:
    entity = common_pb2.EntityRef(type="host", id_keys=["host.id"])
    resource = resource_pb2.Resource(dropped_attributes_count=3, entity_refs=[entity])
    before = trace_pb2.ResourceSpans(resource=resource, schema_url="https://schema.example/1")
    (left,) = passed([{"key": "a", "value": 1, "action": "insert"}], before.SerializeToString())
    after = trace_pb2.ResourceSpans.FromString(left.resource)
    assert (after.schema_url, after.resource.dropped_attributes_count) == ("https://schema.example/1", 3)
    assert list(after.resource.entity_refs) == [entity]


def test_a_resource_that_nothing_changes_leaves_as_the_bytes_it_came_in() -> None:
    before = resource_header({"a": "x"})
    (left,) = passed([{"key": "a", "value": "y", "action": "insert"}, {"key": "b", "action": "delete"}], before)
    assert left.resource is before


def test_of_several_attributes_of_one_key_one_is_left() -> None:
    (left,) = passed([{"key": "a", "value": "z", "action": "update"}], resource_header({"a": "x"}) * 2)
    attributes = trace_pb2.ResourceSpans.FromString(left.resource).resource.attributes
    assert [(pair.key, pair.value.string_value) for pair in attributes] == [("a", "z")]


def test_actions_are_done_in_their_order() -> None:
    actions: list[Mapping[str, Any]] = [
        {"key": "a", "action": "delete"},
        {"key": "a", "value": "new", "action": "insert"},
        {"key": "b", "from_attribute": "a", "action": "insert"},
        {"key": "a", "action": "delete"},
    ]
    (left,) = passed(actions, resource_header({"a": "x"}))
    assert resource_attributes(left.resource) == {"b": "new"}


def test_groups_of_one_resource_stay_groups_of_one_resource() -> None:
    first, second, third = passed(
        [{"key": "k", "value": 1, "action": "upsert"}],
        *(resource_header({"a": "x"}), resource_header({"a": "x"}), resource_header({"a": "y"})),
    )
    assert first.resource == second.resource != third.resource


def test_without_actions_it_is_refused() -> None:
    for settings in ("{}", '{"attributes": []}'):
        with pytest.raises(ValidationError, match="attributes"):
            Config.model_validate_json(settings)


def test_keeps_the_contract_of_processors() -> None:
    config = Config.model_validate({"attributes": [{"key": "a", "action": "hash"}]})
    arrivals = [Arrival(at, Batch([group(resource_header({"a": str(at)}))], at)) for at in range(1, 4)]
    check_processor(lambda context: FACTORY.create(config, context), arrivals)
