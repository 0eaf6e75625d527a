from collections.abc import Callable

import pytest
from podtrail_scheduler.framework.events import ActionType, EventResource, Happening, Hint, Hinting
from podtrail_scheduler.objects import ApiObject, Pod

from tests.scheduler.plugins.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    """No nodes and no objects yet."""
    return Cluster()


@pytest.fixture
def hopeful() -> Callable[..., bool]:
    """Whether the plugin's hint for a resource queues the Pod after the change from `old` to `new`."""

    def ask(plugin: Hinting, pod: Pod, resource: EventResource, old: ApiObject | None, new: ApiObject | None) -> bool:
        action = ActionType.ADD if old is None else ActionType.DELETE if new is None else ActionType.UPDATE
        [registration] = [
            each
            for each in plugin.events_to_register()
            if each.event.resource is resource and each.event.action & action
        ]
        return registration.hint(pod, Happening(registration.event, old, new)) is Hint.QUEUE

    return ask
