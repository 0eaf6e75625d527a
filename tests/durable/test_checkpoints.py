"""Checkpoints on their way to a disk that is full: what gives way to the next one, and what is said of it."""

import errno
import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from podtrail.durable.checkpoints import Amounts, CheckpointWriter
from podtrail.durable.generation import Generation
from podtrail.durable.state import PipelineStates
from podtrail.storage import Journal, inline
from tests.storage.failing_disk import FailingDisk
from tests.storage.keeping import FOLDER, number_of, numbered
from tests.storage.power_loss import PowerLossDisk

GENERATION = Generation({}, {}, ())
STATE = PipelineStates(GENERATION, {}, {}, (), b"")


async def test_the_log_is_kept_back_to_what_came_at_the_very_time_of_a_checkpoint() -> None:
    journal = Journal(FOLDER, PowerLossDisk(), worker=inline)
    await journal.open()
    writer = CheckpointWriter(logging.LoggerAdapter(logging.getLogger("store"), {}), lambda: None)
    for number in range(1, 4):
        await journal.commit([numbered(number)])
        assert await writer.begin(journal, STATE, number, 2, Amounts(0, 0))  # what came second is undecided
    assert [number_of(entry) for _, entry in journal.entries()] == [2, 3]
    await journal.close()


async def test_a_checkpoint_that_gave_way_for_nothing_is_told_once_and_nothing_counts_as_saved_until_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    others_take_the_room = FailingDisk(PowerLossDisk(), first=2, number=4, code=errno.ENOSPC, only=("write",))
    journal = Journal(FOLDER, others_take_the_room, worker=inline)
    await journal.open()
    written: list[None] = []
    log = logging.LoggerAdapter(logging.getLogger("store"), {})
    writer = CheckpointWriter(log, lambda: written.append(None))

    async def save() -> bool:
        return await writer.begin(journal, STATE, 1, None, Amounts(0, 0))

    assert await save()
    assert writer.saved == GENERATION
    for _ in range(2):
        assert not await save()
        assert writer.saved is None
        assert [*journal.saved()] == []
    assert sum("a checkpoint was removed to make room for the next" in text for text in caplog.messages) == 1
    assert await save()
    assert writer.saved == GENERATION
    assert len([*journal.saved()]) == 1
    assert len(written) == 2
    await journal.close()


async def test_a_checkpoint_is_told_as_a_span_where_somebody_wants_it() -> None:
    memory = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    journal = Journal(FOLDER, PowerLossDisk(), worker=inline)
    await journal.open()
    log = logging.LoggerAdapter(logging.getLogger("store"), {})
    writer = CheckpointWriter(log, lambda: None, provider.get_tracer("podtrail/own"))
    assert await writer.begin(journal, STATE, 1, None, Amounts(0, 0))
    (span,) = memory.get_finished_spans()
    size = len(b"".join(STATE.prepared()()))
    assert (span.name, span.parent, span.attributes) == ("checkpoint", None, {"bytes": size})
    await journal.close()
    provider.shutdown()
