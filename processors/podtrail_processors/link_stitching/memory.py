"""What stitching remembers: Pods with their attempts, fates of traces, links that wait. All of it bounded."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from operator import attrgetter

from podtrail.component import Counter as Metric
from podtrail.otlp import Attempt, Link, Verdict, attempts_in
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.neighbours import Creation
from podtrail_processors.link_stitching.numbering import AttemptChain, NumberedAttempt
from podtrail_processors.link_stitching.trace_fate import TraceFate, fate_of
from podtrail_processors.pod_identity import Places, sound_place, sound_uid
from podtrail_processors.recent import Reason, Recent

_MOST_WAITING_PER_SPAN = 128

# Bytes that an entry takes at most, as measured with the longest texts: what the gauge of memory multiplies.
_POD_BYTES, _ATTEMPT_BYTES, _TRACE_BYTES, _LINK_BYTES = 900, 900, 650, 1000
_CREATIONS_BYTES = 1600
_MOST_CREATIONS = 4
"""Creations remembered of one place: Pods of a StatefulSet come back under the same name."""


class StitchingMemory:
    """All that is remembered. Times are Unix nanoseconds, of pipeline time unless said otherwise."""

    def __init__(self, config: Config, forgotten: Metric, late: Metric, labels: tuple[str, ...]) -> None:
        self._config = config
        self._metric = forgotten
        self._late = late
        self._labels = labels
        self._pods: Recent[str, AttemptChain] = Recent(config.max_pods, config.ttl, self._pod_forgotten)
        self._attempts: dict[bytes, NumberedAttempt] = {}
        self._places = Places(config.max_pods)
        self._fates: Recent[bytes, TraceFate] = Recent(config.max_traces, config.ttl, partial(self._count, "trace"))
        self._waiting: Recent[bytes, dict[bytes, Link]] = Recent(
            config.max_waiting_links, config.ttl, self._link_forgotten
        )
        self._creations: Recent[str, tuple[Creation, ...]] = Recent(
            config.max_pods, config.ttl, partial(self._count, "creation")
        )
        self._awaited: Counter[bytes] = Counter()
        self._links = 0

    def _count(self, what: str, _key: object, _value: object, reason: Reason) -> None:
        self._metric.add(1, *self._labels, what, reason)

    def expire(self, now: int) -> None:
        """Forget what is too old."""
        self._pods.expire(now)
        self._fates.expire(now)
        self._waiting.expire(now)
        self._creations.expire(now)

    def sizes(self) -> Mapping[str, int]:
        """Return how many entries there are of each kind."""
        return {
            "pod": len(self._pods),
            "attempt": len(self._attempts),
            "trace": len(self._fates),
            "link": self._links,
            "creation": len(self._creations),
        }

    def size(self) -> int:
        """Return an upper estimate of the bytes that all entries take."""
        return (
            len(self._pods) * _POD_BYTES
            + len(self._attempts) * _ATTEMPT_BYTES
            + len(self._fates) * _TRACE_BYTES
            + self._links * _LINK_BYTES
            + len(self._creations) * _CREATIONS_BYTES
        )

    def move_in(self, other: "StitchingMemory") -> None:
        """Take what another remembers, as far as there is room; meant for an empty memory."""
        self._places.take_over(other._places)
        self._attempts = dict(other._attempts)
        self._awaited = Counter(other._awaited)
        self._links = other._links
        self._fates.move_in(other._fates)
        self._pods.move_in(other._pods)
        self._waiting.move_in(other._waiting)
        self._creations.move_in(other._creations)
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
                self.learn(attempt, fate, now)

    def fate_of(self, span: bytes) -> TraceFate | None:
        """Return what became of the span with this trace and span id, as far as is known."""
        known = self._attempts.get(span)
        return known.fate if known else self._fates.get(span[:16])

    # Requests that created Pods

    def note_creation(self, creation: Creation, now: int) -> None:
        """Remember a request that created a Pod."""
        known = self._creations.get(creation.place) or ()
        if creation not in known:
            known = tuple(sorted((*known, creation), key=attrgetter("at"))[-_MOST_CREATIONS:])
        self._creations.put(creation.place, known, now)

    def creation_before(self, place: str, time: int) -> Creation | None:
        """Return the last request before a time, by the clocks of spans, that created a Pod at a place."""
        known = self._creations.get(place) or ()
        return next((creation for creation in reversed(known) if creation.at <= time), None)

    # Attempts

    def learn(self, attempt: Attempt, fate: TraceFate, now: int) -> None:
        """Remember an attempt that passed or was dropped. One without a Pod's uid is not: its chain is unknown."""
        uid = sound_uid(attempt.pod_uid)
        if not uid:
            return
        chain = self._pods.get(uid) or AttemptChain(uid, sound_place(attempt.namespace, attempt.name))
        self._pods.put(uid, chain, now)
        if chain.place:
            self._places.note(chain.place, uid, attempt.start)
        known = self._attempts.get(attempt.trace_id + attempt.span_id)
        if known is not None:
            known.fate = fate if fate.kept else known.fate
            return
        if not chain.reaches(attempt):
            self._late.add(1, *self._labels)
            return
        known = self._attempts[attempt.trace_id + attempt.span_id] = NumberedAttempt.of(attempt, fate)
        if chain.insert(known):
            self._late.add(1, *self._labels)
        for old in chain.trim(self._config.max_attempts_per_pod):
            self._attempt_forgotten(old, "full")
        self._bound()

    def attempt(self, key: bytes) -> NumberedAttempt | None:
        """Return the attempt with this trace and span id."""
        return self._attempts.get(key)

    def chain(self, uid: str) -> AttemptChain | None:
        """Return the attempts of a Pod."""
        return self._pods.get(uid)

    def chain_at(self, place: str, at: int) -> AttemptChain | None:
        """Return the attempts of the Pod that was at `namespace/name` at a time by the clocks of spans."""
        return self._pods.get(self._places.uid_at(place, at))

    def _pod_forgotten(self, uid: str, chain: AttemptChain, reason: Reason) -> None:
        self._metric.add(1, *self._labels, "pod", reason)
        for known in chain.attempts:
            self._attempt_forgotten(known, reason)
        self._places.forget(chain.place, uid)

    def _attempt_forgotten(self, known: NumberedAttempt, reason: Reason) -> None:
        self._attempts.pop(known.key, None)
        self._metric.add(1, *self._labels, "attempt", reason)

    # Links that wait for the span they point to

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
