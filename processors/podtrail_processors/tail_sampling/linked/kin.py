"""Who is linked with whom, by what their spans say, and for how long that is remembered."""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from podtrail.component import Counter
from podtrail_processors.pod_identity import POD_UID, Places, Sighting
from podtrail_processors.tail_sampling.linked.joins import PLACE, Joins, Key
from podtrail_processors.tail_sampling.linked.web import Node, Tie, Web

_MOST_PLACES: Final = 20_000
_MOST_NAMED: Final = 64
"""So many traces that know only a Pod's place learn its uid from one that tells both."""


class Kin:
    """The web of traces, kept and resting, with the Pods that they are about.

    A trace that tells only the place of a Pod has its uid as soon as another tells both; until then it is tied to those
    that tell the same place.
    """

    def __init__(self, max_hops: int, most_keys: int, forgotten: Counter, refused: Counter) -> None:
        self.web = Web(max_hops)
        self._places = Places(_MOST_PLACES)
        self._kept: deque[Node] = deque()
        self.kept_keys = 0
        """By how many keys kept traces are remembered."""
        self._most_keys = most_keys
        self._forgotten = forgotten
        self._refused = refused

    def node(self, trace_id: bytes) -> Node | None:
        """Return what is known of a trace."""
        return self.web.nodes.get(trace_id)

    def is_kept(self, node: Node) -> bool:
        """Say whether a trace is kept."""
        return node.hop < self.web.unkept

    def enter(self, node: Node, joins: Joins) -> Sequence[Tie]:
        """Take a trace in; return who is kept as it is now known, itself included."""
        before = self.web.nodes.get(node.trace_id)
        if before is not None:
            self._forget(before)
        self.web.add(node, joins.keys)
        return self._settle(node, joins) if joins.pods or joins.nameless else self._settled((node,))

    def extend(self, node: Node, joins: Joins) -> Sequence[Tie]:
        """Take in what late spans of a trace say; return who is kept as it is now known."""
        before = len(node.keys)
        self.web.tie(node, joins.keys)
        ties = self._settle(node, joins)
        if self.is_kept(node):
            self.kept_keys += len(node.keys) - before
        return ties

    def _settle(self, node: Node, joins: Joins) -> Sequence[Tie]:
        named: list[Node] = []
        for pod in joins.pods:
            if self._places.note(pod.place, pod.uid, pod.at):
                named += self._named(pod.place)
        if joins.nameless:
            node.nameless = [*node.nameless, *joins.nameless]
            self._name(node)
        return self._settled([*named, node])

    def _named(self, place: str) -> Sequence[Node]:
        """Give traces that know only this place the uid of the Pod, as far as it is known for their time."""
        return [node for node in self.web.sharing((PLACE, place), _MOST_NAMED) if self._name(node)]

    def _name(self, node: Node) -> bool:
        """Tie a trace to the Pods that it is about; return whether to any by its uid."""
        uids: list[Key] = []
        unknown: list[Sighting] = []
        known: list[Key] = []
        for one in node.nameless:
            uid = self._places.uid_at(one.place, one.at, created=one.action == "create")
            if uid:
                uids.append((POD_UID, uid))
                known.append((PLACE, one.place))
            else:
                unknown.append(one)
        node.nameless = unknown
        places: list[Key] = [(PLACE, one.place) for one in unknown]
        self.web.tie(node, [*uids, *places])
        for key in known:
            if key in node.keys and key not in places:
                self.web.untie(node, key)
        return bool(uids)

    def _settled(self, nodes: Iterable[Node]) -> Sequence[Tie]:
        reached: list[Tie] = []
        for node in nodes:
            if not self.is_kept(node):
                tie, spent = self.web.nearest(node)
                if spent:
                    self._refused.add(1)
                if tie is None:
                    continue
                self.web.keep(tie)
                reached.append(tie)
            more, spent = self.web.spread(node)
            if spent:
                self._refused.add(1)
            reached += more
        return reached

    def remember(self, node: Node) -> None:
        """Remember a kept trace until its time, or until there are too many."""
        self._kept.append(node)
        self.kept_keys += len(node.keys)
        while self.kept_keys > self._most_keys:
            self._forgotten.add(1)
            self._forget_oldest()

    def forget_until(self, now: int) -> None:
        """Forget kept traces whose time has come."""
        kept = self._kept
        while kept and kept[0].until <= now:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        node = self._kept.popleft()
        if self.web.nodes.get(node.trace_id) is node:
            self._forget(node)

    def _forget(self, node: Node) -> None:
        self.kept_keys -= len(node.keys)
        self.web.remove(node)

    def let_go(self, node: Node) -> None:
        """Forget a trace that rests."""
        self.web.remove(node)

    def take_over(self, other: "Kin") -> None:
        """Know of those that another knows; it knows of none afterwards."""
        self._places.take_over(other._places)
        unkept = other.web.unkept
        for node in list(other.web.nodes.values()):
            keys = list(node.keys)
            other.web.remove(node)
            node.keys = {}
            node.hop = self.web.unkept if node.hop == unkept else min(node.hop, self.web.max_hops)
            self.web.add(node, keys)
        kept, other._kept, other.kept_keys = other._kept, deque(), 0
        for node in kept:
            if self.web.nodes.get(node.trace_id) is node:
                self.remember(node)
