"""Several `--config`, merged, and `--set`."""

from pathlib import Path

import pytest

from podtrail.config import ConfigError, Document
from podtrail.config.nodes import place_of


def test_maps_merge_and_lists_are_replaced(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("a: {x: 1, y: [1, 2]}\nb: 1\n")
    two.write_text("a: {y: [3], z: 4}\n")

    document = Document.load([str(one), f"file:{two}"])

    assert document.plain() == {"a": {"x": 1, "y": [3], "z": 4}, "b": 1}


def test_every_value_says_which_source_it_comes_from(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text("a: {x: 1}\n")
    two.write_text("\na: {y: 2}\n")

    document = Document.load([str(one), str(two)], ["a.z=3"])

    assert [str(place_of(document.root, ("a", key))) for key in "xyz"] == [f"{one}:1:5", f"{two}:2:5", "--set=a.z=3"]


def test_yaml_and_the_environment_are_sources_too() -> None:
    document = Document.load(["env:BASE", "yaml:a::b::c: 2"], environ={"BASE": "a: {b: {c: 1, d: 1}}"})

    assert document.plain() == {"a": {"b": {"c": 2, "d": 1}}}


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("a.b=2s", {"a": {"b": "2s"}}),
        ("a::b=2", {"a": {"b": 2}}),
        ("a::b.c/d=[x, y]", {"a": {"b.c/d": ["x", "y"]}}),
        ("a.b={c: true}", {"a": {"b": {"c": True}}}),
        ("a.b=", {"a": {"b": None}}),
        ("a.b=c=d", {"a": {"b": "c=d"}}),
    ],
)
def test_set_is_laid_over_everything(assignment: str, expected: object) -> None:
    assert Document.load(["yaml:a: {b: 1}"], [assignment], {}).plain()["a"].keys() >= {"b"}
    assert Document.load([], [assignment], {}).plain() == expected


@pytest.mark.parametrize("assignment", ["a.b", "=1", "a..b=1", "a::=1"])
def test_set_without_key_and_value_is_refused(assignment: str) -> None:
    with pytest.raises(ConfigError, match=r"is not key=value\n  write for example --set=processors.batch.timeout=2s"):
        Document.load(["yaml:a: 1"], [assignment])


def test_the_problems_of_all_sources_are_in_one_report(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: 1\na: 2\n")

    with pytest.raises(ConfigError) as caught:
        Document.load([str(broken), str(tmp_path / "none.yaml"), "env:NONE", "https://x/y.yaml"], ["a"], {})

    assert [problem.headline for problem in caught.value.problems] == [
        f"{broken}:2:1: a: is given twice, first at {broken}:1:1",
        f"{tmp_path}/none.yaml: there is no such file",
        "env:NONE: the environment variable is not set",
        "https://x/y.yaml: is not read over the network",
        "--set=a: is not key=value",
    ]


def test_python_values_are_a_source() -> None:
    mapping = {"a": ({"b": 1.5}, None, True), "c": "${env:C}"}

    assert Document.from_mapping(mapping, environ={"C": "7"}).plain() == {"a": [{"b": 1.5}, None, True], "c": 7}


def test_python_values_that_yaml_does_not_have_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Document.from_mapping({"a": {1: 2}, "b": b"x"})

    assert [problem.headline for problem in caught.value.problems] == [
        "configuration: a: has the key 1, which is not text",
        "configuration: b: is a bytes, which YAML does not have",
    ]


@pytest.mark.parametrize(
    ("sources", "sets", "report"),
    [
        (["env:ODD"], [], "env:ODD: is not UTF-8"),
        (["yaml:a: \udcff"], [], "yaml:: is not UTF-8"),
        (["yaml:a: 1"], ["a=\udcff"], r"--set=a=\udcff: is not UTF-8"),
        (["yaml:a: ${env:ODD}"], [], "yaml::1:4: a: the environment variable ODD is not UTF-8"),
        ([""], [], "the path: is empty"),
    ],
)
def test_bytes_that_are_no_text_and_no_path_at_all_are_refused(
    sources: list[str], sets: list[str], report: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        Document.load(sources, sets, {"ODD": "x\udcff"})
    assert str(raised.value).startswith(report)
