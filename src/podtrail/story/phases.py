"""Where the time of one attempt went: its phases, and in each the plugin that took longest."""

from dataclasses import dataclass, field
from typing import NamedTuple

from podtrail.otlp import SpanView
from podtrail.story.pace import plugin_time
from podtrail.story.plugin_times import PluginCall
from podtrail.story.values import text

POINTS = frozenset(
    {
        "preFilter",
        "filter",
        "postFilter",
        "preScore",
        "score",
        "reserve",
        "permit",
        "waitOnPermit",
        "preBind",
        "bind",
        "postBind",
    }
)
"""The extension points of the Scheduling Framework that are phases of an attempt, and the wait for a permit."""
_MOST_PHASES = 3
_MOST_PLUGINS = 64


OF_BINDING = frozenset({"waitOnPermit", "preBind", "bind", "postBind"})
"""Those of the binding cycle."""


class PhaseSums(NamedTuple):
    """How long the phases of each cycle took together, in nanoseconds."""

    scheduling: int = 0
    binding: int = 0


class Phase(NamedTuple):
    """One phase of an attempt. Lengths of time are nanoseconds."""

    name: str
    took: int
    plugins: int
    """How many plugins were asked in it."""
    plugin: str
    """The one that took longest; "" where no span of a plugin tells."""
    plugin_took: int


def _has_own_time(span: SpanView) -> bool:
    """Return False for a span of a rebuilt attempt that has the time of its phase or cycle for want of its own."""
    inferred = span.attributes.get("podtrail.inferred")
    return not any("nothing tells" in text(each) for each in inferred) if isinstance(inferred, list) else True


@dataclass(slots=True)
class PhaseTimes:
    """Collects what spans tell of phases, in any order. Bounded in phases and in plugins of each."""

    phases: dict[str, int] = field(default_factory=dict)
    plugins: dict[str, dict[str, int]] = field(default_factory=dict)
    """By phase, what each plugin took. A plugin told of twice counts once."""
    news: list[PluginCall] = field(default_factory=list, compare=False)
    """Calls told of for the first time, until somebody takes them."""

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        return sum(200 + 150 * len(asked) for asked in self.plugins.values())

    def phase(self, span: SpanView) -> None:
        """Take in the span of a phase."""
        if span.name in POINTS and _has_own_time(span):
            self.phases[span.name] = max(self.phases.get(span.name, 0), span.duration or 0)

    def plugin(self, span: SpanView, plugin: str) -> None:
        """Take in the span of a plugin."""
        point = text(span.attributes.get("scheduler.plugin.extension_point"))
        if point not in POINTS or span.attributes.get("scheduler.plugin.status") == "Skip":
            return
        asked = self.plugins.setdefault(point, {})
        if plugin in asked or len(asked) < _MOST_PLUGINS:
            timed = _has_own_time(span)
            took = plugin_time(span) if timed else 0
            if plugin not in asked and timed:
                self.news.append(PluginCall(point, plugin, span.start, took))
            asked[plugin] = max(asked.get(plugin, 0), took)

    def take_news(self) -> list[PluginCall]:
        """Return the calls that were told of since it was last asked."""
        news, self.news = self.news, []
        return news

    def longest(self) -> tuple[Phase, ...]:
        """Return the phases that took longest, the longest first."""
        told = []
        for name in {**self.phases, **self.plugins}:
            asked = self.plugins.get(name, {})
            plugin, most = max(asked.items(), key=lambda item: item[1], default=("", 0))
            told.append(Phase(name, self.phases.get(name) or most, len(asked), plugin, most))
        return tuple(sorted(told, key=lambda phase: -phase.took)[:_MOST_PHASES])

    def sums(self) -> PhaseSums:
        """Return how long all phases of either cycle took together."""
        binding = sum(took for name, took in self.phases.items() if name in OF_BINDING)
        return PhaseSums(sum(self.phases.values()) - binding, binding)
