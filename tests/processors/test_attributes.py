"""`attributes` does with attributes what the Collector's processor does, and leaves the rest of a span alone."""

import hashlib
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_processors.attributes import FACTORY, Config
from pydantic import ValidationError

from podtrail.component import Context
from podtrail.otlp import (
    Batch,
    Event,
    Group,
    SpanView,
    Status,
    Value,
    encode_span,
    frame,
    resource_header,
    scope_header,
    split,
)
from podtrail.testing.contracts import Arrival, check_processor
from tests.sizes import large


def span(attributes: Mapping[str, Value], name: str = "work", kind: int = 1) -> bytes:
    """Return a span that has a little of everything."""
    return encode_span(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        name=name,
        kind=kind,
        start=1,
        end=2,
        status=Status(2, "no"),
        events=[Event(1, "told", {"n": 1})],
        attributes=attributes,
    )


def group(*spans: bytes, service: str | None = "shop") -> Group:
    """Return spans as a group."""
    resource = {} if service is None else {"service.name": service}
    return Group(resource_header(resource), scope_header("library", "2"), b"t" * 16, frame(spans), len(spans))


def passed(settings: Mapping[str, Any], given: Group) -> Group:
    """Return what comes out."""
    made = FACTORY.create(Config.model_validate(settings), Context(id="attributes"))
    (batch,) = made.add(Batch([given], 1), 1).out
    (left,) = batch.groups
    assert isinstance(left, Group)
    return left


def edited(action: object, before: Mapping[str, Value]) -> dict[str, Value]:
    """Return the attributes after one or several actions."""
    actions = action if isinstance(action, list) else [action]
    (raw,) = split(passed({"actions": actions}, group(span(before))).spans)
    return dict(SpanView(raw).attributes)


