"""A program that keeps numbers in a journal, says which it has kept, and at its start which it has found.

keeper.py FOLDER FIRST: numbers from FIRST on, with states saved and segments forgotten in between.
"""

import asyncio
import json
import sys
from pathlib import Path

from podtrail.otlp.stored import Entry
from podtrail.storage.disk import SystemDisk
from podtrail.storage.journal import Journal

GROUPS = 9


async def keep(folder: Path, first: int) -> None:
    """Keep numbers, three at a time, and save all of them as a state now and then."""
    journal = Journal(folder, SystemDisk(), fsync=True)
    await journal.open()
    begins, state = next(journal.saved(), (0, b"[]"))
    found = [(at.segment, int(entry.body)) for at, entry in journal.entries()]
    known = {*json.loads(state), *(number for _, number in found)}
    say({"found": sorted(known), "uncovered": sorted(number for segment, number in found if segment >= begins)})
    for group in range(GROUPS):
        some = [first + group * 3 + n for n in range(3)]
        if group % 4 == 3:
            cut = journal.cut()
            await journal.save(cut, [json.dumps(sorted(known)).encode()])
            journal.forget(cut)
        journal.add(Entry(1, str(some[0]).encode()))
        await journal.commit([Entry(0, str(number).encode()) for number in some[1:]])
        known.update(some)
        say({"kept": some})
    await journal.close()
    say({"closed": True})


def say(what: object) -> None:
    """Say it at once."""
    print(json.dumps(what), file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(keep(Path(sys.argv[1]), int(sys.argv[2])))
