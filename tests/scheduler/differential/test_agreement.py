"""We decide as kube-scheduler v1.37.1 did when it was asked."""

import pytest

from . import answers
from .agreement import KNOWN_DIFFERENCES, comparisons, of_family
from .families import FAMILIES
from .generate import cases


@pytest.mark.parametrize("family", FAMILIES)
def test_decides_as_kube_scheduler_did(family: str) -> None:
    found = list(comparisons(of_family(family), answers.read()))
    differing = [each for each in found if not each.alike and each.place not in KNOWN_DIFFERENCES]

    assert found
    assert not differing, "\n".join(f"{each.place}: {each.theirs} by kube-scheduler, {each.ours}" for each in differing)


@pytest.mark.parametrize("place", KNOWN_DIFFERENCES)
def test_still_differs_where_a_difference_is_known(place: str) -> None:
    name = place.split()[0]
    found = comparisons([case for case in cases() if case.name == name], answers.read())

    assert place in {each.place for each in found if not each.alike}


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
