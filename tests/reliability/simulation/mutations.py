"""Faults planted in podtrail, each of which the simulation must find: what it can't find it does not prove."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final
from unittest.mock import patch

from podtrail.durable.log import ArrivalLog
from podtrail.durable.owed import Owed, Suppressed
from podtrail.durable.recent import RecentRequests
from podtrail.durable.records import LoggedArrival
from podtrail.durable.recovery import PipelineRecovery
from podtrail.otlp import Batch
from podtrail.pipeline.driver import Driver
from podtrail.pipeline.fan_out import FanOutConsumer
from podtrail.pipeline.sending.queue import SendingQueue
from podtrail.pipeline.sending.queue_journal import QueueJournal
from podtrail.storage import Entry, Journal, StorageError
from podtrail.storage.segment_writer import SegmentWriter
from tests.reliability.simulation.generation import generated
from tests.reliability.simulation.world import happened


def _acknowledges_before_writing() -> Any:
    async def commit(journal: Journal, entries: Sequence[Entry]) -> Sequence[Any]:
        return [journal.add(entry) for entry in entries]

    return patch.object(Journal, "commit", commit)


def _hands_over_what_was_refused() -> Any:
    write = ArrivalLog._write

    async def always(log: ArrivalLog, arrivals: Sequence[Any], group: Sequence[Any]) -> bool:
        await write(log, arrivals, group)
        return bool(arrivals)

    return patch.object(ArrivalLog, "_write", always)


def _notes_deliveries_before_they_are_made() -> Any:
    begin = Owed.begin

    def at_once(owed: Owed, pipeline: str, exporter: str, batch: Batch) -> Callable[[], None]:
        begin(owed, pipeline, exporter, batch)()
        return lambda: None

    return patch.object(Owed, "begin", at_once)


def _notes_no_deliveries() -> Any:
    return patch.object(Owed, "note", lambda *_: None)


def _forgets_the_log_without_a_checkpoint() -> Any:
    async def save(journal: Journal, segment: int, pieces: Any) -> None:
        journal.forget(segment)

    return patch.object(Journal, "save", save)


def _makes_room_at_the_cost_of_the_log() -> Any:
    make_room = Journal.make_room

    async def all_of_it(journal: Journal, _: int) -> None:
        await make_room(journal, journal.cut())

    return patch.object(Journal, "make_room", all_of_it)


def _never_syncs() -> Any:
    return patch.object(SegmentWriter, "_sync", lambda *_: None)


def _believes_a_failed_sync() -> Any:
    sync = SegmentWriter._sync

    def believed(writer: SegmentWriter, handle: int) -> None:
        try:
            sync(writer, handle)
        except OSError:
            return

    return patch.object(SegmentWriter, "_sync", believed)


def _keeps_back_too_much() -> Any:
    def any_key(kept: Suppressed, pipeline: str, exporter: str, batch: Batch) -> bool:
        return (pipeline, exporter) in kept._keys

    return patch.object(Suppressed, "keeps_back", any_key)


def _keeps_back_nothing() -> Any:
    return patch.object(Suppressed, "keeps_back", lambda *_: False)


def _replays_without_the_clock() -> Any:
    read = LoggedArrival.read

    def late(entry: Entry) -> LoggedArrival:
        arrival = read(entry)
        return replace(arrival, now=arrival.now + 1_500_000_000)

    return patch.object(LoggedArrival, "read", staticmethod(late))


def _replays_in_reverse() -> Any:
    entries = Journal.entries
    return patch.object(Journal, "entries", lambda journal: iter(list(entries(journal))[::-1]))


def _replays_all_but_the_first() -> Any:
    entries = Journal.entries
    return patch.object(Journal, "entries", lambda journal: islice(entries(journal), 1, None))


def _takes_a_request_again() -> Any:
    return patch.object(RecentRequests, "knows", lambda *_: False)


def _checkpoints_without_what_is_owed() -> Any:
    return patch.object(Owed, "batches", lambda _: ())


def _ends_a_recovery_at_the_last_arrival() -> Any:
    async def nothing(*_: Any) -> None:
        return

    return patch.object(PipelineRecovery, "_catch_up", nothing)


def _drains_nothing_on_a_reload() -> Any:
    async def nothing(_: Driver) -> None:
        return

    return patch.object(Driver, "drain", nothing)


def _forgets_what_a_changed_exporter_had() -> Any:
    return patch.object(SendingQueue, "_take_over", lambda *_: None)


def _acknowledges_before_a_queue_on_disk_is_written() -> Any:
    async def at_once(*_: Any) -> None:
        return

    return patch.object(FanOutConsumer, "_written", at_once)


def _refuses_for_ever_once_a_disk_failed() -> Any:
    commit = Journal.commit

    async def once(journal: Journal, entries: Sequence[Entry]) -> Sequence[Any]:
        if getattr(journal, "failed_once", False):
            raise StorageError("it failed once")
        try:
            return await commit(journal, entries)
        except StorageError:
            journal.failed_once = True  # type: ignore[attr-defined]
            raise

    return patch.object(Journal, "commit", once)


MUTATIONS: Final[Mapping[str, Callable[[], Any]]] = {
    "acknowledges before it has written": _acknowledges_before_writing,
    "acknowledges before a queue on disk is written": _acknowledges_before_a_queue_on_disk_is_written,
    "sends what a queue on disk has sent": lambda: patch.object(QueueJournal, "ended", lambda *_: None),
    "hands over what could not be written": _hands_over_what_was_refused,
    "notes deliveries before they are made": _notes_deliveries_before_they_are_made,
    "notes no deliveries": _notes_no_deliveries,
    "forgets the log without a checkpoint": _forgets_the_log_without_a_checkpoint,
    "makes room at the cost of the log": _makes_room_at_the_cost_of_the_log,
    "never syncs": _never_syncs,
    "believes a sync that failed": _believes_a_failed_sync,
    "keeps back too much": _keeps_back_too_much,
    "keeps back nothing": _keeps_back_nothing,
    "replays without the clock": _replays_without_the_clock,
    "replays in reverse": _replays_in_reverse,
    "replays all but the first": _replays_all_but_the_first,
    "takes a request again": _takes_a_request_again,
    "checkpoints without what is owed": _checkpoints_without_what_is_owed,
    "ends a recovery at the last arrival": _ends_a_recovery_at_the_last_arrival,
    "drains nothing on a reload": _drains_nothing_on_a_reload,
    "forgets what a changed exporter had": _forgets_what_a_changed_exporter_had,
    "refuses for ever once a disk has failed": _refuses_for_ever_once_a_disk_failed,
}


@contextmanager
def planted(mutation: str) -> Iterator[None]:
    """Have podtrail make a mistake in there."""
    with MUTATIONS[mutation]():
        yield


def first_found(mutation: str, seeds: range) -> tuple[int, str] | None:
    """Return the first seed that shows a mistake, and what is said of it; None when none does."""
    with planted(mutation):
        for seed in seeds:
            if wrong := happened(generated(seed)).wrong:
                return seed, wrong[0]
    return None
