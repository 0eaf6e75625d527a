"""A profile: the plugins of one scheduler name, sorted by the extension points they serve."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from podtrail_scheduler.framework.events import hints_of
from podtrail_scheduler.framework.extension_points import (
    BindPlugin,
    ColumnFilterPlugin,
    ColumnScorePlugin,
    EventsPlugin,
    FilterPlugin,
    LocalFilterPlugin,
    LocalScorePlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreBindPreFlight,
    PreEnqueuePlugin,
    PreFilterExtensions,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    is_in_tree,
)

Kind = TypeVar("Kind")


class Enabled(NamedTuple):
    """A plugin and what its scores count."""

    plugin: Plugin
    weight: int = 1


class Profile:
    """Which plugins run at which point, in the order in which they were enabled there."""

    def __init__(
        self,
        name: str,
        enabled: Sequence[Enabled],
        points: Mapping[str, Sequence[str]] | None = None,
        percentage_of_nodes_to_score: int = 0,
    ) -> None:
        """`points` names the plugins of each extension point (`pre_bind`), in order; None: all that serve.

        `percentage_of_nodes_to_score` 0 is adaptive.

        Raises:
            ValueError: names don't differ, a named plugin does not serve its point, not exactly one sorts the queue, or
                none binds.
        """
        self.name = name
        self.percentage_of_nodes_to_score = percentage_of_nodes_to_score
        self._plugins = {each.plugin.name: each.plugin for each in enabled}
        if len(self._plugins) < len(enabled):
            raise ValueError(f"profile {name} has two plugins of one name")
        self._points = points
        sorters = self._at("queue_sort", QueueSortPlugin)  # type: ignore[type-abstract]
        if len(sorters) != 1:
            raise ValueError(f"profile {name} needs exactly one plugin that sorts the queue, it has {len(sorters)}")
        self.queue_sort = sorters[0]
        self.pre_enqueue = self._at("pre_enqueue", PreEnqueuePlugin)  # type: ignore[type-abstract]
        self.pre_filter = self._at("pre_filter", PreFilterPlugin)  # type: ignore[type-abstract]
        self.pre_filter_extensions = [each for each in self.pre_filter if isinstance(each, PreFilterExtensions)]
        self.filter = self._at("filter", FilterPlugin)  # type: ignore[type-abstract]
        self.post_filter = self._at("post_filter", PostFilterPlugin)  # type: ignore[type-abstract]
        self.pre_score = self._at("pre_score", PreScorePlugin)  # type: ignore[type-abstract]
        self.score = self._at("score", ScorePlugin)  # type: ignore[type-abstract]
        self.local_filters = {each.name for each in self.filter if isinstance(each, LocalFilterPlugin)}
        self.column_filters = {each.name: each for each in self.filter if isinstance(each, ColumnFilterPlugin)}
        self.local_scores = {each.name: each for each in self.score if isinstance(each, LocalScorePlugin)}
        self.column_scores = {each.name: each for each in self.score if isinstance(each, ColumnScorePlugin)}
        self.normalizers = {each.name: each for each in self.score if isinstance(each, NormalizeScorePlugin)}
        self.reserve = self._at("reserve", ReservePlugin)  # type: ignore[type-abstract]
        self.permit = self._at("permit", PermitPlugin)  # type: ignore[type-abstract]
        self.pre_bind = self._at("pre_bind", PreBindPlugin)  # type: ignore[type-abstract]
        self.pre_flights = {each.name: each for each in self.pre_bind if isinstance(each, PreBindPreFlight)}
        self.bind = self._at("bind", BindPlugin)  # type: ignore[type-abstract]
        self.post_bind = self._at("post_bind", PostBindPlugin)  # type: ignore[type-abstract]
        self.names = tuple(self._plugins)
        self.plugins = tuple(self._plugins.values())
        self.in_tree = frozenset(each.name for each in self.plugins if is_in_tree(each))
        """The names of those that come with the scheduler."""
        queueing = (EventsPlugin, PreEnqueuePlugin, QueueSortPlugin)
        others = [each for each in self.plugins if each.name not in self.in_tree]
        self.asked_by_queue = frozenset(each.name for each in others if isinstance(each, queueing))
        """The names of those of others that the queue asks, at whichever point."""
        self.weights = {each.plugin.name: each.weight for each in enabled}
        hinting = [each for each in self.plugins if isinstance(each, EventsPlugin)]
        self.hints = hints_of(hinting, [each.name for each in self.plugins if not isinstance(each, EventsPlugin)])
        if not self.bind:
            raise ValueError(f"profile {name} needs a plugin that binds")

    def _at(self, point: str, kind: type[Kind]) -> list[Kind]:
        if self._points is None:
            return [plugin for plugin in self._plugins.values() if isinstance(plugin, kind)]
        serving: list[Kind] = []
        for name in self._points.get(point, ()):
            plugin = self._plugins[name]
            if not isinstance(plugin, kind):
                raise ValueError(f"profile {self.name}: plugin {name!r} does not serve {point}")
            serving.append(plugin)
        return serving
