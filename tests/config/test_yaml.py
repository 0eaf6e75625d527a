"""YAML 1.2 core types, places, and the refusal of what nobody means."""

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.config import ConfigError
from podtrail.config.nodes import MapNode, place_of, plain
from podtrail.config.reader import read_yaml


def read(text: str) -> Any:
    """Return the plain value of a text."""
    node = read_yaml(text, "c.yaml")
    return None if node is None else plain(node)


def refusal(text: str) -> list[str]:
    """Return the headlines of what is wrong with a text."""
    with pytest.raises(ConfigError) as caught:
        read_yaml(text, "c.yaml")
    return [problem.headline for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("12:30:45", "12:30:45"),
        ("2024-01-01", "2024-01-01"),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0o17", 15),
        ("-7", -7),
        ("1e3", 1000.0),
        (".5", 0.5),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("true", True),
        ("False", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'010'", "010"),
        ('"10"', "10"),
        ("!!str 10", "10"),
        ("!!int 10", 10),
        ("!!float 1", 1),
        ("=", "="),
    ],
)
def test_scalars_have_the_core_types_of_yaml_1_2_and_the_collectors_underscores(text: str, value: object) -> None:
    assert read(f"a: {text}") == {"a": value}
    assert type(read(f"a: {text}")["a"]) is type(value)


def test_every_key_and_value_knows_its_place() -> None:
    root = read_yaml("a:\n  - b: {c: deep}\n", "c.yaml")

    assert isinstance(root, MapNode)
    assert str(root.entries["a"].key) == "c.yaml:1:1"
    assert str(place_of(root, ("a", 0, "b", "c"))) == "c.yaml:2:9"
    value = place_of(root, ("a", 0, "b", "c"), value=True)
    assert (str(value), value.width) == ("c.yaml:2:12", 4)


def test_a_key_given_twice_is_refused_with_both_places() -> None:
    assert refusal("a: 1\nb: {c: 1, d: 2, c: 3}\na: 2\n") == [
        "c.yaml:2:17: b::c: is given twice, first at c.yaml:2:5",
        "c.yaml:3:1: a: is given twice, first at c.yaml:1:1",
    ]


@pytest.mark.parametrize(
    ("text", "headline"),
    [
        ("a: 010", "c.yaml:1:4: a: 010 is octal to some readers and decimal to others"),
        ("1: a", "c.yaml:1:1: has the key 1, which is not text"),
        ("true: a", "c.yaml:1:1: has the key true, which is not text"),
        ("? [a]\n: b", "c.yaml:1:3: has a list or map as a key"),
        ("a: !env HOME", "c.yaml:1:4: a: the tag !env can't be used here"),
        ("a: !!int x", "c.yaml:1:4: a: the tag !!int can't be used here"),
        ("a: !!set {b}", "c.yaml:1:4: a: the tag !!set can't be used here"),
        ("a: 1\n---\nb: 2", "c.yaml:3:1: starts a second document"),
        ("a: &x [*x]", "c.yaml:1:4: a::0: contains itself through an alias"),
        ("a: *b", "c.yaml:1:4: is not YAML: found undefined alias"),
        ("a:\n\tb: 1", "c.yaml:2:1: is not YAML: a tab indents this line"),
        ("a: b: c", "c.yaml:1:5: is not YAML: mapping values are not allowed in this context"),
        ("a: [1,\n  2\nb: 3", "c.yaml:3:2: is not YAML: while parsing a flow sequence did not find expected ','"),
        ("a: 'b", "c.yaml:1:6: is not YAML: while scanning a quoted scalar found unexpected end of stream"),
        ("a: \x01", "c.yaml:1:4: has a character that YAML does not allow"),
        ("a: " + "[" * 1_000_000, "c.yaml:1:103: is nested more than 100 levels deep"),
        ("<<: 1", "c.yaml:1:5: <<: must merge maps"),
        ("a: 1" + "0" * 50, "c.yaml:1:4: a: is a number of 51 digits"),
    ],
)
def test_what_nobody_means_is_refused(text: str, headline: str) -> None:
    first, *_ = refusal(text)

    assert first.startswith(headline)


def test_a_reference_between_brackets_wants_quotes() -> None:
    with pytest.raises(ConfigError) as caught:
        read_yaml("a:\n  b: [x, ${EXPORTERS}]", "c.yaml")
    assert caught.value.problems[0].hint == 'put it in quotes, since a brace begins a map here: "${EXPORTERS}"'


def test_aliases_are_bounded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 30)]

    assert any("makes more than 100,000 values" in headline for headline in refusal("\n".join(lines)))


def test_aliases_are_bounded_in_depth() -> None:
    lines = ["a0: &a0 {x: 1}", *(f"a{i}: &a{i} {{x: *a{i - 1}}}" for i in range(1, 900))]

    assert any("nested more than 100 levels deep" in headline for headline in refusal("\n".join(lines)))


def test_merge_keys_fill_in_what_is_not_given() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 3}\n"

    assert read(text)["c"] == {"x": 3, "y": 1, "z": 2}


def test_text_without_a_value_is_nothing() -> None:
    assert read_yaml("# only a comment\n", "c.yaml") is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64) | st.floats(allow_nan=False) | st.text("abc xyz0.-"),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abcdef"), inner, max_size=4),
        max_leaves=20,
    )
)
def test_reads_what_json_means(value: Any) -> None:
    assert read(json.dumps({"v": value}).replace("Infinity", ".inf")) == {"v": value}


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_report(text: str) -> None:
    with contextlib.suppress(ConfigError):
        read_yaml(text, "c.yaml")
