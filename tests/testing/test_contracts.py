"""Each check of the contract is shown to fail on a processor that breaks just that promise."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from podtrail.component import Context, Taken
from podtrail.otlp import Batch, Group, Verdict, encode_span, frame, resource_header, scope_header
from podtrail.testing.contracts import (
    Arrival,
    ContractBroken,
    check_checkpoints_keep_everything,
    check_deadline_law,
    check_drain_lets_go_of_everything,
    check_early_expire_changes_nothing,
    check_nothing_lost_nothing_twice,
    check_processor,
    check_same_calls_same_answers,
    check_take_over_keeps_what_is_held,
    check_verdicts_pass_in_order,
)

WAIT = 10


def group(trace: int) -> Group:
    trace_id = trace.to_bytes(16, "big")
    spans = [
        encode_span(trace_id=trace_id, span_id=bytes([0] * 7 + [at]), name="span", start=1, end=2) for at in (1, 2)
    ]
    return Group(resource_header({}), scope_header("test"), trace_id, frame(spans), 2)


def verdict(trace: int) -> Verdict:
    return Verdict(trace.to_bytes(16, "big"), "dropped", "", "", 0, 0, 1)


ARRIVALS = [
    Arrival(now, Batch([group(2 * at), group(2 * at + 1)], now - 1, [verdict(100 + at), verdict(200 + at)]))
    for at, now in enumerate((10, 12, 12, 40, 41), start=1)
]


class Holding:
    """A processor that keeps the contract: it holds each batch for ten nanoseconds."""

    def __init__(self, context: Context) -> None:
        self.ledger = context.ledger
        self.inside: list[tuple[int, Batch]] = []

    def add(self, batch: Batch, now: int) -> Taken:
        self.inside.append((now + WAIT, batch))
        return Taken()

    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        due = [held for held in self.inside if held[0] <= now][:limit]
        self.inside = self.inside[len(due) :]
        return [batch for _, batch in due]

    def deadline(self) -> int | None:
        return min((due for due, _ in self.inside), default=None)

    def held(self) -> int:
        return sum(batch.span_count for _, batch in self.inside)

    def held_since(self) -> int | None:
        return min((batch.arrived for _, batch in self.inside), default=None)

    state_version = 1

    def save_state(self) -> Any:
        return [(due, batch.arrived, batch.groups) for due, batch in self.inside]

    def restore_state(self, version: int, state: Any) -> None:
        self.inside = [(due, Batch([Group(*row) for row in rows], arrived)) for due, arrived, rows in state]

    def take_over(self, predecessor: "Holding", now: int) -> None:
        self.inside = predecessor.inside

    def drain(self, now: int) -> Sequence[Batch]:
        out, self.inside = [batch for _, batch in self.inside], []
        return out


class NoDeadline(Holding):
    def deadline(self) -> int | None:
        return None


class Pretending(Holding):
    passes_on = True


class NeverDone(Holding):
    def deadline(self) -> int | None:
        return min((due for due, _ in self.inside), default=5)


class Endless(Holding):
    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        return [Batch((), now)]


class Eager(Holding):
    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        return self.drain(now)


class Losing(Holding):
    def drain(self, now: int) -> Sequence[Batch]:
        return super().drain(now)[:-1]


class Doubling(Holding):
    """What it loses it makes good with a second copy of another, so that the sums are right."""

    def drain(self, now: int) -> Sequence[Batch]:
        out = super().drain(now)
        return [*out[:1], *out[:-1]]


class Silent(Holding):
    """Drops spans and counts nothing."""

    def add(self, batch: Batch, now: int) -> Taken:
        return super().add(Batch(batch.groups[:1], batch.arrived, batch.verdicts), now)


class Swallowing(Holding):
    """Forgets the verdicts."""

    def add(self, batch: Batch, now: int) -> Taken:
        return super().add(Batch(batch.groups, batch.arrived), now)


class Shuffling(Holding):
    def add(self, batch: Batch, now: int) -> Taken:
        return super().add(Batch(batch.groups, batch.arrived, batch.verdicts[::-1]), now)


class Clinging(Holding):
    """Holds on to its last batch when drained."""

    def drain(self, now: int) -> Sequence[Batch]:
        out, self.inside = self.inside[:-1], self.inside[-1:]
        return [batch for _, batch in out]


class Forgetful(Holding):
    def take_over(self, predecessor: Holding, now: int) -> None:
        return


class Restarting(Holding):
    """Gives what it takes over a new deadline."""

    def take_over(self, predecessor: Holding, now: int) -> None:
        self.inside = [(now + 2 * WAIT, batch) for _, batch in predecessor.inside]


class Rejuvenating(Holding):
    """Gives what it takes over a new arrival."""

    def take_over(self, predecessor: Holding, now: int) -> None:
        self.inside = [(due, Batch(b.groups, now, b.verdicts)) for due, b in predecessor.inside]


class Moody:
    """Makes processors of which every other one puts out what it holds in reverse."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, context: Context) -> Holding:
        self.made += 1
        return Reversing(context) if self.made % 2 else Holding(context)


