"""Who hears of which event."""

import pytest
from podtrail_scheduler.framework.events import (
    ASSIGNED_POD_ADD,
    NODE_ADD,
    TIMEOUT,
    ActionType,
    ClusterEvent,
    EventResource,
)

ANY_UPDATE = ClusterEvent(EventResource.NODE, ActionType.UPDATE)
TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)


@pytest.mark.parametrize(
    ("registered", "happened", "heard"),
    [
        (ANY_UPDATE, TAINT, True),
        (TAINT, ANY_UPDATE, False),
        (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), TAINT, True),
        (ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), TAINT, False),
        (ClusterEvent(EventResource.POD, ActionType.ADD), ASSIGNED_POD_ADD, True),
        (ASSIGNED_POD_ADD, ClusterEvent(EventResource.UNSCHEDULED_POD, ActionType.ADD), False),
        (ClusterEvent(EventResource.WILDCARD, ActionType.ALL), NODE_ADD, True),
        (ClusterEvent(EventResource.WILDCARD, ActionType.ADD), NODE_ADD, True),
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
        (ClusterEvent(EventResource.CSI_NODE, ActionType.ALL), "storage.k8s.io/CSINodeAll"),
        (TIMEOUT, "UnschedulableTimeout"),
    ],
)
def test_labels_are_those_of_kube_scheduler(event: ClusterEvent, label: str) -> None:
    assert event.label == label
