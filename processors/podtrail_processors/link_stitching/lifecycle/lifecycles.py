"""The lives of all Pods: learns from what passes and what a sampler dropped, and tells each life when it is due."""

import heapq
from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple

from podtrail.component import Context
from podtrail.lru import Lru, forget_oldest
from podtrail.otlp import Group, Value, cluster_name
from podtrail.recent import Recent, first
from podtrail_processors.link_stitching.lifecycle.config import LifecycleSettings
from podtrail_processors.link_stitching.lifecycle.ids import trace_id_of
from podtrail_processors.link_stitching.lifecycle.part import ATTEMPT, FAILED_START, QUEUED, Part, bounded
from podtrail_processors.link_stitching.lifecycle.pod_lifecycle import PodLifecycle, SavedLife
from podtrail_processors.link_stitching.lifecycle.reading import Told, is_told, told_in
from podtrail_processors.link_stitching.lifecycle.runtime_calls import RuntimeCalls, SavedCalls
from podtrail_processors.link_stitching.lifecycle.writing import NAME, STATE, Known, life_group

_TIMEOUT: Final = "timeout"
_LONGEST_NAME: Final = 253
_FEW: Final = 64
_ROOTS_PER_LIFE: Final = 8

# What an entry takes, as measured.
_LIFE_BYTES, _PART_BYTES, _TOLD_BYTES, _ROOT_BYTES = 1300, 2000, 90, 270


class SavedLives(NamedTuple):
    """All lives in a saved state."""

    lives: tuple[tuple[str, int, SavedLife], ...]
    rooted: tuple[str, ...]
    calls: SavedCalls
    dues: tuple[tuple[int, str], ...]
    out: tuple[Group, ...]
    out_since: int


