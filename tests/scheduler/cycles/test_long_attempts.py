"""What the log says of attempts that took long: kube-scheduler's own block of utiltrace, and ours beside it."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from podtrail_instrumentation import provider_around
from podtrail_scheduler.cluster.simulated.traced_simulation import CollectingSpanProcessor
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, error, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import MILLISECOND, SECOND

from tests.scheduler.bench import ROOMY, Bench, pod

NODES = [Node(f"n{number}", allocatable=ROOMY) for number in range(3)]
CLOCK = r"\d\d:\d\d:\d\d\.\d{3}"
HEAD = rf'Trace\[\d+\]: "Scheduling" namespace:default,name:a \(\d\d-\w{{3}}-\d{{4}} {CLOCK}\) \(total time: (\d+)ms\):'

Spend = Callable[[int], None]


class SlowFilter:
    """Takes 150 ms for all nodes together, and says what it is told to."""

    name = "Slow"

    def __init__(self, answer: Status | None = None) -> None:
        self.spend: Spend = lambda _: None
        self.answer = answer

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        self.spend(150 * MILLISECOND // len(NODES))
        return self.answer


class SlowScore(SlowFilter):
    """The same, at two points."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        self.spend(150 * MILLISECOND // len(NODES))
        return 1


def logged(plugin: Any, *, verbosity: int = 2, traced: bool = False, moments: list[int] | None = None) -> list[str]:
    """What is logged of an attempt with that plugin, and into `moments` when it was."""
    texts: list[str] = []

    def log(text: str) -> None:
        texts.append(text)
        if moments is not None:
            moments.append(bench.timeline.now())

    logger = logging.getLogger(f"test_long_attempts.{verbosity}")
    logger.setLevel(logging.INFO - verbosity)
    provider = provider_around(CollectingSpanProcessor(), Resource({})) if traced else None
    bench = Bench(plugin, nodes=NODES, provider=provider, log=log, logger=logger, bind_takes=5 * SECOND)
    plugin.spend = bench.timeline.spend
    bench.attempt(pod())
    return texts


@pytest.mark.parametrize("traced", [False, True])
def test_a_search_of_100_ms_is_logged_as_kube_scheduler_logs_it(traced: bool) -> None:
    text = logged(SlowScore(), traced=traced)[0]
    head, predicates, prioritizing, last = text.splitlines()
    assert (found := re.fullmatch(HEAD, head))
    assert int(found[1]) >= 300
    assert re.fullmatch(rf'Trace\[\d+\]: ---"Computing predicates done" 15\dms \({CLOCK}\)', predicates)
    assert re.fullmatch(rf'Trace\[\d+\]: ---"Prioritizing done" 15\dms \({CLOCK}\)', prioritizing)
    assert re.fullmatch(r"Trace\[\d+\]: \[(3\d\d(\.\d+)?ms)\] \[\1\] END", last)


def test_it_is_logged_when_the_node_is_found_and_ours_when_the_pod_is_bound() -> None:
    moments: list[int] = []
    stock, ours = logged(SlowFilter(), moments=moments)
    assert '"Scheduling" ' in stock
    assert '"SchedulePod" ' in ours
    assert moments[1] - moments[0] >= 5 * SECOND


def test_below_verbosity_2_only_ours_is_logged() -> None:
    [ours] = logged(SlowFilter(), verbosity=1)
    assert '"SchedulePod" ' in ours


def test_a_pod_that_fits_nowhere_has_its_predicates_computed_and_nothing_prioritized() -> None:
    text = logged(SlowFilter(unschedulable("no")))[0]
    assert re.findall('---"([^"]*)"', text) == ["Computing predicates done"]


def test_a_search_that_fails_has_no_step() -> None:
    text = logged(SlowFilter(error("broken")))[0]
    assert re.match(HEAD, text)
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize("traced", [False, True])
def test_a_slow_plugin_is_listed_once_at_each_point(traced: bool) -> None:
    ours = logged(SlowScore(), traced=traced)[-1]
    for point in ("filter", "score"):
        lines = [line for line in ours.splitlines() if f"extension_point:{point} " in line]
        assert len(lines) == 1, ours
        assert '"plugin: Slow" ' in lines[0]
