"""Pods by name and time: which of several of one name an attempt was for, how many it had, who it is."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from podtrail.lru import Lru
from podtrail.reconstruction.attempt_draft import Draft, PodIdentity
from podtrail.reconstruction.identifiers import trace_id
from podtrail.reconstruction.watch import PodSeen

MOST_NAMES = 65_536
_MOST_OF_ONE_NAME = 8
_LAG = 30_000_000
"""Nanoseconds by which a watch may be behind the scheduler."""
_GONE = 5_000_000_000
"""Nanoseconds for which an attempt for a Pod may begin behind its deletion."""
FOREVER = 1 << 62
_BORN = 10_000_000_000
"""Nanoseconds by which a Pod's creation may precede its arrival: a watch that begins gives Pods that are there already
as `ADDED`, too."""


@dataclass(slots=True)
class Incarnation:
    """One of the Pods that had a name one after the other, as a StatefulSet's do: from when until when it was there."""

    pod: str
    uid: str
    since: int
    until: int = FOREVER
    generation: int = 0
    created: int = 0
    """Not after this; 0 when nothing tells since when it is there."""
    profile: str = ""
    parent: tuple[bytes, bytes] | None = None
    node: str = ""
    said: int = 0
    """What its condition said last, as a hash."""
    gated: bool = False
    """It has, or had, scheduling gates."""
    attempts: int = 0
    last: bytes | None = None
    """The trace id of its latest attempt."""
    told: int = 0
    """When the latest of its attempts that were told ended."""
    told_before: int = 0
    """The same at a restart of podtrail: what ended until then is not told again."""
    whole_until: int = 0
    """Until when, at that restart, its attempts were counted with certainty."""
    watched: bool = False
    seen: int = 0
    """When a watch showed it last."""
    settled: int = 0
    """The end of the attempt that the latest condition told of."""
    bound: bool = False
    """One of its attempts bound it: later ones are another Pod's."""
    over: bool = False
    """Bound, or gone by the log: what comes after it is another Pod."""

    def whole(self, covered: int) -> bool:
        """Say whether a log that tells of all attempts since `covered` tells of all of this Pod's."""
        return bool(self.created) and covered <= max(self.created, self.whole_until)


@dataclass(slots=True)
class _Name:
    known: list[Incarnation] = field(default_factory=list)
    nameless: int = 0
    """How many Pods of this name no source gave a uid."""


