"""Plugins that come from elsewhere: the documentation's example, how they are found, and their own spans."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import get_tracer_provider
from podtrail_instrumentation import provider_around
from podtrail_scheduler.cluster.simulated.traced_simulation import CollectingSpanProcessor
from podtrail_scheduler.configuration.expansion import ExtensionPoints, ProfileConfiguration
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.plugins.registry import PluginNotFoundError, available, extension_points, make_profile
from podtrail_scheduler.runtime.profile import Enabled, Profile

from tests.scheduler.bench import ROOMY, Bench, Binder, pod

DOCUMENT = Path(__file__).parents[2] / "docs" / "scheduler-plugins.md"
KEY = "example.com/colour"


@pytest.fixture
def package() -> Iterator[str]:
    """The documentation's first example as an importable module."""
    [code, *_] = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    module = ModuleType("documented_plugin")
    exec(compile(code, str(DOCUMENT), "exec"), module.__dict__)
    sys.modules[module.__name__] = module
    yield module.__name__
    del sys.modules[module.__name__]


def profile_with(handle: Handle, package: str) -> Profile:
    makers = available({"Flavour": f"{package}:Flavour"})
    points = ExtensionPoints(
        queue_sort=("PrioritySort",), filter=("Flavour",), score=("Flavour",), bind=("DefaultBinder",)
    )
    configuration = ProfileConfiguration(
        "default-scheduler",
        0,
        ("PrioritySort", "Flavour", "DefaultBinder"),
        points,
        {"Flavour": 2},
        {"Flavour": {"annotation": KEY}},
    )
    return make_profile(handle, configuration, makers)


def test_the_documented_plugin_filters_scores_and_takes_its_args(package: str) -> None:
    nodes = [
        Node("red", {KEY: "red"}, ROOMY),
        Node("small", {KEY: "blue"}, {"cpu": 1000, "pods": 9}),
        Node("blue", {KEY: "blue"}, ROOMY),
    ]
    bench = Bench(nodes=nodes, profile=lambda handle: profile_with(handle, package))
    bench.attempt(pod("first", annotations={KEY: "blue"}))
    second = bench.attempt(pod("second", annotations={KEY: "blue"}))
    assert second.node in ("small", "blue")
    assert bench.attempt(pod("third", annotations={KEY: "blue"})).node == "blue"
    record = bench.attempt(pod("fourth", annotations={KEY: "green"}))
    assert record.message == f"0/3 nodes are available: 3 node(s) had another {KEY}."


def test_its_extension_points_are_those_it_has_methods_for(package: str) -> None:
    served = extension_points(available({"Flavour": f"{package}:Flavour"}))
    assert served["Flavour"] == {"filter", "score"}
    assert "pre_filter" in served["NodeResourcesFit"]


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        ("nowhere_at_all:Plugin", "plugin Mine: nowhere_at_all:Plugin: No module named 'nowhere_at_all'"),
        ("json:Plugin", "plugin Mine: json:Plugin: module 'json' has no attribute 'Plugin'"),
        ("json", "plugin Mine: 'json' is no module:Class"),
        (":Plugin", "plugin Mine: ':Plugin' is no module:Class"),
        ("json:__name__", "plugin Mine: json:__name__ is no class"),
        ("broken_plugin:Plugin", "plugin Mine: broken_plugin:Plugin: ZeroDivisionError: division by zero"),
    ],
)
def test_a_plugin_that_is_not_there_is_told_with_its_name(
    reference: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_plugin.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginNotFoundError) as refused:
        available({"Mine": reference})
    assert str(refused.value) == text


class Unmakeable:
    name = "Flavour"

    def __init__(self, handle: Handle, args: Any) -> None:
        raise LookupError("no such flavour")


class Nameless:
    def __init__(self, handle: Handle, args: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("maker", "text"),
    [
        (Unmakeable, "plugin 'Flavour' can't be made: LookupError: no such flavour"),
        (lambda: None, "plugin 'Flavour' can't be made: TypeError: .* takes 0 positional arguments but 2 were given"),
        (Nameless, "plugin 'Flavour' calls itself None"),
    ],
)
def test_a_plugin_that_can_not_be_made_is_told_with_its_profile(maker: Any, text: str) -> None:
    configuration = ProfileConfiguration("mine", 0, ("Flavour",), ExtensionPoints(), {}, {})
    with pytest.raises(ValueError, match=f"profile mine: {text}"):
        Bench(nodes=[], profile=lambda handle: make_profile(handle, configuration, {"Flavour": maker}))


class Asking:
    """Starts spans of its own, at a synchronous and at an asynchronous point."""

    name = "Asking"

    def __init__(self, provider: Any, handle: Handle) -> None:
        self._tracer = provider.get_tracer("theirs")
        self._handle = handle

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        with self._tracer.start_as_current_span("ask about node"):
            return None

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        with self._tracer.start_as_current_span("prepare"):
            await self._handle.clock.sleep(1_000_000)
        return None


def test_spans_that_a_plugin_starts_nest_under_its_own() -> None:
    collector = CollectingSpanProcessor()
    provider = provider_around(collector, Resource({}))

    def profile(handle: Handle) -> Profile:
        return Profile("default-scheduler", [Enabled(Asking(provider, handle)), Enabled(Binder())])

    bench = Bench(nodes=[Node("n1", allocatable=ROOMY)], provider=provider, profile=profile)
    bench.create(pod("a"))
    bench.create(pod("b"))
    bench.step_until(lambda: len(bench.records) == 2)
    spans = collector.drain(2**63)
    by_id = {span.context.span_id: span for span in spans}
    for name, point in (("ask about node", "filter"), ("prepare", "preBind")):
        nested = [span for span in spans if span.name == name]
        assert len(nested) == 2
        for span in nested:
            assert span.parent is not None
            parent = by_id[span.parent.span_id]
            assert parent.name == "plugin: Asking"
            assert (parent.attributes or {})["scheduler.plugin.extension_point"] == point
            assert parent.context.trace_id == span.context.trace_id
    assert get_tracer_provider() is not provider
