"""An attempt while it is put together: what lines, Events and conditions tell of it so far."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from podtrail.reconstruction.node_scores import NodeScores
from podtrail.reconstruction.utiltrace import Block

MOST_PLUGINS: Final = 128
MOST_VICTIMS: Final = 50
_BEGINNING: Final = 960
"""Characters of a message that an Event's note has for certain, multi-byte ones aside."""
_MISSING: Final = re.compile(r"%!(.)\([A-Z]+\)")
_FLAG: Final = re.compile(r"% +")
_NAMES_KEPT: Final = 10
POINTS: Final = {
    "PreFilter": "preFilter",
    "Filter": "filter",
    "PostFilter": "postFilter",
    "PreScore": "preScore",
    "Score": "score",
    "Reserve": "reserve",
    "Permit": "permit",
    "PreBind": "preBind",
    "Bind": "bind",
    "PostBind": "postBind",
}
"""Extension points as contextual logging names them, to KEP-5927's names."""


@dataclass(slots=True)
class PluginMarks:
    """What lines tell of one plugin at one extension point. Times are Unix nanoseconds."""

    first: int
    last: int
    refused: list[str] = field(default_factory=list)
    reason: str = ""


@dataclass(slots=True)
class Draft:
    """One attempt. Times are Unix nanoseconds; None or "" where nothing tells."""

    pod: str
    origin: str
    first: int
    """The first line of it."""
    begun: int | None = None
    """The line that says that it begins."""
    end: int = 0
    result: str = ""
    message: str = ""
    node: str = ""
    evaluated: int | None = None
    feasible: int | None = None
    chosen_at: int | None = None
    binding_at: int | None = None
    waiting_at: int | None = None
    """Since when it waited for a permit."""
    nominated: str = ""
    victims: list[str] = field(default_factory=list)
    victim_count: int | None = None
    plugins: dict[tuple[str, str], PluginMarks] = field(default_factory=dict)
    """By extension point and name."""
    scores: NodeScores | None = None
    totalled: int = 0
    details: int = 0
    """How many nodes' names it holds."""
    block: Block | None = None
    post_filtered: int | None = None
    failed_plugin: str = ""
    asked: frozenset[str] = frozenset()
    """Plugins that the scheduler's queue says have refused."""
    host: str = ""
    """Where the scheduler runs, by the Event."""
    minor: int = 0
    """The scheduler's minor release; 0 if the log does not have it."""
    profile: str = ""
    uid: str = ""
    group: str = ""
    wait: int | None = None
    throttled: int | None = None
    inferred: dict[str, str] = field(default_factory=dict)
    """What was concluded, and how."""
    sources: set[str] = field(default_factory=set)
    resolution: int = 1_000
    """Nanoseconds by which its end may be off."""

    @property
    def told_by(self) -> str:
        """Its sources, joined by ` + `."""
        return next(iter(self.sources)) if len(self.sources) == 1 else " + ".join(sorted(self.sources))

    @property
    def evident(self) -> bool:
        """Whether it is certain that there was an attempt, though nothing tells its end."""
        return self.begun is not None or self.block is not None

    @property
    def start(self) -> int:
        """The best that is known of its beginning."""
        if self.block is not None:
            return self.block.start if self.begun is None else min(self.begun, self.block.start)
        if self.begun is not None:
            return self.begun
        return min(self.first, self.end or self.first)

    def mark(self, point: str, plugin: str, time: int) -> PluginMarks | None:
        """Note that a plugin was at work; None when there are too many."""
        marks = self.plugins.get((point, plugin))
        if marks is None:
            if len(self.plugins) >= MOST_PLUGINS:
                return None
            marks = self.plugins[point, plugin] = PluginMarks(time, time)
        marks.last = max(marks.last, time)
        return marks

    def summarize(self) -> None:
        """Let go of what is told of single nodes, but for the best and the one that was selected."""
        if not self.details:
            return
        for marks in self.plugins.values():
            del marks.refused[_NAMES_KEPT:]
        if self.scores is not None:
            self.scores.close(self.node)
        self.details = 0

    def add_victims(self, names: Iterable[str]) -> None:
        """Note Pods that it preempts."""
        for name in names:
            if name not in self.victims and len(self.victims) < MOST_VICTIMS:
                self.victims.append(name)


class PodIdentity(NamedTuple):
    """Whose attempt it is, and which."""

    trace_id: bytes
    uid: str
    pod: str
    number: int
    counted: bool
    """The number is certain: all that was read tells of the Pod from its beginning."""
    profile: str
    parent: tuple[bytes, bytes] | None
    """Trace and span that an annotation of the Pod claims it was created in."""
    before: bytes | None
    """Trace id of the attempt before."""


class Rebuilt(NamedTuple):
    """An attempt that is put together."""

    draft: Draft
    identity: PodIdentity


class Words(NamedTuple):
    """A message, as far as it takes to tell it from others."""

    whole: int
    beginning: int
    cut: bool
    """It is the beginning of a longer one: Events are cut to 1,024 bytes."""

    @classmethod
    def of(cls, message: str) -> "Words":
        """Return a message's words; what becomes of a `%` in an Event's note, which is used as a format, is undone."""
        plain = _FLAG.sub("%", _MISSING.sub(r"%\1", message)) if "%" in message else message
        return cls(hash(plain), hash(plain[:_BEGINNING]), len(plain) >= _BEGINNING and plain.endswith(" ..."))

    def like(self, other: "Words") -> bool:
        """Say whether both are of one message."""
        return self.whole == other.whole or ((self.cut or other.cut) and self.beginning == other.beginning)


@dataclass(slots=True)
class AttemptEnd:
    """An attempt that has ended, as it is remembered to tell it from others."""

    end: int
    result: str
    words: Words
    repeated: bool = False
    """Told of by a series of Events, whose note may be an earlier one's."""
    draft: Draft | None = None
    """While it may still learn something."""
    uid: str = ""
    """Of its Pod, once that is settled; "" where it is not known."""
    event_at: int = 0
    """The exact time in the Event about it, Unix nanoseconds; 0 before there is one."""
