"""Objects that the watches showed, kept whole for extenders."""

import pytest
from podtrail_scheduler.extenders import ExtenderError, WatchedManifests
from podtrail_scheduler.objects import Pod

POD = {"metadata": {"name": "a", "namespace": "default", "uid": "u-a"}, "spec": {"restartPolicy": "Never"}}
NODE = {"metadata": {"name": "n1"}, "status": {"nodeInfo": {"architecture": "arm64"}}}


def test_are_given_as_they_came_last() -> None:
    manifests = WatchedManifests()
    manifests.put_pod({**POD, "spec": {}})
    manifests.put_pod(POD)
    manifests.put_node(NODE)

    assert (manifests.pod(Pod("a", uid="u-a")), manifests.node("n1")) == (POD, NODE)


def test_that_are_gone_are_an_error_that_names_them() -> None:
    manifests = WatchedManifests()
    manifests.put_pod(POD)
    manifests.remove_pod(POD)
    manifests.put_node(NODE)
    manifests.remove_node(NODE)

    with pytest.raises(ExtenderError, match=r'^pod "default/a" not found$'):
        manifests.pod(Pod("a", uid="u-a"))
    with pytest.raises(ExtenderError, match=r'^node "n1" not found$'):
        manifests.node("n1")
