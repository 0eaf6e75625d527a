"""What the pages about the code say of it is so."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tools.docs.rooms import SOURCE_ROOTS

PAGES = ["docs/architecture.md", "docs/inside-the-scheduler.md", "CONTRIBUTING.md"]
ROOT = Path(__file__).parents[2]
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[a-z_.]+(?:/[a-z_0-9.]+)+/?")
_NAME = re.compile(r"([A-Z][a-z]\w*[A-Z]\w*|Driver|Judge|Cache|Caller|Releaser|Turns)(?:\.(\w+))?")
_OF_OTHERS = {"SchedulePod", "KubeSchedulerConfiguration", "ScheduleOne", "ResourceSpans", "TraceData"}
"""Names of Kubernetes and the Collector."""


_TWICE = {
    "Config": "what a user can set of a component or policy",
    "Event": "OTLP's, and Kubernetes'",
    "Status": "OTLP's, and the Scheduling Framework's",
    "Span": "what a policy in Python sees, and what a component of Kubernetes is traced with",
    "Plugin": "a scheduler plugin, and its line in a KubeSchedulerConfiguration",
    "Entry": "of a mapping in a configuration, and of a journal",
    "Position": "in a configuration, and in a journal",
    **dict.fromkeys(
        ("NodeAffinity", "NodeSelector", "NodeSelectorTerm", "LabelSelector", "PreferredSchedulingTerm"),
        "types of the API: as scheduling reads them, and as a KubeSchedulerConfiguration has them",
    ),
}
"""Names of classes that stand more than once, and why."""


@cache
def classes() -> Mapping[str, Sequence[str]]:
    """The classes of the tree, each with the texts of the modules that define it."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in SOURCE_ROOTS:
        for path in (ROOT / source).rglob("*.py"):
            text = path.read_text("utf-8")
            for name in re.findall(r"^ *class (\w+)", text, re.MULTILINE):
                found[name].append(text)
    return found


def members(name: str) -> Iterator[str]:
    """Yield what is defined in a class, and the attributes that it uses."""
    for text in classes().get(name, ()):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and node.name == name:
                yield from (getattr(each, "name", "") for each in node.body)
                yield from (each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute))


@pytest.mark.parametrize("page", PAGES)
def test_every_path_that_a_page_names_is_there(page: str) -> None:
    named = {code for code in _CODE.findall((ROOT / page).read_text("utf-8")) if _PATH.fullmatch(code)}
    made = {line.strip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines()}  # by `./dev run`, say
    own = [path for path in named if path.split("/")[0] in {each.name for each in ROOT.iterdir()} - made]
    assert own
    assert [path for path in own if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES[:2])
def test_every_class_and_method_that_a_page_names_is_there(page: str) -> None:
    codes = _CODE.findall((ROOT / page).read_text("utf-8"))
    named = [found.groups() for found in map(_NAME.fullmatch, codes) if found and found[1] not in _OF_OTHERS]
    assert len(named) >= 10
    assert [(name, member) for name, member in named if member is not None and member not in members(name)] == []
    assert [name for name, _ in named if name not in classes()] == []


def test_the_scheduler_page_lists_its_rooms_in_the_order_of_their_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = [each["layers"] for each in contracts if each["id"] == "scheduler-layers"]
    floor = {room: at for at, layer in enumerate(reversed(layers)) for room in layer.split(" | ")}
    page = (ROOT / "docs/inside-the-scheduler.md").read_text("utf-8")
    rows = re.findall(r"^\| (`[a-z_/`, ]+`) \|", page, re.MULTILINE)
    listed = [room for row in rows for room in re.findall(r"`(\w+)/`", row)]
    assert sorted(listed) == sorted(floor)
    assert listed == sorted(listed, key=floor.__getitem__)


def test_a_class_name_means_one_thing() -> None:
    assert {name for name, texts in classes().items() if len(texts) > 1 and name[0] != "_"} == set(_TWICE)
