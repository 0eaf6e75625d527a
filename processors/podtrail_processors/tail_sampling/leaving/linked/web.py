"""Traces tied to each other by what they share, and how far each is from one that a policy kept."""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

from podtrail.lru import fit
from podtrail.otlp import Group
from podtrail.pod_identity import Sighting
from podtrail_processors.tail_sampling.holding.held_trace import HeldTrace
from podtrail_processors.tail_sampling.judging.judge import Judgement
from podtrail_processors.tail_sampling.leaving.linked.joins import LINK, Joins, Key, is_of_one_pod, is_of_pod, join_of

_LOOKED_AT = 8
"""So many kept traces of one key and distance are asked whether they may keep another, the latest first."""


class Founder:
    """A trace that a policy kept, and how many more may be kept for its sake."""

    __slots__ = ("left", "policy", "trace_id")

    def __init__(self, policy: str, trace_id: bytes, left: int) -> None:
        self.policy = policy
        self.trace_id = trace_id
        self.left = left


class LinkedTrace:
    """A trace that is kept and remembered, or that rests."""

    __slots__ = (
        "at",
        "cluster",
        "founder",
        "groups",
        "hop",
        "judgement",
        "keys",
        "nameless",
        "of_one_pod",
        "size",
        "trace",
        "trace_id",
        "until",
    )

    at: int | None
    """When that was decided."""
    judgement: Judgement
    """On what rests: that it is not kept."""
    groups: Sequence[Group]
    """The spans that rest."""
    size: int
    """The bytes that it takes while it rests."""

    def __init__(self, trace_id: bytes, joins: Joins, hop: int, founder: Founder | None, until: int) -> None:
        self.trace_id = trace_id
        self.keys = joins.keys
        """What it can share with others; its own id is one."""
        self.cluster = joins.cluster
        """The cluster that it is of, as `cluster_of` has it."""
        self.hop = hop
        """How many links away from one that a policy kept, 0 for that one itself; more than there may be: unkept."""
        self.founder = founder
        """The one that it is kept for; None for one that is not kept."""
        self.until = until
        """When it leaves, Unix nanoseconds."""
        self.of_one_pod = False
        """Whether what it says of Pods is all of one, so that it counts as one with that Pod's others."""
        self.nameless: Sequence[Sighting] = ()
        """Pods of which only the place is known yet."""
        self.trace: HeldTrace | None = None
        """What rests; None of one that is kept."""


class SavedNode(NamedTuple):
    """A trace in a saved state, without what rests of it."""

    trace_id: bytes
    keys: tuple[Key, ...]
    cluster: str
    hop: int
    founder: int | None
    until: int
    of_one_pod: bool
    nameless: tuple[Sighting, ...]


class SavedWeb(NamedTuple):
    """All traces of a web in a saved state: nodes and founders by their numbers."""

    founders: tuple[tuple[str, bytes, int], ...]
    nodes: tuple[SavedNode, ...]
    known: int
    """How many of them, the first, are in the web."""
    kept: tuple[tuple[Key, tuple[tuple[int, ...], ...]], ...]
    """By key and hop."""
    unkept: tuple[tuple[Key, tuple[int, ...]], ...]


class WebTable:
    """The nodes of a saved state, each once."""

    def __init__(self) -> None:
        self._numbers: dict[LinkedTrace, int] = {}

    def number(self, node: LinkedTrace) -> int:
        """Return the number of a node."""
        return self._numbers.setdefault(node, len(self._numbers))

    def nodes(self) -> Sequence[LinkedTrace]:
        """Return all nodes in the order of their numbers."""
        return [*self._numbers]


class Tie(NamedTuple):
    """How a trace is linked with one that is kept."""

    node: LinkedTrace
    neighbour: LinkedTrace
    key: Key
    """What both share."""
    hop: int
    """How many links away from one that a policy kept that brings it."""


_Levels = list[dict[LinkedTrace, None]]
"""Kept traces that share a key, by their hop."""


