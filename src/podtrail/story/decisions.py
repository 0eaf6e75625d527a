"""The latest decisions of the samplers, kept and dropped traces alike, in two tiers bounded in bytes.

The latest are held with the spans they were decided on, so that each policy can still say why it voted as it did, on
which span and value. What leaves this tier for lack of room keeps its short form: who decided what, and the votes.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from podtrail.otlp import ROOT_NAME, Decision, Group, PolicyVote, Verdict, raw_span_reader
from podtrail.story.policies import Votes, shadow_votes
from podtrail.story.words import clip

_SHARE_OF_SHORT = 4
"""A quarter of the memory is for short forms."""
_SHARE_OF_ONE = 8
"""No trace may fill more than an eighth of the tier with spans."""
_WHOLE_SIZE = 1_050
_SHORT_SIZE = 750
_GROUP_SIZE = 250
_VOTES_SIZE = 50
"""Rows of votes are shared by the decisions that have the same."""
_MAX_TEXT = 1_000
_MAX_TITLE = 200
_MAX_SHARED = 4_096
_read = raw_span_reader(("parent_span_id", "name"))


class DecidedPod(NamedTuple):
    """The Pod whose attempt was decided on."""

    key: str
    namespace: str
    name: str
    cluster: str = ""


@dataclass(slots=True)
class DecisionEntry:
    """One decision as it is held."""

    seq: int
    """Its place among all decisions, from 1."""
    pipeline: str
    trace_id: bytes
    decision: Decision
    policy: str
    reason: str
    decided_at: int
    arrived: int
    """Arrival of the trace's first span; both Unix nanoseconds."""
    spans: int
    votes: Votes
    shadows: Votes
    """Of policies that are only tried."""
    dry_run: bool
    """Its spans pass all the same."""
    only_followed: bool
    """It is about late spans that followed what was decided before: no policy was asked about them."""
    owner: DecidedPod | None
    title: str
    """The name of the trace's root, where it is no attempt and was asked for or its spans are gone; "" else."""
    size: int
    verdict: Verdict | None = field(default=None, repr=False)
    """While the spans are held."""

    def root(self) -> str:
        """Return the name of the trace's root; "" where it is not known. Read once."""
        if self.owner is not None:
            return ROOT_NAME
        verdict = self.verdict  # who searches in a thread may find it let go of meanwhile
        if verdict is not None and not self.title:
            self.title = title_of(verdict.groups)
        return self.title


