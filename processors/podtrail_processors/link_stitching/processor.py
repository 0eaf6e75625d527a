"""Holds spans that concern a Pod's story for the reorder window, then stitches them; all else passes at once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from podtrail.component import Context, Taken
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, Group, raw_span_reader
from podtrail.recent import first
from podtrail.state import StateShape, known_version
from podtrail_processors.link_stitching.amendment import Amendment, amendment_groups
from podtrail_processors.link_stitching.config import Config
from podtrail_processors.link_stitching.lifecycle.lifecycles import Lifecycles, SavedLives
from podtrail_processors.link_stitching.lifecycle.merger import Merger, SavedTraces
from podtrail_processors.link_stitching.lifecycle.saved_values import SavedLink, restored_link, saved_link
from podtrail_processors.link_stitching.memory import SavedStitching, StitchingMemory
from podtrail_processors.link_stitching.originals import Originals
from podtrail_processors.link_stitching.prefilter import is_marked, may_link
from podtrail_processors.link_stitching.reading import GroupReader
from podtrail_processors.link_stitching.reorder_window import ReorderWindow, SavedWindow
from podtrail_processors.link_stitching.stitcher import Stitcher

_STEPS = 16
_LEAST_STEP = SECOND
"""Entries are forgotten at times that are this part of `ttl` apart, or so many nanoseconds if that is more."""
_read_start = raw_span_reader(("start_time_unix_nano",))


@dataclass(slots=True)
class _Leaving:
    """A batch in the making."""

    groups: list[Group] = field(default_factory=list)
    arrived: int = 0
    spans: int = 0


class _Saved(NamedTuple):
    memory: SavedStitching
    held: SavedWindow
    amendments: tuple[tuple[bytes, SavedLink, int], ...]
    lives: SavedLives | None
    merger: SavedTraces | None
    forgetting: int | None


_SHAPE: Final = StateShape[_Saved](_Saved)


class LinkStitching:
    """The processor `link_stitching`."""

    def __init__(self, config: Config, context: Context) -> None:
        metrics = context.metrics
        self._config = config
        self._ledger = context.ledger
        self._labels = (context.id,)
        self._memory = StitchingMemory(
            config,
            metrics.counter(
                "otelcol_processor_link_stitching_forgotten",
                "What is no longer remembered, by kind and by why: `ttl` or `full`.",
                ("processor", "what", "reason"),
            ),
            metrics.counter(
                "otelcol_processor_link_stitching_late_attempts",
                "Attempts that came after later ones of their Pod had left with their numbers.",
                ("processor",),
            ),
            self._labels,
            config.most_remembered_bytes(context.memory_budget),
        )
        self._forgetting_step = max(_LEAST_STEP, config.ttl // _STEPS)
        self._forgetting: int | None = None
        """When entries may be too old next: looked up in steps, as every deadline is asked for often."""
        context.enriching.register(self)
        self._reader = GroupReader(self._memory)
        self._room = ReorderWindow()
        self._stitcher = Stitcher(self._memory, self._room, context, amend=config.amendments)
        self._lives: Lifecycles | None = None
        self._merger: Merger | None = None
        if config.mode == "merge":
            self._merger = Merger(self._memory.directory, config.max_traces, config.ttl, context)
        if config.mode != "link":
            known = Originals(self._memory, self._merger)
            self._lives = Lifecycles(config.lifecycle, config.max_traces, config.ttl, known, context)
        self._amended = metrics.counter(
            "otelcol_processor_link_stitching_amendments", "Amendment spans sent.", ("processor",)
        )
        self._early = metrics.counter(
            "otelcol_processor_link_stitching_left_early", "Spans that left early for want of room.", ("processor",)
        )
        remembered = metrics.gauge(
            "otelcol_processor_link_stitching_remembered", "Entries remembered.", ("processor", "pipeline", "what")
        )
        for what in self._memory.sizes():
            remembered.read_from(partial(self._remembered, what), context.id, context.pipeline, what)
        metrics.gauge(
            "otelcol_processor_link_stitching_memory_bytes",
            "Estimated bytes of what is remembered and held.",
            ("processor", "pipeline"),
        ).read_from(self._size, context.id, context.pipeline)

    def _remembered(self, what: str) -> int:
        return self._memory.sizes()[what]

    def _size(self) -> int:
        return self.memory_size() + self._room.size

    def memory_size(self) -> int:
        """Return an upper estimate of the bytes that all remembered entries take; held spans not included."""
        lives = self._lives.size() if self._lives else 0
        return self._memory.size() + lives + (self._merger.size() if self._merger else 0)

    def shrink(self) -> None:
        """Forget the older half of everything that is remembered."""
        for memory in (self._memory, self._merger, self._lives):
            if memory is not None:
                memory.shrink(2)

    def _forget(self, now: int) -> None:
        self._memory.expire(now)
        if self._merger is not None:
            self._merger.expire(now)
        if self._lives is not None:
            self._lives.forget(now)
        if self._forgetting is not None and self._forgetting <= now:
            self._plan_forgetting()

    def _plan_forgetting(self) -> None:
        merger = self._merger.deadline() if self._merger else None
        lives = self._lives.forgetting() if self._lives else None
        due = first((self._memory.deadline(), merger, lives))
        self._forgetting = None if due is None else due - due % -self._forgetting_step

    @property
    def passes_on(self) -> bool:
        """Whether nothing is held to wait for spans that started earlier."""
        return not self._config.reorder_wait

    def add(self, batch: Batch, now: int) -> Taken:
        """Take a batch: learn from it, hold what is to be stitched, pass on the rest at once."""
        taken = self._take(batch, now)
        if self._forgetting is None:
            self._plan_forgetting()
        if self._lives is None:
            return taken
        for verdict in batch.verdicts:
            if verdict.decision != "sampled" and not verdict.dry_run:
                for group in filter(lambda group: is_marked(group.spans), verdict.groups):
                    self._reader.learn(group, now)
                self._lives.learn(verdict.groups, now)
        self._lives.learn(batch.groups, now)
        if self._forgetting is None:
            self._plan_forgetting()
        return Taken([*taken.out, *self._told(self._lives.expire(now, 0), now)])

    def _take(self, batch: Batch, now: int) -> Taken:
        self._forget(now)
        for verdict in batch.verdicts:
            self._memory.decide(verdict, now)
        passing: list[Group] = []
        held = 0
        for group in batch.groups:
            if self._concerns(group, now) and self._hold(group, batch.arrived, now):
                held += 1
            else:
                passing.append(group)
        if not held:
            return Taken([batch])
        out: list[Batch] = []
        if passing or batch.verdicts:
            out.append(Batch(passing, batch.arrived, batch.verdicts))
        return Taken([*out, *self._overflow(now)])

    def _concerns(self, group: Group, now: int) -> bool:
        if not self._memory.keep(group.trace_id, now):
            self._memory.keep_new(group.trace_id, _read_start(group.spans)[0].start_time_unix_nano, now)
        if self._merger is not None:
            return True
        return is_marked(group.spans) or self._memory.awaits(group.trace_id)

    def _hold(self, group: Group, arrived: int, now: int) -> bool:
        """Learn from a group, and hold it if there may be something to write on it; return whether that is so."""
        told = self._reader.learn(group, now)
        if self._merger is not None:
            self._merger.learn(group, told.clues.values(), now)
        elif not (told.stitchable or may_link(group.spans) or self._memory.awaits(group.trace_id)):
            return False
        self._room.put(group, arrived, now + self._config.reorder_wait, told.clues, told.creating)
        self._stitcher.announce(group, told.clues, now)
        for attempt in told.attempts:
            self._stitcher.settle(attempt, now)
        return True

    def _overflow(self, now: int) -> list[Batch]:
        """Return what can't stay: all that is due already (nothing waits with `reorder_wait: 0s`), and what is most."""
        out = self.expire(now, self._room.spans) if self._config.reorder_wait == 0 else ()
        early = _Leaving()
        while self._room.size > self._config.max_held_bytes:
            self._stitch(early, now)
        if early.groups:
            self._early.add(early.spans, *self._labels)
        return [*out, *self._gone(early)]

    def _stitch(self, leaving: _Leaving, now: int) -> None:
        held = self._room.take()
        stitched = self._stitcher.stitch(held, now)
        leaving.groups.append(self._merger.merged(stitched, held.clues.values()) if self._merger else stitched)
        leaving.spans += held.group.span_count
        leaving.arrived = min(leaving.arrived or held.arrived, held.arrived)

    def _gone(self, leaving: _Leaving) -> list[Batch]:
        if not leaving.groups:
            return []
        amendments = self._stitcher.take_amendments()
        if amendments:
            self._ledger.created += len(amendments)
            self._amended.add(len(amendments), *self._labels)
        for told in amendment_groups(amendments):
            leaving.groups.append(self._merger.merged(told, (), complete=True) if self._merger else told)
        return [Batch(leaving.groups, leaving.arrived)]

    def _told(self, lives: Sequence[Group], now: int) -> list[Batch]:
        """Return spans of lifecycles as a batch."""
        if not lives:
            return []
        told = Batch([self._merger.relinked(life) for life in lives] if self._merger else lives, now)
        self._ledger.created += told.span_count
        return [told]

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        """Let go of what was held for long enough, in the order in which it came, and tell lives that are due."""
        leaving = _Leaving()
        while leaving.spans < limit and (due := self._room.due()) is not None and due <= now:
            self._stitch(leaving, now)
        gone = self._gone(leaving)
        if leaving.spans >= limit:
            return gone
        due = self.deadline()
        if due is None or due > now:
            return gone
        if self._lives is not None:
            gone += self._told(self._lives.expire(now, limit - leaving.spans), now)
        if self._forgetting is not None and self._forgetting <= now:
            self._forget(now)
            if self._lives is not None:
                gone += self._told(self._lives.expire(now, 0), now)
        # Forgetting is work, and so is a life that has nothing to report.
        return gone or [Batch([], now)]

    def deadline(self) -> int | None:
        """Return when the first held spans leave, the first life is reported or the first entries are forgotten."""
        return first((self._room.due(), self._lives.deadline() if self._lives else None, self._forgetting))

    def held(self) -> int:
        """Return the number of spans held."""
        return self._room.spans

    def held_since(self) -> int | None:
        """Return the arrival of the oldest span held."""
        return self._room.oldest()

    state_version = 1

    def save_state(self) -> Any:
        """Return what is held and remembered."""
        lives = self._lives.saved() if self._lives else None
        merger = self._merger.saved() if self._merger else None
        waiting = tuple([(one.target, saved_link(one.link), one.at) for one in self._stitcher.amendments])
        return _Saved(self._memory.saved(), self._room.saved(), waiting, lives, merger, self._forgetting)

    def restore_state(self, version: int, state: Any) -> None:
        """Hold and remember what was saved."""
        known_version(version, 1)
        saved = _SHAPE.read(state)
        self._memory.restore(saved.memory)
        self._room.restore(saved.held)
        self._stitcher.amendments.extend(
            [Amendment(target, restored_link(link), at) for target, link, at in saved.amendments]
        )
        if self._lives is not None and saved.lives is not None:
            self._lives.restore(saved.lives)
        if self._merger is not None and saved.merger is not None:
            self._merger.restore(saved.merger)
        self._forgetting = saved.forgetting

    def take_over(self, predecessor: "LinkStitching", now: int) -> None:
        """Take what the predecessor holds, with its deadlines, and what it remembers, as far as there is room here."""
        self._memory.move_in(predecessor._memory)
        self._memory.expire(now)
        self._room.move_in(predecessor._room)
        if self._merger is not None and predecessor._merger is not None:
            self._merger.move_in(predecessor._merger)
        if self._lives is not None and predecessor._lives is not None:
            self._lives.move_in(predecessor._lives, now)
        self._plan_forgetting()
        self._forgetting = first((self._forgetting, predecessor._forgetting))

    def drain(self, now: int) -> Sequence[Batch]:
        """Let go of everything, numbered and linked by what is known now."""
        leaving = _Leaving()
        while self._room:
            self._stitch(leaving, now)
        return [*self._gone(leaving), *self._told(self._lives.drain(now) if self._lives else (), now)]
