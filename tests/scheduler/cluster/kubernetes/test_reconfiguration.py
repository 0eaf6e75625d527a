"""What becomes of a configuration that is offered to a scheduler that runs; test_reloading.py has files and signals."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from podtrail_scheduler.cluster.kubernetes.assembly import SchedulerPlan
from podtrail_scheduler.cluster.kubernetes.reconfiguration import Offered, Reconfiguration
from podtrail_scheduler.configuration.errors import ConfigurationError, ConfigurationProblem
from podtrail_scheduler.configuration.expansion import resolve
from podtrail_scheduler.configuration.features import FeatureGates
from podtrail_scheduler.configuration.load import read
from podtrail_scheduler.plugins.registry import available, extension_points

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def plan(text: str = "") -> SchedulerPlan:
    configuration, source = read(HEAD + text, "scheduler.yaml", FeatureGates())
    makers = available()
    profiles = resolve(configuration, extension_points(makers), FeatureGates(), source)
    return SchedulerPlan(configuration, profiles, makers, FeatureGates())


class Running:
    """Takes plans up, unless a plugin refuses."""

    def __init__(self, refuses: str = "") -> None:
        self.taken: list[SchedulerPlan] = []
        self.refuses = refuses

    def __call__(self, offered: SchedulerPlan) -> None:
        if self.refuses:
            raise ValueError(self.refuses)
        self.taken.append(offered)


def results(reconfiguration: Reconfiguration) -> dict[str, float]:
    return {labels["result"]: value for _, labels, value in reconfiguration.samples()}


def test_each_that_is_another_is_taken_up_in_turn() -> None:
    offers = [plan("percentageOfNodesToScore: 20\n"), plan("# the same\npercentageOfNodesToScore: 20\n"), plan()]
    running = Running()
    reconfiguration = Reconfiguration(plan(), running)

    async def offered() -> AsyncIterator[Offered]:
        for each in offers:
            yield each

    asyncio.run(reconfiguration.follow(offered()))
    assert running.taken == [offers[0], offers[2]]
    assert results(reconfiguration) == {"success": 2, "unchanged": 1, "refused": 0}


@pytest.mark.parametrize(
    ("offered", "refuses", "told"),
    [
        (plan("percentageOfNodesToScore: 20\n"), "plugin 'No' can't be made", "plugin 'No' can't be made"),
        (plan("podMaxBackoffSeconds: 20\n"), "", "can't change podMaxBackoffSeconds: restart it"),
        (plan("profiles: [{schedulerName: b}]\n"), "", "can't change profiles[*].schedulerName: restart it"),
        (ConfigurationError("x", [ConfigurationProblem("no such field", line=3, column=1)], "f"), "", "f:3:1: no such"),
    ],
    ids=["plugin", "field", "profile", "file"],
)
def test_one_that_cannot_be_is_refused_and_the_one_in_force_is_still_compared_with(
    offered: Offered, refuses: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    running = Running(refuses)
    reconfiguration = Reconfiguration(plan(), running)
    reconfiguration.consider(offered)
    assert told in caplog.text
    reconfiguration.consider(plan())
    assert running.taken == []
    assert results(reconfiguration) == {"success": 0, "unchanged": 1, "refused": 1}
