"""Who hears of which event."""

import pytest
from podtrail_scheduler.framework.events import ASSIGNED_POD_ADD, NODE_ADD, TIMEOUT, Action, ClusterEvent, Resource

ANY_UPDATE = ClusterEvent(Resource.NODE, Action.UPDATE)
TAINT = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT)


@pytest.mark.parametrize(
    ("registered", "happened", "heard"),
    [
        (ANY_UPDATE, TAINT, True),
        (TAINT, ANY_UPDATE, False),
        (ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT), TAINT, True),
        (ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL), TAINT, False),
        (ClusterEvent(Resource.POD, Action.ADD), ASSIGNED_POD_ADD, True),
        (ASSIGNED_POD_ADD, ClusterEvent(Resource.UNSCHEDULED_POD, Action.ADD), False),
        (ClusterEvent(Resource.WILDCARD, Action.ALL), NODE_ADD, True),
        (ClusterEvent(Resource.WILDCARD, Action.ADD), NODE_ADD, True),
        (NODE_ADD, TIMEOUT, False),
    ],
)
def test_who_registered_hears_what_is_as_specific_or_more(
    registered: ClusterEvent, happened: ClusterEvent, heard: bool
) -> None:
    assert registered.covers(happened) is heard


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (NODE_ADD, "NodeAdd"),
        (ANY_UPDATE, "NodeUpdate"),
        (ClusterEvent(Resource.CSI_NODE, Action.ALL), "storage.k8s.io/CSINodeAll"),
        (TIMEOUT, "UnschedulableTimeout"),
    ],
)
def test_labels_are_those_of_kube_scheduler(event: ClusterEvent, label: str) -> None:
    assert event.label == label