class Web:
    """All nodes by their keys. Each step costs what it changes, however many share a key."""

    def __init__(self, max_hops: int, *, whole_pods: bool = False) -> None:
        self.max_hops = max_hops
        self._whole_pods = whole_pods
        """Whether there is no hop from one trace of a Pod to another."""
        self.unkept = max_hops + 1
        """The hop of what is not kept."""
        self.nodes: dict[Key, LinkedTrace] = {}
        """By the trace's id, which of its keys is the one that stands nowhere else for what is not kept."""
        self._kept: dict[Key, _Levels] = {}
        self._unkept: dict[Key, LinkedTrace | dict[LinkedTrace, None]] = {}
        self._apart_from_kept = self._kept.keys().isdisjoint

    def add(self, node: LinkedTrace) -> bool:
        """Take a node in; return whether it may keep another, or be kept."""
        self.nodes[node.trace_id] = node
        keys = node.keys
        node.of_one_pod = self._whole_pods and is_of_one_pod(keys)
        if node.founder is not None:
            self._tie_kept(node, keys)
            return True
        self._tie_unkept(node, keys)
        return not self._apart_from_kept(keys)

    def tie(self, node: LinkedTrace, keys: Iterable[Key]) -> None:
        """Tie a node that is in to more keys."""
        news = [key for key in keys if key not in node.keys]
        node.keys.update(dict.fromkeys(news))
        node.of_one_pod = self._whole_pods and is_of_one_pod(node.keys)
        self._tie(node, news)

    def _tie(self, node: LinkedTrace, keys: Iterable[Key]) -> None:
        if node.founder is not None:
            self._tie_kept(node, keys)
        else:
            self._tie_unkept(node, keys)

    def _tie_kept(self, node: LinkedTrace, keys: Iterable[Key]) -> None:
        for key in keys:
            levels = self._kept.get(key)
            if levels is None:
                levels = self._kept[key] = [{} for _ in range(self.unkept)]
            levels[node.hop][node] = None

    def _tie_unkept(self, node: LinkedTrace, keys: Iterable[Key]) -> None:
        unkept, own = self._unkept, node.trace_id
        for key in keys:
            if key is own:
                continue
            there = unkept.setdefault(key, node)
            if there is not node:
                if isinstance(there, LinkedTrace):
                    unkept[key] = {there: None, node: None}
                else:
                    there[node] = None

    def untie(self, node: LinkedTrace, key: Key) -> None:
        """Take a key from a node that has it."""
        del node.keys[key]
        self._untie(node, (key,))

    def _untie(self, node: LinkedTrace, keys: Iterable[Key]) -> None:
        if node.founder is not None:
            for key in keys:
                levels = self._kept[key]
                del levels[node.hop][node]
                if not any(levels):
                    del self._kept[key]
            return
        unkept, own = self._unkept, node.trace_id
        for key in keys:
            if key is own:
                continue
            there = unkept[key]
            if there is not node:
                assert not isinstance(there, LinkedTrace), "what is not tied to it alone is tied to several"
                del there[node]
                if there:
                    continue
            del unkept[key]

    def saved(self, table: WebTable) -> SavedWeb:
        """Return all nodes of a table and how they are tied; those of the web come first in it."""
        numbers = {node: at for at, node in enumerate(table.nodes())}
        founders: dict[Founder, int] = {}
        nodes = [
            SavedNode(
                *(node.trace_id, tuple(node.keys), node.cluster, node.hop),
                None if node.founder is None else founders.setdefault(node.founder, len(founders)),
                *(node.until, node.of_one_pod, tuple(node.nameless)),
            )
            for node in numbers
        ]
        kept = [
            (key, tuple([tuple([numbers[node] for node in level]) for level in levels]))
            for key, levels in self._kept.items()
        ]
        unkept = [
            (key, (numbers[there],) if isinstance(there, LinkedTrace) else tuple([numbers[node] for node in there]))
            for key, there in self._unkept.items()
        ]
        told = tuple([(founder.policy, founder.trace_id, founder.left) for founder in founders])
        return SavedWeb(told, tuple(nodes), len(self.nodes), tuple(kept), tuple(unkept))

    def restore(self, saved: SavedWeb) -> Sequence[LinkedTrace]:
        """Tie what was tied; return all nodes by their numbers."""
        founders = [Founder(*founder) for founder in saved.founders]
        nodes: list[LinkedTrace] = []
        for one in saved.nodes:
            # The trace's id among its keys is that very object.
            keys = {one.trace_id if key == one.trace_id else key: None for key in one.keys}
            founder = None if one.founder is None else founders[one.founder]
            node = LinkedTrace(one.trace_id, Joins(keys, (), one.cluster), one.hop, founder, one.until)
            node.of_one_pod, node.nameless = one.of_one_pod, one.nameless
            nodes.append(node)
        self.nodes.update([(node.trace_id, node) for node in nodes[: saved.known]])
        for key, levels in saved.kept:
            self._kept[key] = [dict.fromkeys([nodes[at] for at in level]) for level in levels]
        for key, there in saved.unkept:
            of_key = [nodes[at] for at in there]
            self._unkept[key] = of_key[0] if len(of_key) == 1 else dict.fromkeys(of_key)
        return nodes

    def fit(self) -> None:
        """Rebuild the tables for their present entries."""
        fit(self.nodes)
        fit(self._kept)
        fit(self._unkept)

    def remove(self, node: LinkedTrace) -> None:
        """Forget a node."""
        del self.nodes[node.trace_id]
        self._untie(node, node.keys)

    def sharing(self, key: Key, most: int) -> Sequence[LinkedTrace]:
        """Return at most so many nodes that have a key."""
        kept = (node for level in self._kept.get(key, ()) for node in level)
        return list(islice(chain(kept, self._unkept_of(key)), most))

    def _unkept_of(self, key: Key) -> Iterable[LinkedTrace]:
        own, there = self.nodes.get(key), self._unkept.get(key, ())
        others = (there,) if isinstance(there, LinkedTrace) else there
        return others if own is None or own.founder is not None else chain((own,), others)

    def nearest(self, node: LinkedTrace) -> tuple[Tie | None, bool]:
        """Return how an unkept node is tied to the nearest kept one that may keep another; and if one may no more."""
        best: Tie | None = None
        limit, spent = self.unkept, False
        for key in node.keys:
            levels = self._kept.get(key)
            if levels is None:
                continue
            for one in [one for level in levels[:limit] if level for one in islice(reversed(level), _LOOKED_AT)]:
                hop = one.hop + self._hops(key, one, node)
                if hop >= limit:
                    continue
                if one.founder is not None and one.founder.left > 0:
                    best, limit = Tie(node, one, key, hop), hop
                else:
                    spent = True
        return best, spent and best is None

    def _hops(self, key: Key, one: LinkedTrace, other: LinkedTrace) -> int:
        """Return how far two that share a key are from each other."""
        if not self._whole_pods:
            return 1
        if is_of_pod(key):
            return 0 if one.of_one_pod and other.of_one_pod else 1
        # Both link to a third: what is of two Pods must not be nearer to each other than to what they come from.
        return 2 if join_of(key) == LINK and key not in (one.trace_id, other.trace_id) else 1

    def keep(self, tie: Tie) -> None:
        """Keep a node for the sake of a neighbour's founder, who has one left."""
        founder = tie.neighbour.founder
        assert founder is not None, "the neighbour is kept"
        founder.left -= 1
        self._move(tie.node, tie.hop, founder)

    def found(self, node: LinkedTrace, founder: Founder) -> None:
        """Have an unkept node count as kept by a policy."""
        self._move(node, 0, founder)

    def spread(self, start: LinkedTrace) -> tuple[Sequence[Tie], bool]:
        """Keep all that a kept node reaches, the nearest first; return them, and whether its founder had too few left.

        Kept nodes that are now nearer go on from there.
        """
        reached: list[Tie] = []
        spent = False
        queue = deque([start])
        while queue:
            node = queue.popleft()
            founder = node.founder
            assert founder is not None, "only what is kept keeps others"
            for key in node.keys:
                nearest = node.hop + (0 if node.of_one_pod and is_of_pod(key) else 1)
                if nearest > self.max_hops:
                    continue
                for other in self._farther(key, nearest, founder.left):
                    hop = node.hop + self._hops(key, node, other)
                    if not hop < other.hop:
                        continue
                    if other.founder is None:
                        if founder.left <= 0:
                            spent = True
                            break
                        tie = Tie(other, node, key, hop)
                        self.keep(tie)
                        reached.append(tie)
                    else:
                        self._move(other, hop, founder)
                    if hop == node.hop:
                        queue.appendleft(other)
                    else:
                        queue.append(other)
        return reached, spent

    def _farther(self, key: Key, hop: int, most: int) -> Sequence[LinkedTrace]:
        """Return the nodes of a key that are farther than `hop`, of those unkept one more than `most` at most."""
        farther = [node for level in self._kept[key][hop + 1 :] for node in level]
        return [*farther, *islice(self._unkept_of(key), most + 1)]

    def _move(self, node: LinkedTrace, hop: int, founder: Founder) -> None:
        self._untie(node, node.keys)
        node.hop, node.founder = hop, founder
        self._tie(node, node.keys)
