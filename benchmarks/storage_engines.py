"""What writing requests to a disk costs, in podtrail's segments and in SQLite: CPU a span, spans a second, bytes.

Requests of 512 spans, 16 senders that wait for theirs to be on disk, in both with group commit by one thread. SQLite
has a table of numbers and blobs in pages of 64 KiB and write-ahead logging; old rows are deleted, as segments are.
"""

import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.load import Load, make_load
from benchmarks.pipeline import written_by
from podtrail.otlp.stored import Entry
from podtrail.storage import Journal, SystemDisk

TRACES = int(os.environ.get("BENCH_TRACES", "30000"))
SENDERS = 16
_KEPT = 256
"""Requests that are kept until they are forgotten."""
Write = Callable[[bytes], Awaitable[None]]


class Cost(NamedTuple):
    """What it cost."""

    cpu: float
    """Microseconds a span."""
    rate: float
    """Spans a second."""
    written: float
    """Bytes a byte."""


class Database:
    """SQLite with group commit: what comes while it writes is written together."""

    def __init__(self, path: Path, *, fsync: bool) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._number = 0
        for line in ("page_size=65536", "journal_mode=WAL", f"synchronous={'FULL' if fsync else 'OFF'}"):
            self._connection.execute(f"PRAGMA {line}")
        self._connection.execute("CREATE TABLE arrivals (number INTEGER PRIMARY KEY, body BLOB)")

    async def write(self, request: bytes) -> None:
        """Return when it is on disk."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, done))
        if self._task is None:
            self._task = asyncio.create_task(self._write_all())
        await done

    async def _write_all(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            rows = [(self._number + at, request) for at, (request, _) in enumerate(group)]
            self._number += len(rows)
            await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, rows)
            for _, done in group:
                done.set_result(None)
        self._task = None

    def _commit(self, rows: Sequence[tuple[int, bytes]]) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO arrivals VALUES (?, ?)", rows)
        self._connection.execute("DELETE FROM arrivals WHERE number < ?", (self._number - _KEPT,))
        self._connection.execute("COMMIT")

    async def close(self) -> None:
        """Let go of it."""
        self._connection.close()
        self._thread.shutdown()


class Segments:
    """podtrail's own."""

    def __init__(self, folder: Path, *, fsync: bool) -> None:
        self._journal = Journal(folder, SystemDisk(), fsync=fsync)

    async def write(self, request: bytes) -> None:
        """Return when it is on disk."""
        (position,) = await self._journal.commit([Entry(0, request)])
        self._journal.forget(position.segment - 1)

    async def open(self) -> None:
        """Make its folder."""
        await self._journal.open()

    async def close(self) -> None:
        """Let go of it."""
        await self._journal.close()


async def _send(requests: Sequence[bytes], write: Write) -> None:
    left = iter(requests)

    async def sender() -> None:
        for request in left:
            await write(request)

    await asyncio.gather(*(sender() for _ in range(SENDERS)))


async def _measured(load: Load, store: "Database | Segments") -> Cost:
    if isinstance(store, Segments):
        await store.open()
    before, cpu, began = written_by(os.getpid()), time.process_time(), time.perf_counter()
    await _send(load.requests, store.write)
    cpu, took = time.process_time() - cpu, time.perf_counter() - began
    await store.close()
    written = written_by(os.getpid()) - before
    return Cost(cpu / load.spans * 1e6, load.spans / took, written / sum(map(len, load.requests)))


def main() -> None:
    """Print what each costs."""
    load = make_load(TRACES)
    print(f"{load.spans} spans in {len(load.requests)} requests")
    with tempfile.TemporaryDirectory() as folder:
        for fsync in (False, True):
            for name, make in (("segments", Segments), ("sqlite", Database)):
                cost = asyncio.run(_measured(load, make(Path(folder) / f"{name}-{fsync}", fsync=fsync)))
                print(
                    f"{name + ', fsync' * fsync:<16} {cost.cpu:5.2f} us a span   {cost.rate / 1e3:5.0f} k spans/s   "
                    f"{cost.written:.2f} bytes written a byte"
                )


if __name__ == "__main__":
    main()
