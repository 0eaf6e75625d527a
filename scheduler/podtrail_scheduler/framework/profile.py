"""A profile: the plugins of one scheduler name, sorted by the extension points they serve."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from podtrail_scheduler.objects import Pod
from podtrail_scheduler.queueing.events import hints_of

from .extension_points import (
    BindPlugin,
    EventsPlugin,
    FilterPlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from .status import Status

Kind = TypeVar("Kind")


class Enabled(NamedTuple):
    """A plugin and what its scores count."""

    plugin: Plugin
    weight: int = 1


class Profile:
    """Which plugins run at which point, in the order in which they were enabled."""

    def __init__(self, name: str, enabled: Sequence[Enabled]) -> None:
        """Raises ValueError unless names differ, exactly one plugin sorts the queue and at least one binds."""
        plugins = [each.plugin for each in enabled]
        sorters = _serving(plugins, QueueSortPlugin)  # type: ignore[type-abstract]
        if len(sorters) != 1:
            raise ValueError(f"profile {name} needs exactly one plugin that sorts the queue, it has {len(sorters)}")
        if len({plugin.name for plugin in plugins}) < len(plugins):
            raise ValueError(f"profile {name} has two plugins of one name")
        self.name = name
        self.queue_sort = sorters[0]
        self.pre_enqueue = _serving(plugins, PreEnqueuePlugin)  # type: ignore[type-abstract]
        self.pre_filter = _serving(plugins, PreFilterPlugin)  # type: ignore[type-abstract]
        self.filter = _serving(plugins, FilterPlugin)  # type: ignore[type-abstract]
        self.post_filter = _serving(plugins, PostFilterPlugin)  # type: ignore[type-abstract]
        self.pre_score = _serving(plugins, PreScorePlugin)  # type: ignore[type-abstract]
        self.score = _serving(plugins, ScorePlugin)  # type: ignore[type-abstract]
        normalizers = _serving(plugins, NormalizeScorePlugin)  # type: ignore[type-abstract]
        self.normalizers = {plugin.name: plugin for plugin in normalizers}
        self.reserve = _serving(plugins, ReservePlugin)  # type: ignore[type-abstract]
        self.permit = _serving(plugins, PermitPlugin)  # type: ignore[type-abstract]
        self.pre_bind = _serving(plugins, PreBindPlugin)  # type: ignore[type-abstract]
        self.bind = _serving(plugins, BindPlugin)  # type: ignore[type-abstract]
        self.post_bind = _serving(plugins, PostBindPlugin)  # type: ignore[type-abstract]
        self.names = tuple(plugin.name for plugin in plugins)
        self.weights = {each.plugin.name: each.weight for each in enabled}
        hinting = _serving(plugins, EventsPlugin)  # type: ignore[type-abstract]
        self.hints = hints_of(hinting, [plugin.name for plugin in plugins if not isinstance(plugin, EventsPlugin)])
        if not self.bind:
            raise ValueError(f"profile {name} needs a plugin that binds")

    def held_back_by(self, pod: Pod) -> tuple[str, Status] | None:
        """The PreEnqueue plugin that keeps `pod` out of the active queue and its status, None when there is none."""
        for plugin in self.pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if status is not None:
                return plugin.name, status
        return None


def _serving(plugins: Sequence[Plugin], kind: type[Kind]) -> list[Kind]:
    return [plugin for plugin in plugins if isinstance(plugin, kind)]