class Reversing(Holding):
    def expire(self, now: int, limit: int) -> Sequence[Batch]:
        return [Batch(b.groups[::-1], b.arrived, b.verdicts) for b in super().expire(now, limit)]


class Miscounting(Holding):
    """Says that its groups have more spans than they have."""

    def drain(self, now: int) -> Sequence[Batch]:
        return [
            Batch([one._replace(span_count=3) for one in batch.groups], batch.arrived, batch.verdicts)
            for batch in super().drain(now)
        ]


class Mute(Holding):
    """Forgets the answer."""

    def add(self, batch: Batch, now: int) -> Taken:
        super().add(batch, now)
        return None  # type: ignore[return-value]


class HalfSaved(Holding):
    """It saves the latest batch alone."""

    def save_state(self) -> Any:
        return super().save_state()[-1:]


class Unplain(Holding):
    """It saves what can't be written."""

    def save_state(self) -> Any:
        return self.inside


class Bounded(Holding):
    """Keeps the contract with room for one batch: the rest is offered again."""

    def add(self, batch: Batch, now: int) -> Taken:
        return Taken(rest=batch) if self.inside else super().add(batch, now)


Check = Callable[[Callable[[Context], Holding], Sequence[Arrival]], None]


@pytest.mark.parametrize("sound", [Holding, Bounded])
def test_a_sound_processor_passes(sound: Callable[[Context], Holding]) -> None:
    check_processor(sound, ARRIVALS)
    check_processor(sound, [])


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (check_deadline_law, NoDeadline),
        (check_deadline_law, Pretending),
        (check_deadline_law, NeverDone),
        (check_deadline_law, Endless),
        (check_early_expire_changes_nothing, Eager),
        (check_nothing_lost_nothing_twice, Losing),
        (check_nothing_lost_nothing_twice, Doubling),
        (check_nothing_lost_nothing_twice, Silent),
        (check_nothing_lost_nothing_twice, Miscounting),
        (check_verdicts_pass_in_order, Swallowing),
        (check_verdicts_pass_in_order, Shuffling),
        (check_drain_lets_go_of_everything, Clinging),
        (check_drain_lets_go_of_everything, Losing),
        (check_take_over_keeps_what_is_held, Forgetful),
        (check_take_over_keeps_what_is_held, Restarting),
        (check_take_over_keeps_what_is_held, Rejuvenating),
        (check_same_calls_same_answers, Moody()),
        (check_checkpoints_keep_everything, HalfSaved),
        (check_checkpoints_keep_everything, Unplain),
    ],
)
def test_a_broken_promise_is_found(check: Check, broken: Callable[[Context], Holding]) -> None:
    with pytest.raises(ContractBroken):
        check(broken, ARRIVALS)


def test_an_add_without_an_answer_is_told_as_the_pipeline_tells_it() -> None:
    with pytest.raises(ContractBroken, match=r"^add returned a NoneType, which is not Taken$"):
        check_processor(Mute, ARRIVALS)
