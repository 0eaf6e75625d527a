"""`${env:NAME}` and its relatives, `$$`."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podtrail.config import ConfigError, Document


def expand(value: str, **environ: str) -> Any:
    """Return what a value becomes in an environment."""
    return Document.from_mapping({"v": value}, environ=environ).plain()["v"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("${env:NUMBER}", 10),
        ("${NUMBER}", 10),
        ("${env:YES}", True),
        ("${env:LIST}", ["a", "b"]),
        ("${env:MAP}", {"a": 1}),
        ("${env:QUOTED}", "10"),
        ("${env:EMPTY}", None),
        ("${env:NONE:-}", ""),
        ("${env:NONE:-5s}", "5s"),
        ("${NONE:-5s}", "5s"),
        ("${env:NUMBER:-7}", 10),
        ("${env:BRACKETS}", "[::1]:4317"),
        ("localhost:${env:NUMBER}", "localhost:10"),
        ("${env:OCTAL}x", "010x"),
        ("${env:NUMBER}${env:NUMBER}", "1010"),
        ("a${env:NONE:-}b", "ab"),
        ("${env:${env:NAME}}", 10),
        ("${env:NONE:-${env:NUMBER}}", 10),
        ("${env:INDIRECT}", 10),
        ("${yaml:[1, 2]}", [1, 2]),
        ("$$", "$"),
        ("$${env:NUMBER}", "${env:NUMBER}"),
        ("$$$${env:NUMBER}", "$${env:NUMBER}"),
        ("$$${env:NUMBER}", "$10"),
        ("end$", "end$"),
        ("$NUMBER", "$NUMBER"),
        ("${env:NUMBER", "${env:NUMBER"),
        ("a}b{", "a}b{"),
        ("^a{2}$", "^a{2}$"),
    ],
)
def test_references_give_what_the_collector_gives(value: str, expected: object) -> None:
    environ = {
        "NUMBER": "10",
        "YES": "true",
        "LIST": "[a, b]",
        "MAP": "a: 1",
        "QUOTED": '"10"',
        "EMPTY": "",
        "BRACKETS": "[::1]:4317",
        "OCTAL": "010",
        "NAME": "NUMBER",
        "INDIRECT": "${env:NUMBER}",
    }

    assert expand(value, **environ) == expected


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("${env:A B}", "'A B' is no name of an environment variable"),
        ("${env:1A}", "'1A' is no name of an environment variable"),
        ("${}", "'' is no name of an environment variable"),
        ("${vault:secret}", "${vault:secret} is no reference podtrail knows: env, file and yaml are"),
        ("${env:LOOP}", "refers to itself, or through more than 20 references"),
        ("x${env:LOOP}", "refers to itself, or through more than 20 references"),
    ],
)
def test_a_reference_that_can_not_be_resolved_is_refused(value: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        expand(value, LOOP="${env:LOOP}")

    assert message in str(caught.value)


def test_an_unset_variable_is_empty_and_warned_of() -> None:
    document = Document.from_text("a: ${env:NONE}\nb: x${env:NONE}\n", "c.yaml", {})

    assert document.plain() == {"a": None, "b": "x"}
    assert [warning.headline for warning in document.warnings] == [
        "c.yaml:1:4: a: the environment variable NONE is not set: empty",
        "c.yaml:2:4: b: the environment variable NONE is not set: empty",
    ]


def test_a_reference_that_is_overridden_is_not_resolved(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text("a: ${env:NONE}\n")

    assert Document.load([str(path)], ["a=1"], {}).warnings == ()


def test_a_file_can_be_referred_to_and_its_values_stand_in_it(tmp_path: Path) -> None:
    inner, token = tmp_path / "inner.yaml", tmp_path / "token"
    inner.write_text("x: 1\ny: ${env:Y}\n")
    token.write_text("abc")

    document = Document.from_text(f"a: ${{file:{inner}}}\nb: Bearer ${{file:{token}}}\n", environ={"Y": "2"})

    assert document.plain() == {"a": {"x": 1, "y": 2}, "b": "Bearer abc"}


def test_a_missing_file_is_reported_under_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"configuration:1:4: a: .*nowhere\.yaml: there is no such file"):
        Document.from_text(f"a: ${{file:{tmp_path}/nowhere.yaml}}\n")


@pytest.mark.parametrize("text", ["${" * 900 + "}" * 900, "${" * 100_000 + "}", "${env:A:-" * 900 + "}" * 900])
def test_references_nested_without_end_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="nested more than 20 deep"):
        Document.from_mapping({"a": text}, environ={})


@given(st.text("${}:-ab $", max_size=30))
def test_any_text_expands_or_is_refused(value: str) -> None:
    try:
        expanded = expand(value, a="1", b="${a}")
    except ConfigError:
        return
    assert "$" in value or expanded == value


@given(st.text(max_size=30))
def test_doubling_every_dollar_sign_keeps_text_as_it_is(value: str) -> None:
    assert expand(value.replace("$", "$$")) == value
