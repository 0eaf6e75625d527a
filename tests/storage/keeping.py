"""Somebody who keeps numbers in a journal, and an account of what was acknowledged."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from podtrail.storage import Disk, Entry, Journal, Position, StorageError, inline

FOLDER = Path("/store")
ARRIVED, NOTED = 0, 1


def numbered(number: int, kind: int = ARRIVED) -> Entry:
    """An entry that says a number; every seventh is longer than several pages."""
    note = json.dumps(number).encode() + b" " * (2500 if number % 7 == 3 else number % 90)
    return Entry(kind, arrival=number + 1, note=note)


def number_of(entry: Entry) -> int:
    return int(json.loads(entry.note))


@dataclass
class Keeper:
    """Keeps numbers from `offered` on."""

    disk: Disk
    fsync: bool = True
    folder: Path = FOLDER
    largest_segment: int = 6_000
    offered: int = 0
    acknowledged: dict[int, Position] = field(default_factory=dict)
    added: dict[int, Position] = field(default_factory=dict)
    refused: int = 0

    async def open(self) -> Journal:
        journal = Journal(self.folder, self.disk, fsync=self.fsync, worker=inline, largest_segment=self.largest_segment)
        await journal.open()
        return journal

    async def keep(self, steps: int = 20) -> None:
        """Commit, add, and now and then save what is known and forget the rest."""
        journal = await self.open()
        known = known_in(journal)
        for step in range(steps):
            if step % 5 == 4:
                await self._save(journal, known)
            numbers = range(self.offered, self.offered + 1 + step % 3)
            self.offered = numbers.stop + 1
            self.added[numbers.stop] = journal.add(numbered(numbers.stop, NOTED))
            known.add(numbers.stop)
            try:
                places = await journal.commit([numbered(number) for number in numbers])
            except StorageError:
                self.refused += 1
                continue
            self.acknowledged.update(zip(numbers, places, strict=True))
            # A commit is written together with what was added before it.
            self.acknowledged[numbers.stop] = self.added[numbers.stop]
            known.update(numbers)
        await journal.close()

    async def _save(self, journal: Journal, known: set[int]) -> None:
        segment = journal.cut()
        try:
            await journal.flush()
            await journal.save(segment, [json.dumps(sorted(known)).encode(), b"\n"])
        except StorageError:
            return
        journal.forget(segment)


def known_in(journal: Journal) -> set[int]:
    """What state and entries tell."""
    state: list[int] = next((json.loads(content) for _, content in journal.saved()), [])
    return {*state, *(number_of(entry) for _, entry in journal.entries())}


async def found_by(keeper: Keeper, disk: Disk) -> set[int]:
    """Open what a keeper has left behind; what is where must be where it was said to be."""
    heir = Keeper(disk, folder=keeper.folder, largest_segment=keeper.largest_segment)
    journal = await heir.open()
    places = [(at, number_of(entry)) for at, entry in journal.entries()]
    assert sorted(places) == places
    for position, number in places:
        assert keeper.acknowledged.get(number, position) == position
        assert keeper.added.get(number, position) == position
        assert number_of(await journal.read(position)) == number
    found = known_in(journal)
    assert found <= set(range(keeper.offered)), "it holds what was never offered"
    [after] = await journal.commit([numbered(keeper.offered)])
    assert not places or after > places[-1][0]
    await journal.close()
    return found
