"""What stands in tests/data/stores/1, a journal as format 1 has it. `python -m tests.storage.sample` wrote it, once.

A later version must read it. One that changes the format adds a folder of its own, and leaves this one alone.
"""

import asyncio
from pathlib import Path

from podtrail.otlp import write_request
from podtrail.recording import Record, read_recording
from podtrail.storage import Entry, Journal, SystemDisk

DATA = Path(__file__).parents[1] / "data"
FOLDER = DATA / "stores" / "1"
STATE = b"what a client knew as of segment 2"


def entries() -> list[Entry]:
    """Requests of a recording, each with a note behind it, and one of everything."""
    some = (
        record for record in read_recording(DATA / "recordings" / "scheduler.otlp.gz") if isinstance(record, Record)
    )
    kept = []
    for record, _ in zip(some, range(4), strict=False):
        kept.append(Entry(0, write_request(record.intake.groups), record.arrival))
        kept.append(Entry(1, note=b"delivered %d" % record.arrival))
    return [*kept, Entry(2, write_request(()), 1, b"all"), Entry(253, note=bytes(range(256)))]


async def write(folder: Path) -> None:
    """Write two segments, and a state as of the second."""
    kept = entries()
    journal = Journal(folder, SystemDisk())
    await journal.open()
    await journal.commit(kept[:6])
    segment = journal.cut()
    await journal.commit(kept[6:])
    await journal.save(segment, [STATE[:9], STATE[9:]])
    await journal.close()


if __name__ == "__main__":
    asyncio.run(write(FOLDER))
