"""Who is who: learns from spans which ids belong to which Pod, and says of any span which Pod it is about."""

from collections.abc import Callable, Container, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from podtrail.otlp import resource_attributes
from podtrail.pod_identity.clues import EVENT, UNNAMED, PodClues
from podtrail.pod_identity.clusters import cluster_of, in_cluster, may_be_same
from podtrail.pod_identity.identity import IdentifiedPod, PodEvidence
from podtrail.pod_identity.lives import ClockTime, PlaceHistory, PodCreation, SavedPlace
from podtrail.pod_identity.sighting import CREATE
from podtrail.recent import Reason, Recent, first

Forgotten = Callable[[str, Reason], None]
"""Told of each entry that is no longer remembered: its kind, and why."""

_DISPUTED: Final = "?"
"""In the place of a uid or a name where two were told: neither is believed. No Pod is called so."""
_MOST_SOURCES: Final = 4096
_LONGEST_RESOURCE: Final = 1024
_IDS_PER_POD: Final = 4
_SERVER_SIDE: Final = b"s"
"""Behind the key of a client's span: the server's span of its request."""
_TRACES_PER_POD: Final = 4
_REQUESTS_PER_POD: Final = 2
_SOURCE_BYTES, _NODE_BYTES = 2_200, 500
_BYTES: Final = {"pod_name": 730, "place": 2200, "runtime_id": 600, "pod_trace": 430, "request": 780, "partner": 2110}
"""What an entry takes, as measured with the longest texts: a name that had one Pod; with eight it takes 12,000."""


class SpanSource(NamedTuple):
    """The process that made a span, by its resource."""

    clock: int
    """Which clock its times are by."""
    service: str
    node: str
    """The kubelet's `host.name`; "" for others."""
    cluster: str = ""
    """As `cluster_of` has it."""


class SavedDirectory(NamedTuple):
    """What is known of Pods, in a saved state: keys, when each was last told, and values."""

    now: int
    sources: tuple[tuple[bytes, int, SpanSource], ...]
    clocks: int
    nodes: tuple[tuple[str, int, None], ...]
    names: tuple[tuple[str, int, str], ...]
    places: tuple[tuple[str, int, SavedPlace], ...]
    ids: tuple[tuple[str, int, tuple[str, PodEvidence]], ...]
    traces: tuple[tuple[bytes, int, str], ...]
    partners: tuple[tuple[bytes, int, tuple[PodClues, SpanSource]], ...]
    requests: tuple[tuple[str, int, tuple[str, str]], ...]


