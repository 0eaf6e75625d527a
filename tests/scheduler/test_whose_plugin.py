"""Whether a plugin comes with the scheduler is what its own class says, and both kinds leave the same spans."""

from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from podtrail_instrumentation import provider_around
from podtrail_scheduler.cluster.simulated.traced_simulation import CollectingSpanProcessor
from podtrail_scheduler.framework.extension_points import is_in_tree
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import Node
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.plugins.node_unschedulable import NodeUnschedulable
from podtrail_scheduler.plugins.registry import default_profile
from podtrail_scheduler.runtime.profile import Enabled, Profile

from tests.scheduler.bench import ROOMY, Bench, Binder, pod

NODES = [
    Node("n1", allocatable=ROOMY),
    Node("n2", allocatable={"cpu": 1, "pods": 9}),
    Node("n3", allocatable=ROOMY, unschedulable=True),
]
TIMED = {"scheduler.duration_ns", "scheduler.queue_wait_ms"}


class Fit(NodeResourcesFit):
    """NodeResourcesFit in somebody else's hands."""


class Unschedulable(NodeUnschedulable):
    """NodeUnschedulable in somebody else's hands."""


def test_every_default_plugin_comes_with_the_scheduler() -> None:
    made = default_profile(Bench(nodes=[]).handle)
    assert made.in_tree == set(made.names)


def test_what_inherits_from_a_plugin_of_ours_is_somebody_elses() -> None:
    handle = Bench(nodes=[]).handle
    assert is_in_tree(NodeResourcesFit(handle))
    assert not is_in_tree(Fit(handle))


def spans_of(*kinds: Any, number: int) -> list[Any]:
    """Name, attributes and events of the spans of an attempt with plugins of these classes, without what time says."""
    collector = CollectingSpanProcessor()

    def profile(handle: Handle) -> Profile:
        made = [Enabled(kind(handle)) for kind in kinds]
        return Profile("default-scheduler", [*made, Enabled(Binder())])

    bench = Bench(nodes=NODES[:number], provider=provider_around(collector, Resource({})), profile=profile)
    bench.attempt(pod("a"))
    told = [
        (
            span.name,
            {key: value for key, value in (span.attributes or {}).items() if key not in TIMED},
            [(event.name, dict(event.attributes or {})) for event in span.events],
        )
        for span in collector.drain(2**63)
        if span.name.startswith("plugin: ")
    ]
    return sorted(told, key=str)


@pytest.mark.parametrize("number", [1, 2, 3], ids=["one fits", "one is full", "one is cordoned"])
def test_a_plugin_of_others_leaves_the_spans_that_it_would_leave_as_one_of_ours(number: int) -> None:
    ours = spans_of(NodeUnschedulable, NodeResourcesFit, number=number)
    assert len(ours) >= 3
    assert spans_of(Unschedulable, Fit, number=number) == ours
