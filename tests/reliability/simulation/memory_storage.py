"""The `file_storage` extension on a disk in memory: real journals, whose workers take virtual time."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, TypeVar

from podtrail_extensions.file_storage.config import Config
from podtrail_extensions.file_storage.extension import file_name

from podtrail.component import Context
from podtrail.storage import Journal, StorageError, StorageInstruments
from tests.reliability.simulation.memory_disk import MemoryDisk, MountedDisk

T = TypeVar("T")

SLOWEST = 0.2
"""Seconds that the disk takes for one thing at most."""


class VirtualWorker:
    """A worker that does one thing after the other, each in some virtual time."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._turn = asyncio.Lock()

    async def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, done even if nobody waits for it any longer."""
        return await asyncio.shield(asyncio.get_running_loop().create_task(self._do(work)))

    async def _do(self, work: Callable[[], T]) -> T:
        async with self._turn:
            takes = self._rng.choice([0.0, 0.001, 0.004, self._rng.uniform(0.0, SLOWEST / 2)])
            await asyncio.sleep(takes)
            done = work()
            await asyncio.sleep(takes)
            return done

    def end(self) -> None:
        """Do nothing: there is nothing to end."""


class MemoryStorage:
    """Opens journals in memory; entering and leaving is all that it has of the folder's lock."""

    def __init__(self, disk: MountedDisk, rng: random.Random, segment: int, config: Config, context: Context) -> None:
        """Keep journals with segments of at most so many bytes."""
        self._disk = disk
        self._rng = rng
        self._segment = segment
        self._config = config
        self._context = context
        self._journals: dict[str, Journal] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for journal in self._journals.values():
            await journal.close()

    async def open(self, name: str) -> Journal:
        """Open the journal of that name.

        Raises:
            StorageError: it can't be opened, or is open already.
        """
        if name in self._journals and not self._journals[name].closed:
            raise StorageError(f"{name} is open already")
        folder = Path(self._config.directory) / file_name(name)
        journal = Journal(
            folder,
            self._disk,
            fsync=self._config.fsync,
            worker=lambda _: VirtualWorker(self._rng),
            instruments=StorageInstruments(folder, self._context.metrics, self._context.log),
            largest_segment=self._segment,
        )
        await journal.open()
        self._journals[name] = journal
        return journal


class Storages:
    """Makes the extension for each life."""

    def __init__(self, seed: int) -> None:
        self.disk = MemoryDisk(seed)
        self._rng = random.Random(f"workers {seed}")
        self._segment = self._rng.choice([3_000, 20_000, 1 << 20])
        self._mounted: MountedDisk | None = None

    def begin(self, life: int) -> None:
        """Have what is made from now on belong to this life."""
        self._mounted = self.disk.attach(life)

    def extension(self, config: Any, context: Context) -> MemoryStorage:
        """Make an extension: for its factory."""
        assert self._mounted is not None
        return MemoryStorage(self._mounted, self._rng, self._segment, config, context)