class PodDirectory:
    """What is known of Pods and their ids. Bounded in number and age; pure, so it is told the time.

    Two that contradict each other (one id of two Pods, one uid of two names) are both disbelieved.
    """

    def __init__(self, most_pods: int, ttl: int, forgotten: Forgotten) -> None:
        """Remember at most so many Pods and names, and in proportion their ids; `ttl` in nanoseconds."""
        self._now = 0
        self._sources: Recent[bytes, SpanSource] = Recent(_MOST_SOURCES, ttl, _not_told)
        self._clocks = 0
        self._nodes: Recent[str, None] = Recent(_MOST_SOURCES, ttl, _not_told)

        def told(what: str) -> Callable[[object, object, Reason], None]:
            return lambda _key, _value, reason: forgotten(what, reason)

        self._names: Recent[str, str] = Recent(most_pods, ttl, told("pod_name"))
        self._places: Recent[str, PlaceHistory] = Recent(most_pods, ttl, told("place"))
        self._ids: Recent[str, tuple[str, PodEvidence]] = Recent(_IDS_PER_POD * most_pods, ttl, told("runtime_id"))
        self._traces: Recent[bytes, str] = Recent(_TRACES_PER_POD * most_pods, ttl, told("pod_trace"))
        self._partners: Recent[bytes, tuple[PodClues, SpanSource]] = Recent(most_pods, ttl, told("partner"))
        self._requests: Recent[str, tuple[str, str]] = Recent(_REQUESTS_PER_POD * most_pods, ttl, told("request"))

    def expire(self, now: int) -> None:
        """Forget what is too old."""
        self._now = max(self._now, now)
        for recent in self._recents():
            recent.expire(now)

    def _recents(self) -> Sequence[Recent[Any, Any]]:
        pods = (self._names, self._places, self._ids, self._traces, self._requests, self._partners)
        return (*pods, self._sources, self._nodes)

    def deadline(self) -> int | None:
        """Return when the first entry is too old; None if there is none."""
        return first(recent.deadline() for recent in self._recents())

    def shrink(self, parts: int) -> None:
        """Forget the oldest of so many equal parts of everything."""
        for recent in self._recents():
            recent.shrink(parts)

    def sizes(self) -> Mapping[str, int]:
        """Return how many entries there are of each kind."""
        return {
            "pod_name": len(self._names),
            "place": len(self._places),
            "runtime_id": len(self._ids),
            "pod_trace": len(self._traces),
            "request": len(self._requests),
            "partner": len(self._partners),
        }

    def size(self) -> int:
        """Return an upper estimate of the bytes that all entries take."""
        pods = sum(count * _BYTES[what] for what, count in self.sizes().items())
        return pods + len(self._sources) * _SOURCE_BYTES + len(self._nodes) * _NODE_BYTES

    def saved(self) -> "SavedDirectory":
        """Return all that is known."""
        return SavedDirectory(
            *(self._now, self._sources.saved(), self._clocks, self._nodes.saved(), self._names.saved()),
            tuple([(place, seen, history.saved()) for place, history, seen in self._places.dated()]),
            *(self._ids.saved(), self._traces.saved(), self._partners.saved(), self._requests.saved()),
        )

    def restore(self, saved: "SavedDirectory") -> None:
        """Know what was saved; meant for an empty one."""
        self._now, self._clocks = saved.now, saved.clocks
        self._sources.restore(saved.sources)
        self._nodes.restore(saved.nodes)
        self._names.restore(saved.names)
        self._places.restore([(place, seen, PlaceHistory.restored(one)) for place, seen, one in saved.places])
        self._ids.restore(saved.ids)
        self._traces.restore(saved.traces)
        self._partners.restore(saved.partners)
        self._requests.restore(saved.requests)

    def take_over(self, other: "PodDirectory") -> None:
        """Take what another knows, as far as there is room; meant for an empty one."""
        self._clocks = other._clocks
        self._now = max(self._now, other._now)
        self._sources.move_in(other._sources)
        self._nodes.move_in(other._nodes)
        self._names.move_in(other._names)
        self._places.move_in(other._places)
        self._ids.move_in(other._ids)
        self._traces.move_in(other._traces)
        self._requests.move_in(other._requests)
        self._partners.move_in(other._partners)

    def source(self, resource: bytes) -> SpanSource:
        """Return the process that a resource (of a group) stands for."""
        key = resource if len(resource) <= _LONGEST_RESOURCE else blake2b(resource, digest_size=32).digest()
        known = self._sources.refresh(key, self._now)
        if known is None:
            told = resource_attributes(resource)
            service, host = told.get("service.name"), told.get("host.name")
            kubelet = service == "kubelet" and isinstance(host, str)
            self._clocks += 1
            node = str(host)[:253] if kubelet else ""
            known = SpanSource(self._clocks, str(service)[:100], node, cluster_of(told))
            self._sources.put(key, known, self._now)
        if known.node:
            self._nodes.put(in_cluster(known.cluster, known.node), None, self._now)
        return known

    # What spans teach

    def learn(self, clues: PodClues, source: SpanSource, now: int) -> None:
        """Learn from what a span says."""
        if clues.named:
            self._name(clues.named.uid, clues.named.place, now)
            if clues.container_id:
                self._teach(clues.container_id, clues.named.uid, PodEvidence.CONTAINER_ID, now)
            if clues.sandbox_id:
                self._teach(clues.sandbox_id, clues.named.uid, PodEvidence.SANDBOX_ID, now)
        if clues.uid:
            self._name(clues.uid, clues.place, now)
            if clues.sync:
                self._learn_trace(clues.trace_id, clues.uid, now)
            if clues.sync == "syncPod":
                self._seen(clues.uid, clues.start, source, now)
        elif clues.client and clues.place:
            self._partners.put(clues.span, (clues, source), now)
        elif clues.action in UNNAMED and clues.server and len(clues.links) == 1:
            self._partners.put(clues.links[0] + _SERVER_SIDE, (clues, source), now)
        if clues.deletes:
            history = self._places.get(clues.place) or PlaceHistory(clues.place)
            history.deleted(ClockTime(clues.start, source.clock))
            self._places.put(clues.place, history, now)
        if clues.audit_id and clues.place and (clues.action in (CREATE, EVENT) or not clues.server):
            told = (clues.place, clues.action if clues.action in (CREATE, EVENT) else "")
            known = self._requests.get(clues.audit_id)
            self._requests.put(clues.audit_id, _agreed(known, told), now)

    def learn_attempt(self, uid: str, place: str, trace_id: bytes, start: int, source: SpanSource, now: int) -> None:
        """Learn of an attempt to schedule a Pod, which began at `start` by the clock of the source."""
        self._name(uid, place, now)
        self._learn_trace(trace_id, uid, now)
        self._seen(uid, start, source, now)

    def confirm(self, clues: PodClues, identity: IdentifiedPod, source: SpanSource, now: int) -> None:
        """Learn when a Pod was there by the clock of a request that is its by more than its name."""
        named = clues.place and clues.place == self.place_of(identity.uid)
        if named and clues.action not in (CREATE, EVENT) and identity.evidence is not PodEvidence.NAME:
            self._seen(identity.uid, clues.start, source, now)

    def _learn_trace(self, trace_id: bytes, uid: str, now: int) -> None:
        known = self._traces.get(trace_id)
        self._traces.put(trace_id, uid if known in (None, uid) else _DISPUTED, now)

    def learn_creation(self, place: str, creation: PodCreation, now: int) -> None:
        """Learn of a request that created a Pod of a name."""
        history = self._places.get(place) or PlaceHistory(place)
        history.created(creation)
        self._places.put(place, history, now)

    def forget_creation(self, place: str, span: bytes) -> None:
        """Take back that a request (or its write to etcd) created a Pod: it was refused, or is told of better."""
        history = self._places.get(place)
        if history is not None:
            history.not_created(span)

    def _teach(self, runtime_id: str, uid: str, evidence: PodEvidence, now: int) -> None:
        known = self._ids.get(runtime_id)
        self._ids.put(runtime_id, known if known and known[0] == uid else (_DISPUTED if known else uid, evidence), now)

    def _name(self, uid: str, place: str, now: int) -> None:
        known = self._names.get(uid) or ""
        if known and place:
            place = max(known, place, key=len) if may_be_same(known, place) else _DISPUTED
        self._names.put(uid, known if known == _DISPUTED else place or known, now)

    def _seen(self, uid: str, at: int, source: SpanSource, now: int) -> None:
        place = self._names.get(uid)
        if place and place != _DISPUTED:
            history = self._places.get(place) or PlaceHistory(place)
            history.life(uid).seen(at, at, source.clock)
            self._places.put(place, history, now)

    # What they are asked

    def identify(self, clues: PodClues, source: SpanSource) -> IdentifiedPod | None:
        """Return which Pod a span is about; one without uid where several can be meant, None where nothing is known."""
        return self._own(clues) or self._by_trace(clues) or self._by_context(clues) or self._by_name(clues, source)

    def uid_of_trace(self, trace_id: bytes) -> str:
        """Return the uid of the Pod that a whole trace is about: that of an attempt or a sync; "" for any other."""
        uid = self._traces.get(trace_id) or ""
        return "" if uid == _DISPUTED else uid

    def place_of(self, uid: str) -> str:
        """Return `namespace/name` of a Pod; "" where it is not known, or two were told."""
        place = self._names.get(uid) or ""
        return "" if place == _DISPUTED else place

    def creation_of(self, uid: str, contexts: Container[bytes] = ()) -> tuple[PodCreation | None, PodEvidence]:
        """Return the request that created a Pod, and by which evidence that is known.

        None where none is known, or where it may be that of another. `contexts`: the clients' spans (trace
        and span id) in which the Pod says it was created.
        """
        history = self._places.get(self.place_of(uid))
        if history is None:
            return None, PodEvidence.NAME
        if creation := history.creation_in(uid, contexts):
            return creation, PodEvidence.TRACE_CONTEXT
        return history.creation_of(uid), PodEvidence.NAME

    def creations_possible(self, uid: str) -> int:
        """Return how many requests may have created a Pod."""
        history = self._places.get(self.place_of(uid))
        return history.creations_possible(uid) if history else 0

    def place_named(self, clues: PodClues) -> tuple[str, str]:
        """Return which name a span says, by itself or through its request, and what is done to the Pod; "" if none."""
        if clues.place or not clues.audit_id:
            return clues.place, clues.action
        known = self._requests.get(clues.audit_id)
        return known if known and known[0] != _DISPUTED else ("", clues.action)

    def _own(self, clues: PodClues) -> IdentifiedPod | None:
        """By a uid, or an id that was made for the Pod."""
        if clues.uid:
            known = self._names.get(clues.uid)
            disputed = bool(known) and bool(clues.place) and not may_be_same(known or "", clues.place)
            return self._told(_DISPUTED if disputed or known == _DISPUTED else clues.uid, PodEvidence.POD_UID)
        known_ids = [self._ids.get(one) for one in (clues.container_id, clues.sandbox_id) if one]
        told = [one for one in known_ids if one is not None]
        if not told:
            return None
        uid, evidence = told[0]
        return self._told(uid if all(one[0] == uid for one in told) else _DISPUTED, evidence)

    def _by_trace(self, clues: PodClues) -> IdentifiedPod | None:
        uid = self._traces.get(clues.trace_id)
        return self._told(uid, PodEvidence.TRACE) if uid and not self._names_another(clues, uid) else None

    def _by_context(self, clues: PodClues) -> IdentifiedPod | None:
        """By the span that a client's context came from, or by what the server says of a client's span."""
        partner = self._partners.get(clues.span + _SERVER_SIDE) if clues.client and not clues.place else None
        if partner:
            return self._through(partner)
        found = [self._traces.get(link[:16]) for link in clues.links]
        uids = {one for one in found if one and not self._names_another(clues, one)}
        if uids:
            return self._told(uids.pop() if len(uids) == 1 else _DISPUTED, PodEvidence.TRACE_CONTEXT)
        client = self._partners.get(clues.links[0]) if len(clues.links) == 1 else None
        return self._through(client) if client and may_be_same(client[0].place, clues.place) else None

    def _names_another(self, clues: PodClues, uid: str) -> bool:
        """Say whether a span names another Pod than this: attempts delete those in their way, contexts are forged."""
        place = self.place_of(uid) if clues.place else ""
        return bool(place) and not may_be_same(place, clues.place)

    def _through(self, partner: tuple[PodClues, SpanSource]) -> IdentifiedPod | None:
        told = self._by_name(*partner)
        return told._replace(evidence=PodEvidence.TRACE_CONTEXT) if told and told.uid else None

    def _by_name(self, clues: PodClues, source: SpanSource) -> IdentifiedPod | None:
        place, action = self.place_named(clues)
        history = self._places.get(place) if place else None
        if history is None:
            return None
        node = in_cluster(source.cluster, place.partition("/")[2])
        if action == EVENT and (node in self._nodes or not _writes_of_pods(clues, source)):
            # An Event has the name of what it is about, be it a Job, a Deployment or a Node.
            return IdentifiedPod("", PodEvidence.NAME, 2)
        start, end = ClockTime(clues.start, source.clock), ClockTime(clues.end, source.clock)
        if action == EVENT:
            uid, candidates = history.told_of(ClockTime(clues.first_event or clues.start, source.clock), end)
        else:
            uid, candidates = (history.created_by if action == CREATE else history.meant)(start, end)
        return IdentifiedPod(uid, PodEvidence.NAME, candidates) if candidates else None

    def _told(self, uid: str, evidence: PodEvidence) -> IdentifiedPod:
        return IdentifiedPod("", evidence, 2) if uid == _DISPUTED else IdentifiedPod(uid, evidence)


def _not_told(_key: object, _value: object, _reason: Reason) -> None:
    """Do nothing: what is known of senders is learnt again with the next span."""


def _agreed(known: tuple[str, str] | None, told: tuple[str, str]) -> tuple[str, str]:
    if known is None or known == told:
        return told
    return (known[0], known[1] or told[1]) if known[0] == told[0] else (_DISPUTED, _DISPUTED)


def _writes_of_pods(clues: PodClues, source: SpanSource) -> bool:
    """Say whether who writes an Event writes of Pods alone (and, a kubelet, of its node)."""
    agent = clues.agent.partition("/")[0] or source.service
    return agent == "kubelet" or agent.endswith("scheduler") or clues.by_scheduler