class DecisionRing:
    """Remembers decisions, the latest first to last; the oldest go when there is no room."""

    def __init__(self, max_bytes: int) -> None:
        """Hold at most about `max_bytes`."""
        self._max_short = max_bytes // _SHARE_OF_SHORT
        self._max_whole = max_bytes - self._max_short
        self._entries: OrderedDict[int, DecisionEntry] = OrderedDict()
        self._of_trace: dict[bytes, list[int]] = {}
        self._first_whole = 1
        self._whole_size = self._short_size = 0
        self._shared: dict[Votes, Votes] = {}
        self.taken = 0
        """Decisions since the start."""
        self.forgotten = 0
        """Of these, decisions that are no longer held."""

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size(self) -> int:
        """About how many bytes are held."""
        return self._whole_size + self._short_size

    @property
    def since(self) -> int | None:
        """When the oldest decision was made that is held; None while there is none."""
        return next((entry.decided_at for entry in self._entries.values()), None)

    @property
    def whole_since(self) -> int | None:
        """When the oldest decision was made whose votes can still be explained."""
        entry = self._entries.get(self._first_whole)
        return entry.decided_at if entry else None

    def note(self, pipeline: str, verdict: Verdict, owner: DecidedPod | None = None) -> None:
        """Remember a decision of a pipeline; a few us."""
        self.taken += 1
        size = _WHOLE_SIZE + sum(
            _GROUP_SIZE + len(group.resource) + len(group.scope) + len(group.spans) for group in verdict.groups
        )
        entry = DecisionEntry(
            seq=self.taken,
            pipeline=pipeline,
            trace_id=verdict.trace_id,
            decision=verdict.decision,
            policy=verdict.policy,
            reason=clip(verdict.reason, _MAX_TEXT),
            decided_at=verdict.decided_at,
            arrived=verdict.arrived,
            spans=verdict.spans,
            votes=self._share(tuple(verdict.votes.items())),
            shadows=self._share(shadow_votes(verdict.shadow)),
            dry_run=verdict.dry_run,
            only_followed=verdict.late and verdict.decision != "sampled",
            owner=owner,
            title="",
            size=size,
            verdict=verdict,
        )
        self._entries[entry.seq] = entry
        self._of_trace.setdefault(entry.trace_id, []).append(entry.seq)
        self._whole_size += size
        if size > self._max_whole // _SHARE_OF_ONE or not verdict.groups:
            self._shorten(entry)
        self._make_room(self._max_whole, self._max_short)

    def find(self, trace_id: bytes) -> Sequence[DecisionEntry]:
        """Return what was decided about a trace, the latest decision first, those that only followed another last."""
        found = [self._entries[seq] for seq in reversed(self._of_trace.get(trace_id, ()))]
        return sorted(found, key=lambda entry: entry.only_followed)

    def beginning(self, digits: bytes) -> Iterator[bytes]:
        """Yield the traces whose id begins so and whose decision is held."""
        return (trace_id for trace_id in self._of_trace if trace_id.startswith(digits))

    def latest(self, before: int | None = None) -> Iterator[DecisionEntry]:
        """Yield decisions, the latest first, of those before place `before`. Nothing may be noted meanwhile."""
        if before is None:
            yield from reversed(self._entries.values())
            return
        first = next(iter(self._entries), 0)
        for seq in range(min(before, self.taken + 1) - 1, first - 1, -1):
            yield self._entries[seq]

    def whole(self) -> list[DecisionEntry]:
        """Return the decisions that may have their spans, the latest first."""
        return list(islice(self.latest(), self.taken - self._first_whole + 1))

    def select(
        self, wanted: Callable[[DecisionEntry], bool] | None, limit: int, before: int | None = None
    ) -> tuple[list[DecisionEntry], int]:
        """Return at most `limit` decisions that are wanted, the latest first, and how many there are in all.

        None wants every decision.
        """
        if wanted is None:
            return list(islice(self.latest(before), limit)), len(self)
        return select(self.latest(), wanted, limit, before)

    def _share(self, votes: Votes) -> Votes:
        if len(self._shared) >= _MAX_SHARED:
            self._shared.clear()
        return self._shared.setdefault(votes, votes)

    def shrink(self) -> None:
        """Forget the older half, with the spans of half of those that have them."""
        self._make_room(self._whole_size // 2, self._short_size // 2)

    def _make_room(self, most_whole: int, most_short: int) -> None:
        while self._whole_size > most_whole:
            self._shorten(self._entries[self._first_whole])
        while self._short_size > most_short:
            oldest = next(iter(self._entries.values()))
            self._shorten(oldest)
            del self._entries[oldest.seq]
            self._short_size -= oldest.size
            self.forgotten += 1
            places = self._of_trace[oldest.trace_id]
            places.remove(oldest.seq)
            if not places:
                del self._of_trace[oldest.trace_id]

    def _shorten(self, entry: DecisionEntry) -> None:
        """Let go of the spans; what comes after the short entries is whole."""
        if entry.verdict is not None:
            if entry.owner is None:
                entry.title = entry.root()
            entry.verdict = None
            self._whole_size -= entry.size
            entry.size = short_size(entry)
            self._short_size += entry.size
        while (first := self._entries.get(self._first_whole)) is not None and first.verdict is None:
            self._first_whole = first.seq + 1


def select(
    entries: Iterable[DecisionEntry], wanted: Callable[[DecisionEntry], bool], limit: int, before: int | None = None
) -> tuple[list[DecisionEntry], int]:
    """Return at most `limit` of the entries that are wanted, and how many there are in all; a thread may do it."""
    found: list[DecisionEntry] = []
    matching = 0
    for entry in entries:
        if wanted(entry):
            matching += 1
            if len(found) < limit and (before is None or entry.seq < before):
                found.append(entry)
    return found, matching


def short_size(entry: DecisionEntry) -> int:
    """Return about how many bytes the short form of an entry takes."""
    named = sum(map(len, entry.owner)) if entry.owner else 0
    return _SHORT_SIZE + 2 * (len(entry.reason) + len(entry.title) + named) + _VOTES_SIZE


def votes_of(entry: DecisionEntry) -> Sequence[PolicyVote]:
    """Return the votes of a decision, explained while its spans are held."""
    if entry.verdict is not None:
        return entry.verdict.explained()
    tried = [PolicyVote(policy, "", vote, "", shadow=True) for policy, vote in entry.shadows]
    return [*(PolicyVote(policy, "", vote, "") for policy, vote in entry.votes), *tried]


def title_of(groups: Sequence[Group]) -> str:
    """Return the name of a trace's root, or of its first span; "" without one."""
    first: bytes | None = None
    for group in groups:
        for fields in _read(group.spans):
            if not fields.parent_span_id.strip(b"\0"):
                return clip(fields.name.decode("utf-8", "replace"), _MAX_TITLE)
            first = fields.name if first is None else first
    return clip((first or b"").decode("utf-8", "replace"), _MAX_TITLE)
