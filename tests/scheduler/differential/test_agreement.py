"""We decide as kube-scheduler v1.37.1 did when it was asked."""

from pathlib import Path

import pytest

from . import answers
from .agreement import KNOWN_DIFFERENCES, comparisons, count
from .families import FAMILIES
from .generate import cases, of_family

TOLD = (Path(__file__).parents[3] / "docs" / "agreement.md").read_text("utf-8")


@pytest.mark.parametrize("family", FAMILIES)
def test_decides_as_kube_scheduler_did(family: str) -> None:
    asked = of_family(family)
    found = list(comparisons(asked, answers.read()))
    differing = {each.place: each for each in found if not each.alike}
    unknown = [each for place, each in differing.items() if place not in KNOWN_DIFFERENCES]
    no_more = [place for place in KNOWN_DIFFERENCES if place.startswith(f"{family}/") and place not in differing]

    assert found
    assert not unknown, "\n".join(f"{each.place}: {each.theirs} by kube-scheduler, {each.ours}" for each in unknown)
    assert not no_more, "these known differences are gone"
    assert count(family, asked, found).row in TOLD.splitlines(), "docs/agreement.md has other figures"


def test_the_recorded_answers_are_to_the_cases_as_they_are_generated() -> None:
    assert {name: each.digest for name, each in answers.read().items()} == {case.name: case.digest for case in cases()}


def test_every_default_plugin_decides_alone_in_a_family_of_its_own() -> None:
    plugins = {
        *("SchedulingGates", "PrioritySort", "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity"),
        *("NodePorts", "NodeResourcesFit", "VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
        *("PodTopologySpread", "InterPodAffinity", "DynamicResources", "DefaultPreemption"),
        *("NodeResourcesBalancedAllocation", "ImageLocality"),
    }

    assert plugins <= FAMILIES.keys()
