"""Plugins of others in a simulation: what they really take is added to simulated time, where they hold it up."""

import json
import sys
from collections.abc import Callable, Iterator
from itertools import count
from types import ModuleType
from typing import Any

import pytest
from podtrail_scheduler import Simulation, TracedSimulation, Workload
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import read
from podtrail_scheduler.framework.status import Status, unschedulable
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.registry import available
from podtrail_scheduler.plugins.selection import Selection, select

MILLISECOND = 1_000_000
WORKLOAD = Workload.model_validate(
    {
        "length": "20s",
        "nodes": [{"name": "node", "count": 20}],
        "pods": [{"name": "web"}, {"name": "held"}],
        "faults": {},
    }
)


class Hold:
    """Gates some Pods, takes a moment in the scheduling cycle and one in the binding cycle, and awaits the clock."""

    name = "Hold"

    def __init__(self, handle: Any, args: object) -> None:
        self._clock = handle.clock

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("held") if pod.name.startswith("held") else None

    def filter(self, state: object, pod: Pod, node: object) -> None:
        """Let every node pass."""

    async def pre_bind(self, state: object, pod: Pod, node: str) -> None:
        await self._clock.sleep(1000 * MILLISECOND)

    def post_bind(self, state: object, pod: Pod, node: str) -> None:
        """Do nothing."""


@pytest.fixture
def selection() -> Iterator[Selection]:
    """The default profile with the plugin above."""
    module = ModuleType("held_plugins")
    vars(module)["Hold"] = Hold
    sys.modules[module.__name__] = module
    features = FeatureGates()
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Hold"}]}}}],
    }
    configuration, source = read(json.dumps(document), "", features)
    yield select(configuration, source, features, lambda: available({"Hold": "held_plugins:Hold"}), print)
    del sys.modules[module.__name__]


def stepping(step: int) -> Callable[[], int]:
    """Return a stopwatch by which everything takes `step` nanoseconds."""
    times = count(0, step)
    return lambda: next(times)


def run(selection: Selection, step: int | None) -> tuple[list[int], set[str], int]:
    """Return how long successful attempts took, which queues Pods are left in, and how many were bound."""
    simulation = Simulation(WORKLOAD, selection=selection, stopwatch=None if step is None else stepping(step))
    took = [moment.attempt.ended - moment.attempt.started for moment in simulation.run() if moment.attempt is not None]
    told = simulation.summary()
    return took, {pod.queue for pod in told.pending}, told.bound


def test_what_a_plugin_takes_makes_its_attempts_longer(selection: Selection) -> None:
    free, queues, bound = run(selection, None)
    slow, slow_queues, slow_bound = run(selection, MILLISECOND)

    assert (queues, bound) == (slow_queues, slow_bound) == ({"gated"}, len(free))
    # The filter, for all nodes at once, and post_bind: what pre_bind awaits passes in simulated time by itself.
    assert slow == [took + 2 * MILLISECOND for took in free]


def test_the_same_stopwatch_gives_the_same_attempts(selection: Selection) -> None:
    assert run(selection, MILLISECOND) == run(selection, MILLISECOND)


def test_plugins_that_come_with_the_scheduler_are_not_measured() -> None:
    def spans(stopwatch: Callable[[], int] | None) -> list[bytes]:
        run = TracedSimulation(Workload.model_validate({"length": "1m"}), stopwatch=stopwatch).run()
        return [request for delivery in run for request in delivery.requests]

    assert spans(stepping(MILLISECOND)) == spans(None)
