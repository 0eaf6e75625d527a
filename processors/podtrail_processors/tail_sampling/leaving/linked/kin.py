"""Who is linked with whom, by what their spans say, and for how long that is remembered."""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from podtrail.component import Counter
from podtrail.otlp import Group
from podtrail.pod_identity import CREATE, Places, Sighting
from podtrail_processors.tail_sampling.config.linked_traces import KEY_BYTES
from podtrail_processors.tail_sampling.leaving.linked.joins import PLACE, JoinReader, Joins, Key, uid_key
from podtrail_processors.tail_sampling.leaving.linked.web import Founder, LinkedTrace, Tie, Web, WebTable

_MOST_PLACES: Final = 20_000
_NEVER: Final = 1 << 63
_MOST_READ: Final = 1_000
"""So many resting traces are asked for both when the first that knows only a place comes: a few milliseconds."""
_MOST_NAMED: Final = 64
"""So many traces that know only a Pod's place learn its uid from one that tells both."""


class SavedKin(NamedTuple):
    """Who is linked with whom, in a saved state; nodes by their numbers."""

    places: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    kept: tuple[int, ...]
    due: int
    kept_keys: int
    placed: tuple[Key, ...]
    asked: bool


class Kin:
    """The web of traces, kept and resting, with the Pods that they are about.

    A trace that tells only the place of a Pod is tied to its uid as soon as another tells both; until then it is tied
    to those that tell the same place. Which uid was at which place is read only once somebody asks.
    """

    def __init__(self, reader: JoinReader, web: Web, most_keys: int, forgotten: Counter, refused: Counter) -> None:
        self.web = web
        self._reader = reader
        self._places = Places(_MOST_PLACES)
        self._kept: deque[LinkedTrace] = deque()
        self.due = _NEVER
        """When the first of the kept traces is to be forgotten."""
        self.kept_keys = 0
        """By how many keys kept traces are remembered."""
        self._most_keys = most_keys
        self._forgotten = forgotten
        self._refused = refused
        self._placed: set[Key] = set()
        """The keys of kept traces that were asked where their Pod is, before there was any need: once a Pod will do."""
        self._asked = False
        """Whether there was ever a trace that told a Pod's place without its uid."""

    @property
    def forgetting(self) -> int | None:
        """When the first of the kept traces is to be forgotten; None if there is none."""
        return self._kept[0].until if self._kept else None

    def node(self, trace_id: bytes) -> LinkedTrace | None:
        """Return what is known of a trace."""
        return self.web.nodes.get(trace_id)

    def enter(self, node: LinkedTrace, nameless: Sequence[Sighting], spans: bytes) -> Sequence[Tie]:
        """Take a trace in; return who is kept as it is now known, itself included."""
        if node.trace_id in self.web.nodes:
            self._forget(self.web.nodes[node.trace_id])
        shares = self.web.add(node)
        if nameless or self._asked:
            return self._settle(node, nameless, spans)
        return self._settled(node) if shares else ()

    def extend(self, node: LinkedTrace, joins: Joins, spans: bytes) -> Sequence[Tie]:
        """Take in what late spans of a trace say; return who is kept as it is now known."""
        before = len(node.keys)
        was_kept = node.founder is not None
        node.cluster = node.cluster or joins.cluster
        self.web.tie(node, joins.keys)
        ties = self._settle(node, joins.nameless, spans)
        if was_kept:
            self.kept_keys += len(node.keys) - before
            self._bound()
        return ties

    def _settle(self, node: LinkedTrace, nameless: Sequence[Sighting], spans: bytes) -> Sequence[Tie]:
        named: Sequence[LinkedTrace] = ()
        if nameless:
            if not self._asked:
                self._begin_to_ask()
                self._placed.clear()
            node.nameless = [*node.nameless, *nameless]
            self._name(node)
        elif self._asked:
            named = self._learn(node, spans)
        if not named:
            return self._settled(node)
        return [tie for one in [*named, node] for tie in self._settled(one)]

    def _learn(self, node: LinkedTrace, spans: bytes) -> Sequence[LinkedTrace]:
        """Learn which Pods were where; return the traces that this gave a Pod's uid."""
        named: list[LinkedTrace] = []
        for pod in self._reader.pods(node.trace_id, spans, node.cluster):
            if self._places.note(pod.place, pod.uid, pod.at):
                sharing = self.web.sharing((PLACE, pod.place), _MOST_NAMED)
                named += [one for one in sharing if self._name(one)]
        return named

    def _begin_to_ask(self) -> None:
        """Learn from what rests; from now on all traces are learned from as they come."""
        self._asked = True
        for node in islice(reversed(self.web.nodes.values()), _MOST_READ):
            if node.trace is not None:
                self._learn(node, b"".join([group.spans for group in node.groups]))

    def _name(self, node: LinkedTrace) -> bool:
        """Tie a trace to the Pods that it is about; return whether to any by its uid."""
        uids: list[Key] = []
        unknown: list[Sighting] = []
        for one in node.nameless:
            created = one.action == CREATE
            uid = self._places.uid_at(one.place, one.at, created=created)
            if not uid and not created:
                # Where no other Pod of that name is known it is this one's, though it was not seen yet at that time: a
                # scheduler that is not traced has written of a Pod for seconds when its kubelet says the uid.
                uid = self._places.only(one.place)
            if uid:
                uids.append(uid_key(uid))
            else:
                unknown.append(one)
        places: dict[Key, None] = {(PLACE, one.place): None for one in unknown}
        for one in node.nameless:
            known: Key = (PLACE, one.place)
            if known in node.keys and known not in places:
                self.web.untie(node, known)
        node.nameless = unknown
        self.web.tie(node, [*uids, *places])
        return bool(uids)

    def _settled(self, node: LinkedTrace) -> Sequence[Tie]:
        """Keep a trace that has a kept neighbour, and from a kept one whom it reaches; return whom that kept."""
        tie: Tie | None = None
        if node.founder is None:
            tie, spent = self.web.nearest(node)
            if spent:
                self._refused.add(1)
            if tie is None:
                return ()
            self.web.keep(tie)
        reached, spent = self.web.spread(node)
        if spent:
            self._refused.add(1)
        return reached if tie is None else [tie, *reached]

    def found(self, node: LinkedTrace, founder: Founder) -> Sequence[Tie]:
        """Have a resting trace count as one that a policy kept; return who is kept with it."""
        self.web.found(node, founder)
        return self._settled(node)

    def remember(self, node: LinkedTrace, groups: Sequence[Group]) -> None:
        """Remember a kept trace, of which these groups are known, until its time, or until there are too many."""
        if not self._asked and self._placed.isdisjoint(node.keys):
            if len(self._placed) >= _MOST_PLACES:
                self._placed.clear()
            self._placed.update(node.keys)
            self._learn(node, b"".join([group.spans for group in groups]))
        if not self._kept:
            self.due = node.until
        self._kept.append(node)
        self.kept_keys += len(node.keys)
        self._bound()

    def _bound(self) -> None:
        while self.kept_keys > self._most_keys:
            self._forgotten.add(1)
            self._forget_oldest()

    def forget_until(self, now: int) -> int:
        """Forget kept traces whose time has come; return how many."""
        kept = self._kept
        before = len(kept)
        while kept and kept[0].until <= now:
            self._forget_oldest()
        self.due = kept[0].until if kept else _NEVER
        if before and not kept:
            self.web.fit()
        return before - len(kept)

    def memory_size(self) -> int:
        """Return about how many bytes kept traces take."""
        return self.kept_keys * KEY_BYTES

    def shrink(self) -> None:
        """Forget the older half of the kept traces, because memory is short."""
        for _ in range((len(self._kept) + 1) // 2):
            self._forgotten.add(1)
            self._forget_oldest()
        self.due = self._kept[0].until if self._kept else _NEVER
        self._placed.clear()
        self._places.shrink()
        self.web.fit()

    def _forget_oldest(self) -> None:
        node = self._kept.popleft()
        if self.web.nodes.get(node.trace_id) is node:
            self._forget(node)

    def _forget(self, node: LinkedTrace) -> None:
        self.kept_keys -= len(node.keys)
        self.web.remove(node)

    def saved(self, nodes: WebTable) -> "SavedKin":
        """Return all that is known; the nodes of the web are the first of the table."""
        for node in self.web.nodes.values():
            nodes.number(node)
        kept = tuple([nodes.number(node) for node in self._kept])
        return SavedKin(self._places.saved(), kept, self.due, self.kept_keys, tuple(self._placed), self._asked)

    def restore(self, saved: "SavedKin", nodes: Sequence[LinkedTrace]) -> None:
        """Know what was known; the web is restored already."""
        self._places.restore(saved.places)
        self._kept = deque([nodes[at] for at in saved.kept])
        self.due, self.kept_keys = saved.due, saved.kept_keys
        self._placed, self._asked = set(saved.placed), saved.asked

    def take_over(self, other: "Kin") -> None:
        """Know of those that another knows; it knows of none afterwards."""
        self._places.take_over(other._places)
        unkept = other.web.unkept
        for node in list(other.web.nodes.values()):
            other.web.remove(node)
            node.hop = self.web.unkept if node.hop == unkept else min(node.hop, self.web.max_hops)
            self.web.add(node)
        self._asked = self._asked or other._asked
        kept, other._kept, other.kept_keys = other._kept, deque(), 0
        for node in kept:
            if self.web.nodes.get(node.trace_id) is node:
                self.remember(node, ())
