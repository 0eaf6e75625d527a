"""Whatever stands anywhere in a slice, class or claim, an attempt ends with an answer."""

from dataclasses import replace
from typing import Any

import pytest
from podtrail_scheduler.objects import Node, Pod, PodResourceClaim
from podtrail_scheduler.objects.decoding import decode
from podtrail_scheduler.plugins.dynamic_resources import DynamicResources
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit

from tests.scheduler.objects.test_decoding_hostile import ODD, OTHERS, altered, paths
from tests.scheduler.plugins.cluster import Cluster

KINDS = {each["kind"]: each for each in OTHERS if each["apiVersion"] == "resource.k8s.io/v1"}
NAMES = {
    "ResourceSlice": {"name": "s"},
    "DeviceClass": {"name": "c"},
    "ResourceClaim": {"name": "p", "namespace": "n", "uid": "u"},
}
OF_KIND = {kind: {**each, "metadata": NAMES[kind], "status": {}} for kind, each in KINDS.items()}


def without(whole: Any, *names: str) -> Any:
    """A copy without the fields of these names, wherever they are."""
    if isinstance(whole, dict):
        return {key: without(value, *names) for key, value in whole.items() if key not in names}
    return [without(each, *names) for each in whole] if isinstance(whole, list) else whole


PLAIN = without(OF_KIND["ResourceSlice"], "sharedCounters", "consumesCounters")
USUAL = {**OF_KIND, "ResourceSlice": PLAIN, "ResourceClaim": without(OF_KIND["ResourceClaim"], "firstAvailable")}
USUAL["ResourceClaim"]["spec"]["devices"]["requests"].pop()
TRIED = {"counters": OF_KIND["ResourceSlice"], **USUAL, "alternatives": OF_KIND["ResourceClaim"]}
FUTURE = {"tomorrow": {"values": [1]}, "and": ["so", {"on": 1}]}
POD = Pod("pod", "n", "1", requests={"example.com/gpu": 1}, resource_claims=(PodResourceClaim("c", "p"),))


def asked(slice_: Any, device_class: Any, claim: Any) -> None:
    """An attempt with these objects; what cannot be read is refused with a ValueError before."""
    cluster = Cluster()
    cluster.node("n").set_node(Node("n", allocatable={"pods": 1}))
    plugin, fit = DynamicResources(cluster.handle), NodeResourcesFit(cluster.handle)
    for each in (slice_, device_class, claim):
        try:
            cluster.listers.put(decode(each))
        except ValueError:
            continue
    for pod in (POD, Pod("other", "n", "2", requests={"example.com/gpu": 1})):
        fit.filter_key(pod)
        state, answer = cluster.begin(plugin, pod)
        if answer is None and plugin.filter(state, pod, cluster.nodes[0]) is None:
            plugin.score(state, pod, cluster.nodes[0])
            plugin.reserve(state, pod, "n")


def test_the_usual_ones_end_well() -> None:
    cluster = Cluster()
    cluster.node("n")
    plugin = DynamicResources(cluster.handle)
    cluster.have(*map(decode, USUAL.values()))
    state, answer = cluster.begin(plugin, POD)
    assert (answer, plugin.filter(state, replace(POD, requests={}), cluster.nodes[0])) == (None, None)


@pytest.mark.parametrize("name", TRIED)
def test_an_odd_or_unknown_field_anywhere_ends_in_an_answer(name: str) -> None:
    tried = TRIED[name]
    for path in paths(tried):
        if path[0] in ("metadata", "apiVersion", "kind"):
            continue
        for odd in (*ODD, FUTURE):
            objects = {**USUAL, tried["kind"]: altered(tried, path, odd)}
            asked(objects["ResourceSlice"], objects["DeviceClass"], objects["ResourceClaim"])
