"""Scores of nodes in one attempt, as a log at `-v=10` tells them: all until it ends, then those of the best nodes."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from podtrail.otlp import Value

MOST_NODES: Final = 5
MOST_PLUGINS: Final = 16


class _Range(NamedTuple):
    """What is left of a plugin's scores when those of most nodes are let go."""

    nodes: int
    lowest: int
    highest: int


@dataclass(slots=True)
class NodeScores:
    """Totals of nodes, and what each plugin gave to them, times its weight."""

    totals: dict[str, int] = field(default_factory=dict)
    plugins: dict[str, dict[str, int]] = field(default_factory=dict)
    """By plugin and node."""
    extended: bool = False
    """Extenders scored, too. Their lines have no weights: what they gave is what the plugins' shares leave open."""
    _ranges: dict[str, _Range] = field(default_factory=dict)
    _nodes: int = 0
    _ties: int = 0

    def close(self, node: str) -> None:
        """Let go of all nodes but the best and the selected one."""
        self._nodes = len(self.totals)
        self._ties = list(self.totals.values()).count(max(self.totals.values(), default=0))
        best = sorted(self.totals.items(), key=lambda one: (-one[1], one[0]))
        self.totals = dict(best[:MOST_NODES]) | {name: total for name, total in best if name == node}
        for plugin, scores in self.plugins.items():
            self._ranges[plugin] = _Range(len(scores), min(scores.values()), max(scores.values()))
            kept = {*self.totals, node}
            self.plugins[plugin] = {name: score for name, score in scores.items() if name in kept}

    def of_phase(self, node: str) -> dict[str, Value]:
        """Return the attributes of the span `score`; the selected node stands first."""
        if not self.totals:
            return {}
        best = sorted(self.totals, key=lambda name: (name != node, -self.totals[name], name))[:MOST_NODES]
        told: dict[str, Value] = {
            "scheduler.nodes.evaluated": self._nodes,
            "scheduler.score.nodes": list(best),
            "scheduler.score.totals": [self.totals[name] for name in best],
            "scheduler.score.ties": self._ties,
        }
        if node in self.totals:
            told["scheduler.score.selected"] = self.totals[node]
            if len(best) > 1:
                told["scheduler.score.margin"] = self.totals[node] - self.totals[best[1]]
        return {**told, **self._shares(best)}

    def of_plugin(self, plugin: str, node: str) -> dict[str, Value]:
        """Return the attributes of a plugin's span."""
        span = self._ranges.get(plugin)
        if span is None:
            return {}
        told: dict[str, Value] = {
            "scheduler.nodes.evaluated": span.nodes,
            "scheduler.score.highest": span.highest,
            "scheduler.score.lowest": span.lowest,
        }
        if node in self.plugins[plugin]:
            told["scheduler.score.selected"] = self.plugins[plugin][node]
        return told

    def _shares(self, best: list[str]) -> dict[str, Value]:
        """Return who gave what to these nodes; plugins of which a line is missing are only counted."""
        whole = {
            f"scheduler.score.plugin.{plugin}": [scores[name] for name in best]
            for plugin, scores in self.plugins.items()
            if all(name in scores for name in best)
        }
        cut = len(self.plugins) - len(whole)
        if self.extended and not cut:
            given = [sum(row) for row in zip(*whole.values(), strict=True)] if whole else [0] * len(best)
            left = [self.totals[name] - sum_of for name, sum_of in zip(best, given, strict=True)]
            whole["scheduler.score.extenders"] = left
        rows = [row for row in whole.items() if any(row[1])]
        if len(rows) > MOST_PLUGINS:
            cut += len(rows) - MOST_PLUGINS
            rows = sorted(rows, key=lambda row: min(row[1]) - max(row[1]))[:MOST_PLUGINS]
        told: dict[str, Value] = {key: list(row) for key, row in rows}
        if cut:
            told["scheduler.score.plugins_cut"] = cut
        return told
