"""Faults planted in what keeps partitions, each of which the simulation must find: else it proves nothing of that."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from podtrail.durable.owed import Way
from podtrail.otlp import Batch
from podtrail.partitioned import consumer, opening
from podtrail.partitioned.arrivals import ArrivalOffsets
from podtrail.partitioned.committing import PartitionCommits
from podtrail.partitioned.delivered import DeliveredSteps, PartitionStep
from podtrail.partitioned.leaving import PartitionLeaving
from podtrail.partitioned.note import OwnersNote
from podtrail.partitioned.owned import OwnedPartition
from podtrail.partitioned.processing import PartitionPipeline
from podtrail.partitioned.undelivered import Undelivered
from tests.reliability.simulation.partitions.fleet import simulated
from tests.reliability.simulation.partitions.fleet_setup import drawn
from tests.reliability.simulation.partitions.judging import wrong_with
from tests.reliability.simulation.partitions.partition_log import IDLE, wall
from tests.reliability.simulation.partitions.simulated_consumer import Ownership, SimulatedConsumer


def _compares_steps_wrong() -> Any:
    has = OwnersNote.has
    return patch.object(OwnersNote, "has", lambda note, way, step: has(note, way, step._replace(time=step.time + 1)))


def _forgets_gaps() -> Any:
    return patch.object(DeliveredSteps, "has", lambda delivered, step: step <= delivered.until)


def _says_delivered_too_early() -> Any:
    begin = Undelivered.begin

    def at_once(undelivered: Undelivered, way: Way, step: PartitionStep, batch: Batch) -> Callable[[], None]:
        begin(undelivered, way, step, batch)()
        return lambda: None

    return patch.object(Undelivered, "begin", at_once)


def _says_what_comes_next_has_left() -> Any:
    known = PartitionCommits._known

    def too_far(commits: PartitionCommits) -> Any:
        offset, note = known(commits)
        if commits._state.replays():
            return offset, note
        far = PartitionStep(note.left.position + 1, note.left.time)
        ways = {way: each._replace(until=max(each.until, far)) for way, each in note.undelivered.items()}
        return offset, replace(note, left=far, undelivered=ways)

    return patch.object(PartitionCommits, "_known", too_far)


def _needs_one_record_less() -> Any:
    find = ArrivalOffsets.find

    def one_later(arrivals: ArrivalOffsets, arrival: int) -> tuple[int, int] | None:
        found = find(arrivals, arrival)
        return found and (found[0], found[1] + 1)

    return patch.object(ArrivalOffsets, "find", one_later)


def _restores_one_record_later() -> Any:
    restored = opening.open_partition

    def later(*arguments: Any, **more: Any) -> OwnedPartition:
        owned = restored(*arguments, **more)
        if owned._commits.place is not None and owned._state.position is not None:
            owned._state.position += 1
        return owned

    return patch.object(consumer, "open_partition", later)


def _restores_an_earlier_time() -> Any:
    restored = opening.open_partition

    def earlier(*arguments: Any, **more: Any) -> OwnedPartition:
        owned = restored(*arguments, **more)
        owned._state.told = owned._state.reached = 0
        return owned

    return patch.object(consumer, "open_partition", earlier)


def _overwrites_a_slot() -> Any:
    return patch.object(SimulatedConsumer, "other_slot", staticmethod(lambda owned: owned.slot))


def _lets_the_clock_in_while_it_lags() -> Any:
    read = SimulatedConsumer._read

    async def always(member: SimulatedConsumer, owned: Ownership) -> None:
        now = wall(asyncio.get_running_loop().time()) - IDLE
        due = owned.partition.due()
        if owned.partition.position is not None and due is not None and due <= now:
            await member._mark(owned, now)
            owned.log.time_passes()
            await owned.partition.pass_time(now)
        await read(member, owned)

    return patch.object(SimulatedConsumer, "_read", always)


def _drops_without_telling_the_ledger() -> Any:
    return patch.object(PartitionPipeline, "close", PartitionPipeline.forget)


def _delivers_again_what_it_repeats() -> Any:
    return patch.object(PartitionLeaving, "_was_delivered", lambda *_: False)


FAULTS: Final[Mapping[str, Callable[[], Any]]] = {
    "compares steps wrong": _compares_steps_wrong,
    "forgets what is under way between what is delivered": _forgets_gaps,
    "says delivered what is under way": _says_delivered_too_early,
    "says that what comes next has left": _says_what_comes_next_has_left,
    "needs one record less": _needs_one_record_less,
    "goes on one record later": _restores_one_record_later,
    "goes on at an earlier time": _restores_an_earlier_time,
    "overwrites the checkpoint that is committed": _overwrites_a_slot,
    "lets the clock in while it lags": _lets_the_clock_in_while_it_lags,
    "drops without telling the ledger": _drops_without_telling_the_ledger,
    "delivers again what it repeats": _delivers_again_what_it_repeats,
}


@contextmanager
def planted(fault: str) -> Iterator[None]:
    """Have podtrail make a mistake in there."""
    with FAULTS[fault]():
        yield


def first_found(fault: str, seeds: Sequence[int]) -> tuple[int, str] | None:
    """Return the first seed that shows a fault, and what is said of it; None when none does."""
    with planted(fault):
        for seed in seeds:
            setup = drawn(seed)
            try:
                wrong = wrong_with(setup, simulated(setup))
            except AssertionError as error:
                wrong = [f"an assertion fails: {error}"]
            if wrong:
                return seed, wrong[0]
    return None
