"""What stitching remembers: Pods with their attempts, fates of traces, links that wait. All of it bounded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from podtrail.component import Counter as Metric
from podtrail.otlp import Attempt, Link, Verdict, attempts_in
from podtrail.pod_identity import (
    PodDirectory,
    PodEvidence,
    SavedDirectory,
    SpanSource,
    in_cluster,
    sound_place,
    sound_uid,
)
from podtrail.recent import Reason, Recent, first
from podtrail_processors.link_stitching.clocks import ClockPairs
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.creations import CreationMemory, SavedCreations
from podtrail_processors.link_stitching.lifecycle.saved_values import SavedLink, restored_link, saved_link
from podtrail_processors.link_stitching.numbering import AttemptChain, NumberedAttempt, SavedChain
from podtrail_processors.link_stitching.owners import OwnerMemory, SavedOwners
from podtrail_processors.link_stitching.trace_fate import TraceFate, fate_of

_MOST_WAITING_PER_SPAN = 128

# Bytes that an entry takes at most, as measured with the longest texts: what the gauge of memory multiplies.
_POD_BYTES, _ATTEMPT_BYTES, _TRACE_BYTES, _LINK_BYTES = 1080, 1250, 820, 1000
_EARLY_BYTES, _OWNER_BYTES, _CREATION_BYTES = 4700, 2500, 1500
_PARTS = 8
"""The oldest of so many parts is forgotten at once where entries take more memory than they may."""
_MOST_EARLY = 16
"""Spans of one Pod that wait for the attempt that bound it."""


class _Part(Protocol):
    """A part of the memory whose entries have ages."""

    def expire(self, now: int) -> None: ...
    def deadline(self) -> int | None: ...
    def shrink(self, parts: int) -> None: ...


class EarlyJoin(NamedTuple):
    """A span that left before the attempt came that it is to be linked with."""

    span: bytes
    """Trace and span id."""
    kind: str
    evidence: PodEvidence
    at: int
    """When it began, by its own clock; Unix nanoseconds."""


class SavedStitching(NamedTuple):
    """All that is remembered, in a saved state."""

    directory: SavedDirectory
    clocks: tuple[tuple[tuple[int, int], bool], ...]
    owners: SavedOwners
    creations: SavedCreations
    pods: tuple[tuple[str, int, SavedChain], ...]
    fates: tuple[tuple[bytes, int, TraceFate], ...]
    waiting: tuple[tuple[bytes, int, tuple[tuple[bytes, SavedLink], ...]], ...]
    unbound: tuple[tuple[str, int, tuple[EarlyJoin, ...]], ...]


class StitchingMemory:
    """All that is remembered. Times are Unix nanoseconds, of pipeline time unless said otherwise."""

    def __init__(
        self, config: Config, forgotten: Metric, late: Metric, labels: tuple[str, ...], most_bytes: int = 0
    ) -> None:
        """Remember as much as `config` allows, by the upper estimate at most `most_bytes` (0: no bound)."""
        self._config = config
        self._most_bytes = most_bytes
        self._metric = forgotten
        self._late = late
        self._labels = labels
        self._pods: Recent[str, AttemptChain] = Recent(config.max_pods, config.ttl, self._pod_forgotten)
        self._attempts: dict[bytes, NumberedAttempt] = {}
        self.clocks = ClockPairs()
        self.creations = CreationMemory(config.max_pods, config.ttl, partial(self._count, "creation"))
        self.owners = OwnerMemory(config.max_pods, config.ttl, partial(self._count, "owner"))
        self.directory = PodDirectory(config.max_pods, config.ttl, self._name_forgotten)
        self._fates: Recent[bytes, TraceFate] = Recent(config.max_traces, config.ttl, partial(self._count, "trace"))
        self._waiting: Recent[bytes, dict[bytes, Link]] = Recent(
            config.max_waiting_links, config.ttl, self._link_forgotten
        )
        self._unbound: Recent[str, dict[bytes, EarlyJoin]] = Recent(config.max_pods, config.ttl, self._early_forgotten)
        self._awaited: Counter[bytes] = Counter()
        self._links = 0
        self._parts: Sequence[_Part] = (
            self._pods,
            self._fates,
            self._waiting,
            self._unbound,
            self.directory,
            self.owners,
            self.creations,
        )

    def _count(self, what: str, _key: object, _value: object, reason: Reason) -> None:
        self._metric.add(1, *self._labels, what, reason)

    def expire(self, now: int) -> None:
        """Forget what is too old, and the oldest of what takes more memory than it may."""
        for part in self._parts:
            part.expire(now)
        while self._most_bytes and self.size() > self._most_bytes:
            self.shrink(_PARTS)

    def deadline(self) -> int | None:
        """Return when the first entry is too old; None if there is none."""
        return first(part.deadline() for part in self._parts)

    def shrink(self, parts: int) -> None:
        """Forget the oldest of so many equal parts of everything, because memory is short."""
        for part in self._parts:
            part.shrink(parts)

    def sizes(self) -> Mapping[str, int]:
        """Return how many entries there are of each kind."""
        return {
            "pod": len(self._pods),
            "attempt": len(self._attempts),
            "trace": len(self._fates),
            "link": self._links,
            "early_join": sum(map(len, (early for _, early, _ in self._unbound.dated()))),
            "owner": len(self.owners),
            "creation": len(self.creations),
            **self.directory.sizes(),
        }

    def size(self) -> int:
        """Return an upper estimate of the bytes that all entries take."""
        return (
            len(self._pods) * _POD_BYTES
            + len(self._attempts) * _ATTEMPT_BYTES
            + len(self._fates) * _TRACE_BYTES
            + self._links * _LINK_BYTES
            + len(self._unbound) * _EARLY_BYTES
            + len(self.owners) * _OWNER_BYTES
            + len(self.creations) * _CREATION_BYTES
            + self.directory.size()
        )

    def saved(self) -> "SavedStitching":
        """Return all that is remembered."""
        waiting = [
            (target, seen, tuple([(source, saved_link(link)) for source, link in of_target.items()]))
            for target, of_target, seen in self._waiting.dated()
        ]
        unbound = [(uid, seen, tuple(early.values())) for uid, early, seen in self._unbound.dated()]
        return SavedStitching(
            *(self.directory.saved(), self.clocks.saved(), self.owners.saved(), self.creations.saved()),
            tuple([(uid, seen, chain.saved()) for uid, chain, seen in self._pods.dated()]),
            *(self._fates.saved(), tuple(waiting), tuple(unbound)),
        )

    def restore(self, saved: "SavedStitching") -> None:
        """Remember what was saved; meant for an empty memory."""
        self.directory.restore(saved.directory)
        self.clocks.restore(saved.clocks)
        self.owners.restore(saved.owners)
        self.creations.restore(saved.creations)
        self._pods.restore([(uid, seen, AttemptChain.restored(chain)) for uid, seen, chain in saved.pods])
        self._attempts = {one.key: one for _, chain, _ in self._pods.dated() for one in chain.attempts}
        self._fates.restore(saved.fates)
        waiting = [
            (target, seen, {source: restored_link(link) for source, link in of_target})
            for target, seen, of_target in saved.waiting
        ]
        for target, _, of_target in waiting:
            self._awaited[target[:16]] += len(of_target)
            self._links += len(of_target)
        self._waiting.restore(waiting)
        self._unbound.restore([(uid, seen, {one.span: one for one in early}) for uid, seen, early in saved.unbound])

    def move_in(self, other: "StitchingMemory") -> None:
        """Take what another remembers, as far as there is room; meant for an empty memory."""
        self.directory.take_over(other.directory)
        self.clocks.take_over(other.clocks)
        self.owners.take_over(other.owners)
        self.creations.take_over(other.creations)
        self._attempts = dict(other._attempts)
        self._awaited = Counter(other._awaited)
        self._links = other._links
        self._fates.move_in(other._fates)
        self._pods.move_in(other._pods)
        self._waiting.move_in(other._waiting)
        self._unbound.move_in(other._unbound)
        for _, chain, _ in self._pods.dated():
            for old in chain.trim(self._config.max_attempts_per_pod):
                self._attempt_forgotten(old, "full")
        self._bound()

    def _bound(self) -> None:
        while len(self._attempts) > self._config.max_attempts:
            self._pods.forget_oldest()
        while self._links > self._config.max_waiting_links:
            self._waiting.forget_oldest()

    # Traces

    def keep(self, trace_id: bytes, now: int) -> bool:
        """Remember that spans of a trace passed; return whether that was known, and is only newer now."""
        fate = self._fates.refresh(trace_id, now)
        return fate is not None and fate.kept

    def keep_new(self, trace_id: bytes, at: int, now: int) -> None:
        """Remember that the first spans of a trace passed; `at` is the start of one of them."""
        self._fates.put(trace_id, TraceFate(kept=True, at=at), now)

    def fate(self, trace_id: bytes) -> TraceFate | None:
        """Return what became of a trace; None when nothing is known."""
        return self._fates.get(trace_id)

    def decide(self, verdict: Verdict, now: int) -> None:
        """Learn from a sampler's verdict. Of what it kept the spans themselves will tell."""
        if verdict.decision == "sampled":
            return
        known_fate = self._fates.get(verdict.trace_id)
        if known_fate and known_fate.kept:
            return
        fate = fate_of(verdict)
        self._fates.put(verdict.trace_id, fate, now)
        for group in verdict.groups:
            for attempt in attempts_in(group.spans):
                self.learn(attempt, fate, self.directory.source(group.resource), now)

    def fate_of(self, span: bytes) -> TraceFate | None:
        """Return what became of the span with this trace and span id, as far as is known."""
        known = self._attempts.get(span)
        return known.fate if known else self._fates.get(span[:16])

    # Attempts

    def learn(self, attempt: Attempt, fate: TraceFate, source: SpanSource, now: int) -> NumberedAttempt | None:
        """Remember an attempt that passed or was dropped, and return it.

        One without a Pod's uid is not remembered: its chain is unknown. Nor is one that began before what is counted
        already.
        """
        uid = sound_uid(attempt.pod_uid)
        if not uid:
            return None
        place = in_cluster(source.cluster, sound_place(attempt.namespace, attempt.name))
        self.directory.learn_attempt(uid, place, attempt.trace_id, attempt.start, source, now)
        chain = self._pods.get(uid) or AttemptChain(uid, place)
        self._pods.put(uid, chain, now)
        known = self._attempts.get(attempt.trace_id + attempt.span_id)
        if known is not None:
            known.fate = fate if fate.kept else known.fate
            return known
        if not chain.reaches(attempt):
            self._late.add(1, *self._labels)
            return None
        known = self._attempts[attempt.trace_id + attempt.span_id] = NumberedAttempt.of(attempt, fate, source.clock)
        if chain.insert(known):
            self._late.add(1, *self._labels)
        for old in chain.trim(self._config.max_attempts_per_pod):
            self._attempt_forgotten(old, "full")
        self._bound()
        return known

    def attempt(self, key: bytes) -> NumberedAttempt | None:
        """Return the attempt with this trace and span id."""
        return self._attempts.get(key)

    def chain(self, uid: str) -> AttemptChain | None:
        """Return the attempts of a Pod."""
        return self._pods.get(uid)

    def _pod_forgotten(self, _uid: str, chain: AttemptChain, reason: Reason) -> None:
        self._metric.add(1, *self._labels, "pod", reason)
        for known in chain.attempts:
            self._attempt_forgotten(known, reason)

    def _attempt_forgotten(self, known: NumberedAttempt, reason: Reason) -> None:
        self._attempts.pop(known.key, None)
        self._metric.add(1, *self._labels, "attempt", reason)

    def _name_forgotten(self, what: str, reason: Reason) -> None:
        self._metric.add(1, *self._labels, what, reason)

    # Spans that came before the attempt that bound their Pod

    def await_binding(self, uid: str, early: EarlyJoin, now: int) -> None:
        """Keep what a span of a Pod would link to until an attempt has bound the Pod."""
        waiting = self._unbound.get(uid)
        if waiting is None:
            waiting = {}
        if len(waiting) >= _MOST_EARLY:
            self._metric.add(1, *self._labels, "early_join", "full")
        else:
            waiting[early.span] = early
        self._unbound.put(uid, waiting, now)

    def bound(self, uid: str) -> Sequence[EarlyJoin]:
        """Take out and return what waited for an attempt that bound a Pod."""
        return list((self._unbound.pop(uid) or {}).values())

    def _early_forgotten(self, _uid: str, waiting: dict[bytes, EarlyJoin], reason: Reason) -> None:
        self._metric.add(len(waiting), *self._labels, "early_join", reason)

    # Links that wait for the span they point to

    def has_story(self, trace_id: bytes) -> bool:
        """Say whether a trace is that of an attempt or of the kubelet's sync of a Pod."""
        return bool(self.directory.uid_of_trace(trace_id))

    def awaits(self, trace_id: bytes) -> bool:
        """Say whether a span of this trace was linked to and has not been told yet."""
        return trace_id in self._awaited

    def waits_for(self, span: bytes) -> bool:
        """Say whether the span with this trace and span id was linked to and has not been told yet."""
        return span in self._waiting

    def wait(self, target: bytes, source: bytes, back_link: Link, now: int) -> None:
        """Keep a back-link for a span, both given by their trace and span id, until `target` comes by."""
        waiting = self._waiting.get(target)
        if waiting is None:
            waiting = {}
        if len(waiting) >= _MOST_WAITING_PER_SPAN:
            self._metric.add(1, *self._labels, "link", "full")
        elif source not in waiting:
            waiting[source] = back_link
            self._awaited[target[:16]] += 1
            self._links += 1
        self._waiting.put(target, waiting, now)
        self._bound()

    def withdraw(self, target: bytes, source: bytes) -> Link | None:
        """Take back a back-link that still waits; None when it was delivered or forgotten."""
        waiting = self._waiting.get(target)
        link = waiting.pop(source, None) if waiting else None
        if link is not None:
            self._release(target, 1)
        if waiting is not None and not waiting:
            self._waiting.pop(target)
        return link

    def claim(self, target: bytes) -> list[Link]:
        """Take out and return all back-links that wait for a span."""
        waiting = self._waiting.pop(target)
        if not waiting:
            return []
        self._release(target, len(waiting))
        return list(waiting.values())

    def _link_forgotten(self, target: bytes, waiting: dict[bytes, Link], reason: Reason) -> None:
        self._metric.add(len(waiting), *self._labels, "link", reason)
        self._release(target, len(waiting))

    def _release(self, target: bytes, links: int) -> None:
        trace_id = target[:16]
        self._links -= links
        self._awaited[trace_id] -= links
        if self._awaited[trace_id] <= 0:
            del self._awaited[trace_id]
