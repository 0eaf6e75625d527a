"""Why a node won, told on the span `score`: the best nodes, their sums, and what each plugin gave them."""

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter

from podtrail_instrumentation import Span

from podtrail_scheduler.framework.node_info import NodeInfo

MOST_NODES = 5
MOST_PLUGINS = 16
_LONGEST_NAME = 253
Told = dict[str, int | Sequence[str] | Sequence[int]]


class ScoreShares:
    """What was given to the nodes of one sampled attempt, until its winner is drawn.

    Scores are kept as they are: they are weighted for the few nodes that are told.
    """

    __slots__ = ("_shares", "over", "span")

    def __init__(self, span: Span) -> None:
        self.span = span
        """`score`, which stays open so long."""
        self.over = 0
        """When the last plugin had answered, unix nanoseconds: the end of the phase."""
        self._shares: list[tuple[str, int, Sequence[int]]] = []

    def plugin(self, name: str, weight: int, scores: Sequence[int], highest: int) -> None:
        """Notes the normalized scores of a plugin; who gave nothing to anybody is not told of."""
        if highest:
            self._shares.append((_key(name), weight, scores))

    def extenders(self, scores: Sequence[int]) -> None:
        """Notes what extenders added, weighted."""
        self._shares.append(("scheduler.score.extenders", 1, scores))

    def attributes(self, nodes: Sequence[NodeInfo], sums: Sequence[int], base: int, winner: int, ties: int) -> Told:
        """The attributes of the span: the winner first, then the best of the others, and their shares beside them.

        `sums` are above `base`, and empty where all nodes have the same; `ties` nodes have the highest.
        """
        best = [winner, *[place for place in _best(sums, winner, ties) if place != winner][: MOST_NODES - 1]]
        pick = itemgetter(*best)
        totals = [base + each for each in pick(sums)] if sums else [base] * len(best)
        told: Told = {
            "scheduler.nodes.evaluated": len(nodes),
            "scheduler.score.nodes": [nodes[place].name for place in best],
            "scheduler.score.totals": totals,
            "scheduler.score.selected": totals[0],
            "scheduler.score.margin": totals[0] - totals[1],
            "scheduler.score.ties": ties,
        }
        rows = [
            (key, [weight * each for each in pick(scores)] if weight != 1 else pick(scores))
            for key, weight, scores in self._shares
        ]
        rows = [row for row in rows if any(row[1])]
        if len(rows) > MOST_PLUGINS:
            told["scheduler.score.plugins_cut"] = len(rows) - MOST_PLUGINS
            rows = sorted(rows, key=lambda row: min(row[1]) - max(row[1]))[:MOST_PLUGINS]
        told.update(rows)
        return told


def _best(sums: Sequence[int], winner: int, ties: int) -> list[int]:
    """The places of the highest sums; of equals the first."""
    if not sums:
        return list(range(min(ties, MOST_NODES)))
    places: list[int] = []
    # Mostly the winner has equals enough, and the other sums need no looking at.
    for value in (sums[winner],) if ties >= MOST_NODES else sorted(set(sums), reverse=True)[:MOST_NODES]:
        place = -1
        while len(places) < MOST_NODES:
            try:
                place = sums.index(value, place + 1)
            except ValueError:
                break
            places.append(place)
    return places


@lru_cache(maxsize=1024)
def _key(plugin: str) -> str:
    return f"scheduler.score.plugin.{plugin[:_LONGEST_NAME]}"
