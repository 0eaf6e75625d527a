"""The best nodes of an attempt with their totals and each plugin's share, read from the span `score`."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from podtrail.otlp import Value
from podtrail.story.values import number

_MOST_NODES: Final = 10
_MOST_PLUGINS: Final = 32
_LONGEST_NAME: Final = 256
_SHARE: Final = "scheduler.score.plugin."
EXTENDERS: Final = "extenders"
"""The name under which what all extenders gave stands among the plugins."""


class PluginShare(NamedTuple):
    """What one plugin gave to the nodes of a table, times its weight."""

    plugin: str
    points: tuple[int, ...]


class ScoreTable(NamedTuple):
    """The best nodes, the chosen one first where that is known."""

    nodes: tuple[str, ...]
    totals: tuple[int, ...]
    shares: tuple[PluginShare, ...]
    scored: int | None = None
    """How many nodes were scored."""
    ties: int | None = None
    """How many nodes had the highest total."""
    untold: int = 0
    """Plugins whose shares are not told."""

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        names = sum(100 + len(name) for name in (*self.nodes, *(share.plugin for share in self.shares)))
        return 300 + names + 40 * len(self.nodes) * (1 + len(self.shares))

    def ahead(self) -> list[tuple[str, int]]:
        """Return by how much each plugin preferred the first node to the second, the most decisive first."""
        apart = [(share.plugin, share.points[0] - share.points[1]) for share in self.shares if len(share.points) > 1]
        return sorted((one for one in apart if one[1]), key=lambda one: -one[1])


def read_scores(attributes: Mapping[str, Value]) -> ScoreTable | None:
    """Return what the attributes of a span `score` tell; None where they tell of no node or don't fit together."""
    nodes, totals = _names(attributes.get("scheduler.score.nodes")), _numbers(attributes.get("scheduler.score.totals"))
    if not nodes or len(nodes) != len(totals):
        return None
    shares: list[PluginShare] = []
    untold = number(attributes.get("scheduler.score.plugins_cut")) or 0
    for key, value in attributes.items():
        if key.startswith(_SHARE):
            plugin = key.removeprefix(_SHARE)
        elif key == f"scheduler.score.{EXTENDERS}":
            plugin = EXTENDERS
        else:
            continue
        points = _numbers(value)
        if len(points) == len(nodes) and len(shares) < _MOST_PLUGINS:
            shares.append(PluginShare(plugin[:_LONGEST_NAME], points[:_MOST_NODES]))
        else:
            untold += 1
    return ScoreTable(
        nodes[:_MOST_NODES],
        totals[:_MOST_NODES],
        tuple(sorted(shares, key=lambda share: -max(share.points))),
        scored=number(attributes.get("scheduler.nodes.evaluated")),
        ties=number(attributes.get("scheduler.score.ties")),
        untold=untold,
    )


def _names(value: Value) -> tuple[str, ...]:
    names = [name[:_LONGEST_NAME] for name in value if isinstance(name, str)] if isinstance(value, list) else []
    return tuple(names) if isinstance(value, list) and len(names) == len(value) else ()


def _numbers(value: Value) -> tuple[int, ...]:
    numbers = [each for one in value if (each := number(one)) is not None] if isinstance(value, list) else []
    return tuple(numbers) if isinstance(value, list) and len(numbers) == len(value) else ()