def sha(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize(
    ("action", "after"),
    [
        ({"key": "new", "value": 5, "action": "insert"}, {"a": "x", "n": 2, "new": 5}),
        ({"key": "a", "value": 5, "action": "INSERT"}, {"a": "x", "n": 2}),
        ({"key": "a", "value": True, "action": "update"}, {"a": True, "n": 2}),
        ({"key": "new", "value": 5, "action": "update"}, {"a": "x", "n": 2}),
        ({"key": "a", "value": "", "from_context": "", "converted_type": "", "action": "upsert"}, {"a": "", "n": 2}),
        ({"key": "a", "value": 1.5, "action": "upsert"}, {"a": 1.5, "n": 2}),
        ({"key": "new", "value": ["p", {"q": 1}], "action": "upsert"}, {"a": "x", "n": 2, "new": ["p", {"q": 1}]}),
        ({"key": "new", "from_attribute": "a", "action": "insert"}, {"a": "x", "n": 2, "new": "x"}),
        ({"key": "a", "from_attribute": "gone", "action": "update"}, {"a": "x", "n": 2}),
        (
            {"key": "new", "from_attribute": "gone", "default_value": "d", "action": "insert"},
            {"a": "x", "n": 2, "new": "d"},
        ),
        ({"key": "new", "default_value": "d", "action": "insert"}, {"a": "x", "n": 2, "new": "d"}),
        ({"key": "a", "action": "delete"}, {"n": 2}),
        ({"pattern": "^[a-m]$", "action": "delete"}, {"n": 2}),
        ({"key": "a", "pattern": "n", "action": "delete"}, {}),
        ({"key": "a", "action": "hash"}, {"a": sha(b"x"), "n": 2}),
        ({"pattern": "n", "action": "hash"}, {"a": "x", "n": sha(b"\x02" + bytes(7))}),
        ({"key": "a", "converted_type": "int", "action": "convert"}, {"a": "x", "n": 2}),
        ({"key": "n", "converted_type": "string", "action": "convert"}, {"a": "x", "n": "2"}),
        ({"key": "n", "converted_type": "double", "action": "convert"}, {"a": "x", "n": 2.0}),
    ],
)
def test_an_action_does_what_its_name_says(action: dict[str, Any], after: dict[str, Value]) -> None:
    result = edited(action, {"a": "x", "n": 2})
    assert result == after
    assert list(map(type, result.values())) == list(map(type, after.values()))
    assert list(result) == list(after), "attributes that stay keep their place"


@pytest.mark.parametrize(
    ("before", "wanted", "after"),
    [
        ("12", "int", 12),
        ("12.5", "int", "12.5"),
        (12.9, "int", 12),
        (True, "int", 1),
        (float("inf"), "int", -(2**63)),
        ("1e3", "double", 1000.0),
        ("many", "double", "many"),
        (False, "double", 0.0),
        (1e21, "string", "1e+21"),
        (True, "string", "true"),
        ([1, "a"], "string", '[1,"a"]'),
        (b"\xff", "string", "/w=="),
        ([1], "int", [1]),
    ],
)
def test_converts_as_the_collector_does_or_leaves_it(before: Value, wanted: str, after: Value) -> None:
    result = edited({"key": "v", "converted_type": wanted, "action": "convert"}, {"v": before})["v"]
    assert (result, type(result)) == (after, type(after))


@pytest.mark.parametrize(
    ("value", "hashed"),
    [(True, sha(b"\x01")), (1.5, sha(b"\0\0\0\0\0\0\xf8\x3f")), (-1, sha(b"\xff" * 8)), ("", ""), ([1], "")],
)
def test_hashes_of_other_values_are_of_their_bytes(value: Value, hashed: str) -> None:
    assert edited({"key": "v", "action": "hash"}, {"v": value}) == {"v": hashed}


def test_extracts_an_attribute_for_each_group_and_leaves_its_source() -> None:
    action = {"key": "url", "pattern": r"^/(?P<space>\w+)/(?P<name>\w*)(?P<rest>/.*)?", "action": "extract"}
    assert edited(action, {"url": "/shop/web", "name": 5}) == {
        "url": "/shop/web",
        "name": "web",
        "space": "shop",
        "rest": "",
    }
    assert edited(action, {"url": 7}) == {"url": 7}


def test_actions_follow_one_another() -> None:
    actions = [
        {"key": "copy", "from_attribute": "email", "action": "insert"},
        {"key": "email", "action": "delete"},
        {"key": "copy", "action": "hash"},
        {"key": "email", "value": "gone", "action": "upsert"},
    ]
    assert edited(actions, {"email": "a@b"}) == {"email": "gone", "copy": sha(b"a@b")}


def test_all_but_the_attributes_stays_as_it_was() -> None:
    before = SpanView(span({"a": "x", "list": [1, {"b": None}]}))
    (raw,) = split(passed({"actions": [{"key": "a", "action": "delete"}]}, group(before.raw)).spans)
    after = SpanView(raw)
    assert after.attributes == {"list": [1, {"b": None}]}
    assert (after.events, after.status, after.name, after.span_id) == (
        *(before.events, before.status, before.name, before.span_id),
    )
    assert raw[:28] == before.raw[:28]


@pytest.mark.parametrize("key", ["gone", "work"])
def test_what_does_not_change_passes_as_the_same_bytes(key: str) -> None:
    untouched = group(span({"a": "x"}))
    assert passed({"actions": [{"key": key, "action": "delete"}]}, untouched) is untouched


@pytest.mark.parametrize(
    ("match", "met"),
    [
        ({"services": ["shop", "other"]}, True),
        ({"services": ["sho"]}, False),
        ({"match_type": "regexp", "services": ["^sh"]}, True),
        ({"span_names": ["work"]}, True),
        ({"match_type": "regexp", "span_names": ["^or"]}, False),
        ({"span_kinds": ["SPAN_KIND_SERVER"]}, True),
        ({"match_type": "regexp", "span_kinds": ["CLIENT|INTERNAL"]}, False),
        ({"attributes": [{"key": "a"}]}, True),
        ({"attributes": [{"key": "a", "value": "x"}, {"key": "n", "value": 2}]}, True),
        ({"attributes": [{"key": "n", "value": 2.0}]}, False),
        ({"match_type": "regexp", "attributes": [{"key": "n", "value": "^2$"}]}, True),
        ({"resources": [{"key": "service.name", "value": "shop"}]}, True),
        ({"libraries": [{"name": "library"}]}, True),
        ({"libraries": [{"name": "library", "version": ""}]}, False),
        ({"services": ["shop"], "span_names": ["other"]}, False),
    ],
)
def test_include_and_exclude_mean_the_same_spans(match: dict[str, Any], met: bool) -> None:
    spans = group(span({"a": "x", "n": 2}, kind=2))
    wanted = {"match_type": "strict"} | match
    actions = [{"key": "seen", "value": True, "action": "insert"}]
    for key, changes in (("include", met), ("exclude", not met)):
        (raw,) = split(passed({"actions": actions, key: wanted}, spans).spans)
        assert ("seen" in SpanView(raw).attributes) is changes


@pytest.mark.parametrize("odd", [float("nan"), float("-inf"), {"a": float("inf")}])
def test_a_value_that_has_no_text_matches_as_an_empty_one(odd: Value) -> None:
    def met(value: str) -> bool:
        match = {
            "match_type": "regexp",
            "services": [value],
            **({"attributes": [{"key": "odd", "value": value}]} if isinstance(odd, float) else {}),
        }
        settings = {"actions": [{"key": "seen", "value": True, "action": "insert"}], "include": match}
        header = resource_header({"service.name": odd})
        given = Group(header, scope_header(""), b"t" * 16, frame([span({"odd": odd})]), 1)
        return b"seen" in passed(settings, given).spans

    assert met(".*")
    assert not met(".+")


def test_a_resource_without_a_service_has_the_collectors_name_for_none() -> None:
    settings = {
        "actions": [{"key": "seen", "value": True, "action": "insert"}],
        "include": {"match_type": "strict", "services": ["<nil-service-name>"]},
    }
    assert b"seen" in passed(settings, group(span({}), service=None)).spans


@pytest.mark.parametrize(
    ("action", "problem"),
    [
        ({"key": "a", "action": "set", "value": 1}, "insert"),
        ({"action": "insert", "value": 1}, "key is missing"),
        ({"action": "hash"}, r"key is missing \(or pattern\)"),
        ({"key": "a", "action": "insert"}, "needs value, from_attribute or default_value"),
        ({"key": "a", "action": "insert", "value": 1, "from_attribute": "b"}, "can't be used together"),
        ({"key": "a", "action": "upsert", "from_context": "metadata.tenant"}, "is not supported: use value"),
        ({"key": "a", "action": "delete", "value": 1}, "delete does not use value; it takes pattern"),
        ({"key": "a", "action": "convert"}, "needs converted_type"),
        ({"key": "a", "action": "convert", "converted_type": "bool"}, "double"),
        ({"key": "a", "action": "extract", "pattern": "x"}, "no named group"),
        ({"key": "a", "action": "extract", "pattern": "(?P<b>x)(y)"}, "without a name"),
        ({"key": "a", "action": "delete", "pattern": "("}, r"missing \)"),
        ({"key": "a", "action": "insert", "value": 2**63}, "64 bits"),
    ],
)
def test_an_action_that_can_not_be_meant_is_refused(action: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Config.model_validate({"actions": [action]})


@pytest.mark.parametrize(
    ("match", "problem"),
    [
        ({"match_type": "strict"}, "at least one of services"),
        ({"services": ["a"]}, "match_type"),
        ({"match_type": "strict", "span_kinds": ["server"]}, "unknown span kind 'server'"),
        ({"match_type": "regexp", "span_names": ["("]}, r"missing \)"),
        ({"match_type": "regexp", "attributes": [{"key": "a", "value": 1}]}, "must be text"),
    ],
)
def test_a_match_that_can_not_be_meant_is_refused(match: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Config.model_validate({"actions": [{"key": "a", "action": "delete"}], "include": match})


def test_settings_that_are_hardly_meant_are_warned_of() -> None:
    assert Config().warnings() == [(("actions",), "without actions it changes nothing")]


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=5), st.binary(max_size=3)
)


@given(st.dictionaries(st.sampled_from("abcd"), VALUES), st.dictionaries(st.sampled_from("abcd"), VALUES.filter(bool)))
def test_what_is_not_named_stays(before: dict[str, Value], wanted: dict[str, Value]) -> None:
    actions = [
        {"key": key, "value": value, "action": "upsert"}
        for key, value in wanted.items()
        if not isinstance(value, bytes)
    ]
    expected = before | {action["key"]: action["value"] for action in actions}
    assert edited(actions, before) == expected


@settings(max_examples=large(10, 100))
@given(st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=5))
def test_keeps_the_contract_of_processors(keys: list[str]) -> None:
    config = Config.model_validate({"actions": [{"key": "a", "action": "hash"}]})
    arrivals = [Arrival(at, Batch([group(span({key: "x"}))], at)) for at, key in enumerate(keys, 1)]
    check_processor(lambda context: FACTORY.create(config, context), arrivals)
