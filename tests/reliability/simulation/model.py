"""What must be true of a story when it is over, whatever happened in it. It knows nothing of how podtrail does it."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.reliability.simulation.backends import Delivery
from tests.reliability.simulation.clients import Request
from tests.reliability.simulation.scenario import Setup
from tests.reliability.simulation.traffic import SpanKey, key_of, keys_of_pieces
from tests.reliability.simulation.uninterrupted import Uninterrupted
from tests.reliability.simulation.witness import Arrived, Decided, Left, Step

EXPORTERS: Final[Mapping[str, str]] = {"traces": "otlp_grpc/backend", "traces/all": "otlp_grpc/archive"}
"""Where each pipeline leads to."""
NOTE_DELAY = 2.0
"""Seconds after an answer by which it is noted on a disk that is well: what was answered before is not sent again."""


@dataclass(slots=True)
class LifeEnd:
    """How a life of podtrail ended."""

    number: int
    at: float
    """Virtual seconds."""
    killed: bool
    power: bool = False
    wall_step: float = 0.0
    """By how many seconds the clock on the wall was put forward afterwards."""
    checkpoint: bool = True
    """Whether one was on the disk then: on a full one it goes first, which costs memories if the process is killed."""
    lost: int = 0
    """Spans that the ledger says were dropped behind the processors, or rejected."""


@dataclass(slots=True)
class Past:
    """All that is known of a story that is over."""

    setup: Setup
    requests: Mapping[int, Request]
    steps: Sequence[Step]
    decisions: Sequence[tuple[int, Decided]]
    deliveries: Sequence[Delivery]
    """Of all backends, in order of time."""
    ends: Sequence[LifeEnd]
    left: Sequence[Left] = ()
    """What left the processors."""
    unwell: Sequence[tuple[float, float]] = ()
    """When the disk was not well: from, to."""
    ever_consumers: int = 1
    names: Callable[[SpanKey], str] = bytes.hex
    last_life: int = field(default=0)


def judged(past: Past, expected: Uninterrupted, lives: Collection[int]) -> Iterator[str]:
    """Yield what is wrong with those lives, which one uninterrupted run is to be compared with."""
    ends = [end for end in past.ends if end.number in lives]
    deliveries = [delivery for delivery in past.deliveries if delivery.life in lives and delivery.kept]
    forgiving = any(end.killed for end in ends) and not past.setup.durable
    forgiving |= any(end.power for end in ends) and not past.setup.fsync
    forgets = _forgets(past, ends)
    if forgets and not forgiving:
        yield from _vanished(past, expected, lives)
    forgiving |= forgets
    # What was done since the last arrival, and not delivered, is done anew if the clock on the wall goes back.
    back_in_time = any(end.wall_step < 0 for end in ends)
    if not forgiving and not back_in_time:
        yield from _decisions(past, expected, lives)
    if past.setup.stored_queues and not past.setup.durable:
        return  # what a life has not delivered the next one does: `queues_judged`
    yield from _invented(past, expected, deliveries, complete=not forgiving and not back_in_time)
    if not forgiving:
        yield from _lost(past, expected, lives)
    if not forgiving and not (back_in_time and past.setup.stored_queues):  # queues on disk have it as it was done first
        # What was done, forgotten and done anew at earlier times says nothing of the order. Once the clock on the wall
        # went back each life goes on where the log ends.
        back = [end for at, end in enumerate(ends) if any(before.wall_step < 0 for before in ends[: at + 1])]
        known = [d for d in deliveries if not any(_forgotten(past, d, end) for end in back if d.life <= end.number)]
        yield from _order(past, expected, known)
    yield from _duplicates(past, deliveries, ends)


def _forgets(past: Past, ends: Sequence[LifeEnd]) -> bool:
    """Say whether memories may be lost: killed on a full disk, while a checkpoint had given way to the next one."""
    return any(end.killed and not end.checkpoint and _unwell(past, 0.0, end.at) for end in ends)


def queues_judged(past: Past, expected: Uninterrupted) -> Iterator[str]:
    """Yield what is wrong with the deliveries of queues on disk alone; `expected`: of all lives, one after the other.

    What processors hold dies with the process. What has left them is delivered, unless it left just before.
    """
    deliveries = [delivery for delivery in past.deliveries if delivery.kept]
    killed = {end.number: end for end in past.ends if end.killed}
    forgiving = any(end.power for end in past.ends) and not past.setup.fsync
    yield from _invented(past, expected, deliveries, complete=not killed)
    if not killed:
        yield from _lost(past, expected, {end.number for end in past.ends})
        if not past.unwell:  # what could not be written is refused, sent again, and goes through the processors again
            yield from _order(past, expected, deliveries)
    elif not forgiving:
        yield from _lost_on_disk(past, killed)
    yield from _duplicates(past, deliveries, past.ends)


def _lost_on_disk(past: Past, killed: Mapping[int, LifeEnd]) -> Iterator[str]:
    """Yield what left the processors, was to be on disk, and came nowhere."""
    excused = sum(end.lost for end in past.ends)
    acknowledged = {
        key
        for request in past.requests.values()
        if request.acknowledged is not None
        for key in keys_of_pieces(request.send.pieces)
    }
    by_exporter: dict[str, set[SpanKey]] = defaultdict(set)
    for delivery in past.deliveries:
        if delivery.kept or delivery.answer == "rejected" or past.setup.gives_up:
            by_exporter[delivery.exporter].update(delivery.keys)
    missing: list[SpanKey] = []
    for left in past.left:
        came = by_exporter[EXPORTERS[left.pipeline]]
        end = killed.get(left.life)
        in_time = end is None or (end.at - left.at > NOTE_DELAY and not _unwell(past, left.at, end.at))
        at_once = left.pipeline == "traces/all"  # it has no processors: what is acknowledged has left it
        missing += [key for key in left.keys if key not in came and (in_time or (at_once and key in acknowledged))]
    if len(missing) > excused:
        said = ", ".join(past.names(key) for key in missing[:5])
        yield f"{len(missing)} spans left the processors and never came: {said}"


def _unwell(past: Past, begin: float, end: float) -> bool:
    return any(since <= end and begin <= until for since, until in past.unwell)


def requests_judged(past: Past) -> Iterator[str]:
    """Yield what is wrong with the answers."""
    taken: dict[int, Counter[str]] = defaultdict(Counter)
    seen = set()
    for step in past.steps:
        if isinstance(step, Arrived) and (step.pipeline, step.now, step.request) not in seen:
            seen.add((step.pipeline, step.now, step.request))
            taken[step.request][step.pipeline] += 1
    for number, request in past.requests.items():
        if request.failed:
            yield f"request {number} was answered with an error that nobody repeats"
        elif request.open:
            yield f"request {number} was never acknowledged, although all was well in the end"
        elif request.acknowledged is not None and not taken[number]:
            yield f"request {number} was acknowledged and taken by nobody"
        again = request.unanswered
        if past.setup.stored_queues and past.unwell:  # refused when it could not be written, behind the processors
            again += request.refusals
        knows_it_again = past.setup.durable and not _forgets(past, past.ends)
        if taken[number] and max(taken[number].values()) > 1 + (0 if knows_it_again else again):
            yield f"request {number} was taken {max(taken[number].values())} times"


def _decisions(past: Past, expected: Uninterrupted, lives: Collection[int]) -> Iterator[str]:
    made = {decision for life, decision in past.decisions if life in lives}
    for decision in sorted(made - expected.decisions):
        yield f"decided otherwise than without interruption: {_said(past, decision)}"
    for decision in sorted(expected.decisions - made):
        yield f"not decided as without interruption: {_said(past, decision)}"


def _said(past: Past, decision: Decided) -> str:
    trace = past.names(decision.trace)
    return f"{trace}: {decision.decision} by {decision.policy!r} at {decision.decided_at}, {decision.spans} spans"


def _invented(past: Past, expected: Uninterrupted, deliveries: Sequence[Delivery], *, complete: bool) -> Iterator[str]:
    sent = {key for request in past.requests.values() for key in keys_of_pieces(request.send.pieces)}
    known = {exporter: set(spans) for exporter, spans in expected.exported.items()}
    created = {key_of(span) for spans in expected.exported.values() for span in spans} - sent
    for delivery in deliveries:
        for key, span in zip(delivery.keys, delivery.spans, strict=True):
            if key not in sent and key not in created and complete:
                yield f"delivered to {delivery.exporter} and never sent: {past.names(key)}"
            elif complete and span not in known.get(delivery.exporter, ()):
                yield f"delivered to {delivery.exporter} otherwise than without interruption: {past.names(key)}"


def _lost(past: Past, expected: Uninterrupted, lives: Collection[int]) -> Iterator[str]:
    excused = sum(end.lost for end in past.ends if end.number in lives)
    for exporter, spans in expected.exported.items():
        mine = [d for d in past.deliveries if d.life in lives and d.exporter == exporter]
        got = {span for d in mine if d.kept for span in d.spans}
        rejected = {span for d in mine if d.answer == "rejected" for span in d.spans}
        if past.setup.gives_up:
            rejected |= {span for d in mine for span in d.spans}
        missing = [span for span in dict.fromkeys(spans) if span not in got and span not in rejected]
        if len(missing) > (0 if past.setup.durable else excused):
            yield f"{len(missing)} spans never came to {exporter}: {', '.join(_few(past, missing))}"


def _vanished(past: Past, expected: Uninterrupted, lives: Collection[int]) -> Iterator[str]:
    """Yield what came nowhere, although nobody has decided against it.

    All that is promised when memories were lost: decisions, numbers and links may be others, order too.
    """
    against = {decision.trace for life, decision in past.decisions if life in lives and decision.decision != "sampled"}
    sent = {key for request in past.requests.values() for key in keys_of_pieces(request.send.pieces)}
    for exporter, spans in expected.exported.items():
        mine = [d for d in past.deliveries if d.life in lives and d.exporter == exporter]
        came = {key for d in mine if d.kept or d.answer == "rejected" or past.setup.gives_up for key in d.keys}
        keys = [key for key in dict.fromkeys(map(key_of, spans)) if key in sent and key not in came]
        missing = [key for key in keys if key[:16] not in against]
        if missing:
            said = ", ".join(past.names(key) for key in missing[:5])
            yield f"{len(missing)} spans never came to {exporter}, and nobody decided so: {said}"


def _few(past: Past, spans: Sequence[bytes]) -> Sequence[str]:
    return [past.names(key_of(span)) for span in spans[:5]]


def _order(past: Past, expected: Uninterrupted, deliveries: Sequence[Delivery]) -> Iterator[str]:
    if past.ever_consumers > 1:
        return
    for exporter, spans in expected.exported.items():
        place = {span: at for at, span in enumerate(dict.fromkeys(spans))}
        reached: dict[bytes, int] = {}
        seen: set[bytes] = set()
        for delivery in deliveries:
            for span in delivery.spans if delivery.exporter == exporter else ():
                trace = span[2:18]
                if span in seen or span not in place:
                    continue
                seen.add(span)
                if place[span] < reached.get(trace, -1):
                    yield f"{past.names(key_of(span))} came to {exporter} after later spans of its trace"
                reached[trace] = place[span]


def _duplicates(past: Past, deliveries: Sequence[Delivery], ends: Sequence[LifeEnd]) -> Iterator[str]:
    last: dict[tuple[str, SpanKey], Delivery] = {}
    twice = _left_around_a_crash(past)
    for delivery in deliveries:
        for key in delivery.keys:
            if (delivery.exporter, key) in twice:
                continue
            before = last.get((delivery.exporter, key))
            if before is not None and before.answer == "taken" and not _excused(past, before, delivery, ends):
                yield (
                    f"{past.names(key)} came to {delivery.exporter} twice, {before.at:.3f} s and {delivery.at:.3f} s, "
                    "although the first was answered"
                )
            last[delivery.exporter, key] = delivery


def _left_around_a_crash(past: Past) -> Collection[tuple[str, SpanKey]]:
    """Return what may come twice although all is noted in time: a queue on disk has it, and it comes anew.

    Either its sender, never answered, has sent it again, or the log of a durable pipeline was replayed that did not
    know yet that it is on disk.
    """
    if not past.setup.stored_queues:
        return ()
    places: Counter[tuple[str, SpanKey]] = Counter()
    around: set[tuple[str, SpanKey]] = set()
    ends = {end.number: end for end in past.ends}
    for left in past.left:
        exporter, end = EXPORTERS[left.pipeline], ends[left.life]
        late = end.killed and (end.at - left.at <= NOTE_DELAY or _unwell(past, left.at, end.at))
        for key in left.keys:
            places[exporter, key] += 1
            if late or (end.power and not past.setup.fsync):
                around.add((exporter, key))
    if past.setup.durable:
        return around
    return {place for place, times in places.items() if times > 1}


def _excused(past: Past, first: Delivery, again: Delivery, ends: Sequence[LifeEnd]) -> bool:
    """Say whether podtrail may have forgotten that it delivered this."""
    return any(_forgotten(past, first, end) for end in ends if first.life <= end.number < again.life)


def _forgotten(past: Past, delivery: Delivery, end: LifeEnd) -> bool:
    """Say whether a life that ended so may not have noted that it delivered this."""
    if delivery.answer != "taken":
        return True
    noted_by = delivery.answered_at + NOTE_DELAY
    unwell = any(begin <= noted_by and delivery.answered_at <= over for begin, over in past.unwell)
    return (end.power and not past.setup.fsync) or unwell or (end.killed and end.at <= noted_by)