class PodRegistry:
    """Bounded: the names that were not heard of for longest are let go."""

    def __init__(self) -> None:
        self._names: Lru[str, _Name] = Lru(MOST_NAMES)
        self._by_uid: OrderedDict[str, Incarnation] = OrderedDict()
        self.forgotten = 0
        self._forgotten_since = 0

    def see(self, seen: PodSeen) -> tuple[Incarnation, bool]:
        """Take in what a watch shows; return the Pod and whether it is new."""
        known = self._by_uid.get(seen.uid)
        if known is None or known.pod != seen.pod:
            live = seen.change == "ADDED" and seen.time - seen.created < _BORN
            since = seen.time if live else seen.created
            created = seen.created if seen.created > self._forgotten_since else 0
            known = self._add(Incarnation(seen.pod, seen.uid, since, created=created))
        new, known.watched = not known.watched, True
        known.seen = seen.time
        if seen.change == "DELETED":
            known.until = min(known.until, seen.time)
        known.profile = seen.profile or known.profile
        known.gated = known.gated or bool(seen.gates)
        if not known.node:  # binding may replace it; what matters is what the Pod was created with
            known.parent = seen.parent or known.parent
        return known, new

    def name_uid(self, pod: str, uid: str, time: int) -> None:
        """Take a uid that an Event or the log gives; `time` in Unix nanoseconds."""
        if not uid or uid in self._by_uid:
            return
        name = self._names.get(pod)
        latest = name.known[-1] if name and name.known else None
        if latest and not latest.uid and not latest.over:
            latest.uid = uid
            self._remember(latest)
        else:
            since = time if latest else 0
            if latest and not latest.uid:
                latest.until = min(latest.until, time)
            self._add(Incarnation(pod, uid, since))

    def arrived(self, pod: str, time: int, *, born: bool) -> None:
        """Take the scheduler's word that a Pod came to it; not `born` when it may have been there before."""
        latest = self._latest(pod)
        if latest is None or (not latest.uid and latest.over):
            created = time if born and time > self._forgotten_since else 0
            self._add(Incarnation(pod, "", time, created=created))

    def left(self, pod: str) -> None:
        """Take the scheduler's word that a Pod is bound or gone."""
        latest = self._latest(pod)
        if latest and not latest.uid:
            latest.over = True

    def pod_of(self, uid: str) -> str:
        """Return the name of a Pod; "" when it is not known."""
        known = self._by_uid.get(uid)
        return known.pod if known else ""

    def whose(self, draft: Draft) -> Incarnation:
        """Return the Pod that an attempt was for."""
        pod = self._by_uid.get(draft.uid) if draft.uid else None
        return self._at(draft) if pod is None or pod.pod != draft.pod else pod

    def uid_at(self, pod: str, start: int) -> str:
        """Return the uid of the Pod that surely had a name when an attempt began; "" where that is not known."""
        name = self._names.get(pod)
        known = name.known if name else []
        for number in reversed(range(len(known))):
            one = known[number]
            if one.watched and one.since - _LAG <= start <= one.until:
                return "" if _may_be_the_one_before(known, number, start) else one.uid
        return ""

    def identify(self, draft: Draft, pod: Incarnation, covered: int) -> PodIdentity:
        """Say which of a Pod's attempts this is, and count it; from `covered` on the log tells of all."""
        pod.attempts += 1
        if draft.result == "Success":
            pod.bound = True
            pod.over = pod.over or not pod.uid
        counted = pod.whole(covered) or (bool(pod.created) and covered == FOREVER and pod.attempts == 1)
        key = pod.uid or (f"{pod.pod}#{pod.generation}" if pod.generation else pod.pod)
        again = f"/{pod.attempts}" if draft.end <= pod.told else ""
        trace = trace_id(key, str(pod.attempts) if counted else f"@{draft.end}{again}")
        before, pod.last, pod.told = pod.last, trace, max(pod.told, draft.end)
        profile = draft.profile or pod.profile
        return PodIdentity(trace, pod.uid, pod.pod, pod.attempts, counted, profile, pod.parent, before)

    def pods(self) -> Iterator[Incarnation]:
        """Yield all Pods, those not heard of for longest first."""
        for name in self._names.values():
            yield from name.known

    def restore(self, pods: Iterable[Incarnation]) -> None:
        """Take the Pods that another registry held."""
        for pod in pods:
            self._add(pod)

    def _at(self, draft: Draft) -> Incarnation:
        name = self._names.get(draft.pod)
        known = name.known if name else []
        start = draft.start
        for number in reversed(range(len(known))):
            candidate = known[number]
            if candidate.over and not candidate.uid:
                break
            if start > candidate.until + _GONE:
                break
            if number and _may_be_the_one_before(known, number, start) and not known[number - 1].bound:
                continue
            if candidate.since - _LAG <= start or not number:
                return candidate
        return self._add(Incarnation(draft.pod, "", start))

    def _latest(self, pod: str) -> Incarnation | None:
        name = self._names.get(pod)
        if name is None:
            return None
        self._names.move_to_end(pod)
        return name.known[-1] if name.known else None

    def _add(self, incarnation: Incarnation) -> Incarnation:
        name = self._names.setdefault(incarnation.pod, _Name())
        name.known.append(incarnation)
        if not incarnation.uid:
            incarnation.generation = name.nameless
            name.nameless += 1
        else:
            # The log told of this Pod before the watch did.
            nameless = [one for one in name.known[:-1] if not one.uid and not one.over]
            for one in nameless:
                incarnation.attempts += one.attempts
                incarnation.last = one.last or incarnation.last
                incarnation.since = min(incarnation.since, one.since)
                incarnation.created = incarnation.created or one.created
                incarnation.told = max(incarnation.told, one.told)
                name.known.remove(one)
            self._remember(incarnation)
            name.known.sort(key=lambda one: one.since)
        del name.known[:-_MOST_OF_ONE_NAME]
        if oldest := self._names.put(incarnation.pod, name):
            gone = oldest[1]
            self.forgotten += len(gone.known)
            for one in gone.known:
                self._by_uid.pop(one.uid, None)
                self._forgotten_since = max(self._forgotten_since, one.since)
        return incarnation

    def _remember(self, incarnation: Incarnation) -> None:
        self._by_uid[incarnation.uid] = incarnation
        if len(self._by_uid) > MOST_NAMES:
            self._by_uid.popitem(last=False)


def _may_be_the_one_before(known: list[Incarnation], number: int, start: int) -> bool:
    """Return whether an attempt that began before a watch showed a Pod may be for the last Pod of its name.

    A Pod can be made again within the time by which a watch may be behind the scheduler.
    """
    return number > 0 and start < known[number].since and start <= known[number - 1].until + _LAG
