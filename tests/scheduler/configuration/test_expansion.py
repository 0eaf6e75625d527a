"""Which plugins run at which extension point, in which order, with which weight and args."""

from collections.abc import Mapping

import pytest
from podtrail_scheduler.configuration.args import NodeResourcesFitArgs
from podtrail_scheduler.configuration.expansion import ProfileConfiguration

from tests.scheduler.configuration.reading import Read

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def profile(reading: Read, plugins: str = "{}", more: str = "") -> ProfileConfiguration:
    reading(f"{HEAD}profiles:\n- plugins: {plugins}\n{more}")
    (made,) = reading.profiles
    assert isinstance(made, ProfileConfiguration)
    return made


def test_default_plugins_run_where_they_serve_in_their_order(reading: Read) -> None:
    points = profile(reading).points

    assert points.pre_enqueue == ("SchedulingGates", "DynamicResources", "DefaultPreemption")
    assert points.queue_sort == ("PrioritySort",)
    assert points.post_filter == ("DynamicResources", "DefaultPreemption")
    assert points.filter[:4] == ("NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity")
    assert points.filter[-1] == "NodeDeclaredFeatures"
    assert points.score == (
        *("TaintToleration", "NodeAffinity", "NodeResourcesFit", "VolumeBinding", "PodTopologySpread"),
        *("InterPodAffinity", "DynamicResources", "NodeResourcesBalancedAllocation", "ImageLocality"),
    )
    assert points.reserve == points.pre_bind == ("VolumeBinding", "DynamicResources")
    assert (points.permit, points.bind, points.post_bind) == ((), ("DefaultBinder",), ())


def test_weights_are_those_of_plugins_that_score(reading: Read) -> None:
    weights: Mapping[str, int] = profile(reading).weights

    heavier = {"TaintToleration": 3, "NodeAffinity": 2, "PodTopologySpread": 2, "InterPodAffinity": 2}
    lighter = ("NodeResourcesFit", "VolumeBinding", "NodeResourcesBalancedAllocation", "ImageLocality")
    assert weights == {**heavier, "DynamicResources": 2, **dict.fromkeys(lighter, 1)}


def test_plugins_named_for_a_point_run_first_there_with_the_weight_given_there(reading: Read) -> None:
    made = profile(reading, "{score: {enabled: [{name: ImageLocality, weight: 7}, {name: NodeAffinity}]}}")

    assert made.points.score[:3] == ("ImageLocality", "NodeAffinity", "TaintToleration")
    assert len(made.points.score) == 9
    assert (made.weights["ImageLocality"], made.weights["NodeAffinity"]) == (7, 1)
    assert made.points.filter[3] == "NodeAffinity"


def test_a_point_without_defaults_has_only_what_is_named_for_it(reading: Read) -> None:
    made = profile(reading, "{filter: {disabled: [{name: '*'}], enabled: [{name: NodePorts}]}}")

    assert made.points.filter == ("NodePorts",)
    assert made.points.pre_filter[0] == "NodeName"


def test_one_can_be_left_out_at_one_point(reading: Read) -> None:
    made = profile(reading, "{score: {disabled: [{name: NodeAffinity}]}}")

    assert "NodeAffinity" not in made.points.score
    assert "NodeAffinity" in made.points.filter


def test_one_enabled_everywhere_again_keeps_its_place_and_takes_the_weight(reading: Read) -> None:
    made = profile(reading, "{multiPoint: {enabled: [{name: NodeAffinity, weight: 5}]}}")

    assert made.points.filter[3] == "NodeAffinity"
    assert made.weights["NodeAffinity"] == 5


def test_one_not_among_the_defaults_of_a_point_comes_last(reading: Read) -> None:
    plugins = "{multiPoint: {disabled: [{name: NodeName}]}, filter: {enabled: [{name: NodeName}]}}"

    assert profile(reading, plugins).points.filter[-1] == "NodeName"


def test_a_profile_of_its_own_plugins_has_their_args_only(reading: Read) -> None:
    enabled = "[{name: PrioritySort}, {name: NodeResourcesFit}, {name: DefaultBinder}]"
    own = f"{{multiPoint: {{disabled: [{{name: '*'}}], enabled: {enabled}}}}}"
    made = profile(reading, own)

    assert made.plugins == ("PrioritySort", "NodeResourcesFit", "DefaultBinder")
    assert made.args == {"NodeResourcesFit": NodeResourcesFitArgs()}


def test_resources_that_only_an_extender_checks_are_ignored_by_the_plugin(reading: Read) -> None:
    extenders = (
        "extenders:\n- {urlPrefix: 'http://x', managedResources: "
        "[{name: example.com/a, ignoredByScheduler: true}, {name: example.com/b}]}\n"
    )
    args = profile(reading, "{}", extenders).args["NodeResourcesFit"]

    assert isinstance(args, NodeResourcesFitArgs)
    assert args.ignored_resources == ("example.com/a",)


@pytest.mark.parametrize(("own", "percentage"), [("", 40), ("percentageOfNodesToScore: 7", 7)])
def test_a_profile_may_score_its_own_percentage_of_nodes(reading: Read, own: str, percentage: int) -> None:
    reading(f"{HEAD}percentageOfNodesToScore: 40\nprofiles:\n- schedulerName: x\n  {own}\n")

    assert [made.percentage_of_nodes_to_score for made in reading.profiles] == [percentage]