class Lifecycles:
    """All lives that are remembered. Times are Unix nanoseconds of pipeline time."""

    def __init__(self, settings: LifecycleSettings, traces: int, ttl: int, known: Known, context: Context) -> None:
        """Remember so many traces, and what is not heard of for `ttl` no longer."""
        self._settings = settings
        self._known = known
        self._labels = (context.id,)
        self._lives: Recent[str, PodLifecycle] = Recent(settings.max_pods, ttl, self._life_forgotten)
        self._rooted: Lru[str, None] = Lru(_ROOTS_PER_LIFE * settings.max_pods)
        """Whose roots were sent: Pods live for longer than what was told of them is remembered."""
        self._calls = RuntimeCalls(traces, settings.max_waiting_calls, ttl, self._forgotten)
        self._dues: list[tuple[int, str]] = []
        self._out: list[Group] = []
        self._out_since = 0
        metrics = context.metrics
        self._spans = metrics.counter(
            "otelcol_processor_link_stitching_lifecycle_spans",
            "Spans of lifecycles that were sent, by part.",
            ("processor", "part"),
        )
        self._states = metrics.counter(
            "otelcol_processor_link_stitching_lifecycles",
            "Lifecycles whose root was sent, by what the Pod had come to.",
            ("processor", "state"),
        )
        self._lost = metrics.counter(
            "otelcol_processor_link_stitching_lifecycle_forgotten",
            "What lifecycles no longer remember, by kind and by why: `ttl`, `full`, or `ambiguous` for calls in the "
            "trace of several Pods.",
            ("processor", "what", "reason"),
        )
        metrics.gauge(
            "otelcol_processor_link_stitching_lifecycle_remembered",
            "Entries that lifecycles remember.",
            ("processor", "pipeline", "what"),
        ).read_all_from(partial(self._remembered, context.id, context.pipeline), context.id, context.pipeline)

    def _remembered(self, processor: str, pipeline: str) -> dict[tuple[str, ...], float]:
        sizes = {"pod": len(self._lives), "call": len(self._calls), "due": len(self._dues)}
        return {(processor, pipeline, what): size for what, size in sizes.items()}

    def size(self) -> int:
        """Return an estimate of the bytes that all entries take, parts with the longest messages."""
        lives = [(len(life.parts), len(life.told)) for _, life, _ in self._lives.dated()]
        parts = sum([parts for parts, _ in lives]) + len(self._calls)
        told = sum([told for _, told in lives])
        entries = len(lives) * _LIFE_BYTES + len(self._rooted) * _ROOT_BYTES
        return entries + parts * _PART_BYTES + told * _TOLD_BYTES

    def learn(self, groups: Iterable[Group], now: int) -> None:
        """Learn from spans, whether they pass or were dropped."""
        for group in groups:
            if is_told(group.spans):
                cluster = cluster_name(group.resource)
                for told in told_in(group):
                    self._learn(told, group.trace_id, cluster, now)

    def _learn(self, told: Told, trace_id: bytes, cluster: str, now: int) -> None:
        uid = told.uid or self._calls.pod_of(trace_id)
        if not uid:
            if told.part:
                self._calls.wait(trace_id, bounded(told.part), now)
            return
        waited = self._calls.note(trace_id, uid, now) if told.of_trace else ()
        life = self._lives.get(uid)
        known = life is not None
        life = life or PodLifecycle(uid, now + self._settings.timeout, rooted=uid in self._rooted)
        self._lives.put(uid, life, now)
        if not known:
            self._push(life)
        life.namespace = life.namespace or told.namespace[:_LONGEST_NAME]
        life.name = life.name or told.name[:_LONGEST_NAME]
        life.node = life.node or told.node[:_LONGEST_NAME]
        life.cluster = life.cluster or cluster
        life.watched = life.watched or told.watched
        for part in (bounded(told.part) if told.part else None, *waited):
            if part is not None:
                self._take(life, part, now)

    def _take(self, life: PodLifecycle, part: Part, now: int) -> None:
        if len(life.parts) >= self._settings.max_parts_per_pod and part.key not in life.parts:
            self._forgotten("part", "full", 1)
            return
        if not life.take(part):
            return
        soon = life.completed_by(part) or life.rooted
        if soon or not life.due:
            self._due_by(life, now + (self._settings.wait if soon else self._settings.timeout))

    def _due_by(self, life: PodLifecycle, due: int) -> None:
        if not life.due or due < life.due:
            life.due = due
            self._push(life)

    def _push(self, life: PodLifecycle) -> None:
        heapq.heappush(self._dues, (life.due, life.uid))
        if len(self._dues) > 2 * len(self._lives) + _FEW:
            self._dues = [(one.due, uid) for uid, one, _ in self._lives.dated() if one.due]
            heapq.heapify(self._dues)

    def deadline(self) -> int | None:
        """Return when a life is due."""
        return self._out_since if self._out else self._first_due()

    def _first_due(self) -> int | None:
        while self._dues:
            due, uid = self._dues[0]
            life = self._lives.get(uid)
            if life is not None and life.due == due:
                return due
            heapq.heappop(self._dues)
        return None

    def forgetting(self) -> int | None:
        """Return when the first entry is too old; None if there is none."""
        return first((self._lives.deadline(), self._calls.deadline()))

    def forget(self, now: int) -> None:
        """Forget what is too old; lives are reported before, with the next `expire`."""
        self._calls.expire(now)
        self._lives.expire(now)

    def shrink(self, parts: int) -> None:
        """Forget the oldest of so many equal parts; lives are reported before, with the next `expire`."""
        self._calls.shrink(parts)
        self._lives.shrink(parts)
        forget_oldest(self._rooted, parts)

    def expire(self, now: int, limit: int) -> list[Group]:
        """Return what is due by now, about `limit` spans of it, and what had to go early."""
        spans = sum([group.span_count for group in self._out])
        while spans < limit and (due := self._first_due()) is not None and due <= now:
            life = self._lives.get(heapq.heappop(self._dues)[1])
            assert life is not None, "what is due first is remembered"
            spans += self._tell(life, _TIMEOUT)
        out, self._out = self._out, []
        return out

    def drain(self, now: int) -> list[Group]:
        """Return all that is known and was not told."""
        for _, life, _ in list(self._lives.dated()):
            if life.due:
                self._tell(life, "unfinished")
        return self.expire(now, 1)

    def _tell(self, life: PodLifecycle, otherwise: str) -> int:
        """Tell what is new of a life, with its root if that was not sent; return how many spans that takes."""
        life.due = 0
        if life.parts:
            self._ask(life)
        parts, surplus = life.tell(self._settings.max_parts_per_pod)
        told = [part for part in parts if part.kind == QUEUED or not self._is_in(life, part.original)]
        if surplus:
            self._forgotten("part", "full", surplus)
        root = None if life.rooted or not parts else self._root(parts, life.state or otherwise)
        if not told and root is None:
            return 0
        group = life_group(life, told, self._known, root)
        for part in told:
            self._spans.add(1, *self._labels, part.kind)
        if root is not None:
            life.rooted = True
            self._rooted.put(life.uid, None)
            self._spans.add(1, *self._labels, NAME)
            self._states.add(1, *self._labels, str(root.attributes[STATE]))
        self._out.append(group)
        return group.span_count

    def _is_in(self, life: PodLifecycle, original: bytes) -> bool:
        """Say whether a span is in the trace of a life itself, or will be: nothing has to stand for it there."""
        return original[:16] == trace_id_of(life.uid) or self._known.moved(original)

    def _ask(self, life: PodLifecycle) -> None:
        """Take what is known only now that all has been stitched: the requests that created and bound the Pod."""
        attempts = [part.original for part in life.parts.values() if part.kind == ATTEMPT]
        for part in (self._known.creation(life.uid), *map(self._known.binding, attempts)):
            if part is not None:
                life.take(part)

    def _root(self, parts: list[Part], state: str) -> Part:
        attempts = [part for part in parts if part.kind == ATTEMPT]
        attributes: dict[str, Value] = {STATE: state}
        if attempts:
            attributes["podtrail.lifecycle.attempts"] = max(
                len(attempts), *[self._known.number(part.original) for part in attempts]
            )
        start, end = min(part.start for part in parts), max(part.end for part in parts)
        failures = [part.error for part in parts if part.error and part.kind in (ATTEMPT, FAILED_START)]
        error = failures[-1] if failures and state == _TIMEOUT else ""
        return Part(NAME, b"", start, max(start, end), b"", "", attributes=attributes, error=error)

    def _life_forgotten(self, _uid: str, life: PodLifecycle, reason: str) -> None:
        self._forgotten("pod", reason, 1)
        if life.due:
            self._tell(life, "forgotten")

    def _forgotten(self, what: str, reason: str, count: int) -> None:
        self._lost.add(count, *self._labels, what, reason)

    def saved(self) -> "SavedLives":
        """Return all lives."""
        return SavedLives(
            tuple([(uid, seen, life.saved()) for uid, life, seen in self._lives.dated()]),
            *(tuple(self._rooted), self._calls.saved(), tuple(self._dues), tuple(self._out), self._out_since),
        )

    def restore(self, saved: "SavedLives") -> None:
        """Remember lives that were saved."""
        self._lives.restore([(uid, seen, PodLifecycle.restored(life)) for uid, seen, life in saved.lives])
        for uid in saved.rooted:
            self._rooted.put(uid, None)
        self._calls.restore(saved.calls)
        self._dues, self._out, self._out_since = [*saved.dues], [*saved.out], saved.out_since
        heapq.heapify(self._dues)

    def move_in(self, other: "Lifecycles", now: int) -> None:
        """Take what another remembers, as far as there is room; meant for an empty memory."""
        self._out_since = now
        for uid in other._rooted:
            self._rooted.put(uid, None)
        self._calls.move_in(other._calls)
        self._lives.move_in(other._lives)
        self._dues = [(life.due, uid) for uid, life, _ in self._lives.dated() if life.due]
        heapq.heapify(self._dues)
