"""The nodes in the order in which they are looked at, and which of them have changed since when."""

from collections.abc import Iterable, Sequence
from typing import Self

from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.objects import REGION, ZONE, Node


def zone_of(node: Node) -> tuple[str, str]:
    """Region and zone, empty where the node does not say."""
    return node.labels.get(REGION, ""), node.labels.get(ZONE, "")


class NodeList(tuple[NodeInfo, ...]):  # noqa: SLOT001, a tuple can't have slots with values
    """The nodes of a table in one of its layouts; `table` tells what has changed.

    Plugins are given it, so it can't be changed: what one of them did to it would reach the attempts of all Pods.
    """

    table: "NodeTable"

    @classmethod
    def of(cls, infos: Iterable[NodeInfo], table: "NodeTable") -> Self:
        """Return the nodes in this order."""
        nodes = cls(infos)
        nodes.table = table
        return nodes


class NodeTable:
    """One node of each zone after the other (kube-scheduler's node tree), each with a fixed index between layouts.

    `log` has the index of each node that changed, in the order of the changes: who has seen it up to a position need
    look only at what came behind. Its beginning is cut off from time to time; `base` counts what was.
    """

    def __init__(self) -> None:
        self.layout = 0
        """Changes when nodes come, go or move to another zone: indexes and positions from before mean nothing then."""
        self.base = 0
        self.log: list[int] = []
        self.index: dict[str, int] = {}
        self._zones: dict[tuple[str, str], dict[str, NodeInfo]] = {}
        self._zone_of: dict[str, tuple[str, str]] = {}
        self._infos = NodeList.of((), self)
        self._stale = False

    @property
    def infos(self) -> Sequence[NodeInfo]:
        """All nodes, by index."""
        if self._stale:
            self._lay_out()
        return self._infos

    @property
    def position(self) -> int:
        """The position behind the last change of `log`: who has seen all changes remembers it."""
        return self.base + len(self.log)

    def put(self, info: NodeInfo) -> None:
        """A node came, or the object of one changed."""
        zone = zone_of(info.node)
        before = self._zone_of.get(info.name)
        if before == zone:
            self.changed(info.name)
            return
        if before is not None:
            self._leave(before, info.name)
        self._zone_of[info.name] = zone
        self._zones.setdefault(zone, {})[info.name] = info
        self._stale = True

    def remove(self, name: str) -> None:
        """A node is gone."""
        self._leave(self._zone_of.pop(name), name)
        self._stale = True

    def changed(self, name: str) -> None:
        """The node or the Pods on it changed."""
        if self._stale:
            return
        self.log.append(self.index[name])
        if len(self.log) > 4 * len(self._infos) + 1024:
            half = len(self.log) // 2
            del self.log[:half]
            self.base += half

    def _leave(self, zone: tuple[str, str], name: str) -> None:
        nodes = self._zones[zone]
        del nodes[name]
        if not nodes:
            del self._zones[zone]

    def _lay_out(self) -> None:
        zones = [list(nodes.values()) for nodes in self._zones.values()]
        longest = max(map(len, zones), default=0)
        turns = (zone[turn] for turn in range(longest) for zone in zones if turn < len(zone))
        self._infos = NodeList.of(turns, self)
        self.index = {info.name: index for index, info in enumerate(self._infos)}
        self._stale = False
        self.layout += 1
        self.base, self.log = 0, []
