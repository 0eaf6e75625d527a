"""How a persistent queue writes batches into its store, and what has become of them; and reads both again.

    kind 0   spans          a request; note: number, spans, bytes
    kind 1   a verdict      the request of the spans that it was decided on; note: number, 0, bytes, the verdict in JSON
    kind 2   what ended     note: runs of numbers of which nothing is left, then numbers of which so many spans are left

Each batch has a number, which it keeps: numbers say in which order to send, wherever in the store a batch stands.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from podtrail.otlp import Batch, PolicyVote, Shadow, Verdict, read_request, write_request
from podtrail.storage import Entry

SPANS: Final = 0
VERDICT: Final = 1
ENDED: Final = 2

_HEAD = struct.Struct("<QIQ")
_COUNT = struct.Struct("<I")
_PAIR = struct.Struct("<QI")


class StoredHead(NamedTuple):
    """What is known of a stored batch without reading it."""

    number: int
    spans: int
    size: int
    """What it takes of a queue's capacity in bytes."""


class Ended(NamedTuple):
    """Which batches have come to an end, and how much is left of others."""

    runs: Sequence[tuple[int, int]]
    """First number of a run, and how many it has."""
    left: Mapping[int, int]
    """By number, the spans without an end: the last ones of the batch."""


def write_batch(number: int, batch: Batch, size: int) -> Entry:
    """Return the entry of a batch of spans, or of a single verdict."""
    if not batch.verdicts:
        note = _HEAD.pack(number, batch.span_count, size)
        return Entry(SPANS, write_request(batch.groups), batch.arrived, note)
    (verdict,) = batch.verdicts
    note = _HEAD.pack(number, 0, size) + json.dumps(_told(verdict), separators=(",", ":")).encode()
    return Entry(VERDICT, write_request(verdict.groups), batch.arrived, note)


def read_head(entry: Entry) -> StoredHead:
    """Return what is known of a batch's entry.

    Raises:
        ValueError: it is the entry of another kind of journal.
    """
    if entry.kind not in (SPANS, VERDICT) or len(entry.note) < _HEAD.size:
        raise ValueError("is no batch of a queue")
    return StoredHead(*_HEAD.unpack_from(entry.note))


def read_batch(entry: Entry) -> Batch:
    """Return the batch of an entry.

    Raises:
        MalformedRequest: it is none.
    """
    groups = read_request(entry.body, zero_ids=True).groups
    if entry.kind == SPANS:
        return Batch(groups, entry.arrival)
    told = json.loads(entry.note[_HEAD.size :])
    explainer = None
    if told["explained"] is not None:
        shadow = None if told["shadow"] is None else Shadow(**told["shadow"])
        explainer = _Remembered(shadow, [PolicyVote(*vote) for vote in told["explained"]])
    trace_id = bytes.fromhex(told["trace_id"])
    verdict = Verdict(trace_id, **told["verdict"], groups=groups, explainer=explainer)
    return Batch([], entry.arrival, [verdict])


def write_ended(numbers: Sequence[int], left: Mapping[int, int]) -> Entry:
    """Return the entry that says that so many batches have come to an end, in ascending order, and others in part."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and sum(runs[-1]) == number:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((number, 1))
    pairs = [_PAIR.pack(*pair) for pair in (*runs, *left.items())]
    return Entry(ENDED, note=b"".join([_COUNT.pack(len(runs)), *pairs]))


def read_ended(entry: Entry) -> Ended:
    """Return what an entry says of ends.

    Raises:
        ValueError: it is the entry of another kind of journal.
    """
    if len(entry.note) < _COUNT.size or (len(entry.note) - _COUNT.size) % _PAIR.size:
        raise ValueError("is no list of ended batches")
    (count,) = _COUNT.unpack_from(entry.note)
    pairs = list(_PAIR.iter_unpack(entry.note[_COUNT.size :]))
    return Ended(pairs[:count], dict(pairs[count:]))


def parts(batch: Batch) -> Iterator[Batch]:
    """Yield what is stored of a batch by itself: its spans, and each of its verdicts."""
    if batch.groups:
        yield Batch(batch.groups, batch.arrived)
    for verdict in batch.verdicts:
        yield Batch([], batch.arrived, [verdict])


@dataclass(frozen=True, slots=True)
class _Remembered:
    """What a sampler said of a verdict when it was stored."""

    shadow: Shadow | None
    votes: Sequence[PolicyVote]

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:  # noqa: ARG002 - of this one alone
        return self.votes


def _told(verdict: Verdict) -> Mapping[str, Any]:
    return {
        "trace_id": verdict.trace_id.hex(),
        "verdict": {
            "decision": verdict.decision,
            "policy": verdict.policy,
            "reason": verdict.reason,
            "decided_at": verdict.decided_at,
            "arrived": verdict.arrived,
            "spans": verdict.spans,
            "votes": dict(verdict.votes),
            "dry_run": verdict.dry_run,
            "late": verdict.late,
        },
        "explained": None if verdict.explainer is None else [list(vote) for vote in verdict.explained()],
        "shadow": None if verdict.shadow is None else _shadow(verdict.shadow),
    }


def _shadow(shadow: Shadow) -> Mapping[str, Any]:
    return {**shadow._asdict(), "votes": dict(shadow.votes), "set_votes": dict(shadow.set_votes)}
