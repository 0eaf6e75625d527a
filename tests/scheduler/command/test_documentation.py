"""What docs/scheduler.md shows works as it says."""

import re
from pathlib import Path
from typing import Any

import pytest
from podtrail_scheduler.configuration.expansion import resolve
from podtrail_scheduler.configuration.features import parse_feature_gates
from podtrail_scheduler.configuration.load import check, read
from podtrail_scheduler.configuration.types import API_VERSION, KIND
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import Node
from podtrail_scheduler.plugins.registry import available, extension_points

DOCUMENT = (Path(__file__).parents[3] / "docs" / "scheduler.md").read_text("utf-8")
HEAD = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)


def plugin() -> Any:
    (code,) = blocks("python")
    names: dict[str, Any] = {}
    exec(compile(code, "docs/scheduler.md", "exec"), names)
    return names["EvenNames"]


def test_the_plugin_refuses_and_takes_nodes_and_its_args() -> None:
    even, zero = plugin()(None), plugin()(None, {"digits": "0"})

    assert even.filter(None, None, NodeInfo(Node("n2"))) is None
    assert even.filter(None, None, NodeInfo(Node("n3"))).message == "node(s) had an odd name"
    assert zero.filter(None, None, NodeInfo(Node("n2"))) is not None


@pytest.mark.parametrize("block", blocks("yaml"))
def test_the_configurations_are_taken(block: str) -> None:
    gates = parse_feature_gates(["SchedulerTracing=true"])
    text = block if "apiVersion" in block else HEAD + block
    makers = available() | {"EvenNames": plugin()}
    serves = {"DynamicResources": frozenset[str](), **extension_points(makers)}

    configuration, source = read(text, "docs/scheduler.md", gates)

    assert check(configuration, gates, source) == []
    assert [profile.scheduler_name for profile in resolve(configuration, serves, gates, source)] == ["podtrail"]
