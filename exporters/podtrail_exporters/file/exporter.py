"""The exporter: encodes and writes in one thread of its own, so that a slow disk never stops the event loop."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from podtrail.component import Context, Retryable, StartError
from podtrail.config.types import SECOND
from podtrail.otlp import Batch, write_request
from podtrail.otlp.decisions import decision_line
from podtrail.otlp.json import write_json_request
from podtrail_exporters.file import Config
from podtrail_exporters.file.form import Form
from podtrail_exporters.file.log_file import LogFile

T = TypeVar("T")


class FileExporter:
    """A batch is delivered when the system has taken its bytes; what does not fit on the disk is tried again."""

    def __init__(self, config: Config, context: Context) -> None:
        """Write as configured; files are opened on entering."""
        self._config = config
        self._append = config.append or context.resumed
        self._log = context.log
        self._form = Form(config.format, config.compression)
        self._spans = LogFile(Path(config.path), self._form, config.rotation, context.log)
        self._decisions: LogFile | None = None
        if config.decisions_path is not None:
            self._decisions = LogFile(Path(config.decisions_path), Form("json"), config.rotation, context.log)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=context.id)
        self._syncing: asyncio.Task[None] | None = None

    @property
    def wants_verdicts(self) -> bool:
        """Whether decisions are written."""
        return self._decisions is not None

    async def __aenter__(self) -> Self:
        try:
            await self._in_thread(self._open)
        except StartError:
            await self._end()
            raise
        if self._config.flush_interval:
            self._syncing = asyncio.create_task(self._sync_for_ever(self._config.flush_interval / SECOND))
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._syncing is not None:
            self._syncing.cancel()
            await asyncio.wait({self._syncing})
        await self._end()

    async def send(self, batch: Batch) -> int:
        """Append a batch as one message, and its verdicts as lines; nothing of it when that fails.

        Raises:
            Retryable: the disk is full or fails.
        """
        await self._in_thread(lambda: self._write(batch))
        return 0

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _end(self) -> None:
        await self._in_thread(self._close)
        self._thread.shutdown()

    def _files(self) -> list[LogFile]:
        return [self._spans] if self._decisions is None else [self._spans, self._decisions]

    def _open(self) -> None:
        for file in self._files():
            file.open(append=self._append, create_directory=self._config.create_directory)

    def _close(self) -> None:
        for file in self._files():
            try:
                file.close()
            except OSError as error:
                self._log.error("can't force %s onto the disk: %s", file.path, error.strerror)

    def _write(self, batch: Batch) -> None:
        writes: list[tuple[LogFile, bytes]] = []
        if batch.groups:
            json_format = self._form.format == "json"
            message = write_json_request(batch.groups) if json_format else write_request(batch.groups)
            writes.append((self._spans, self._form.write(message)))
        if self._decisions is not None and batch.verdicts:
            lines = [json.dumps(decision_line(verdict), separators=(",", ":")) for verdict in batch.verdicts]
            writes.append((self._decisions, "".join(line + "\n" for line in lines).encode()))
        _write_all(writes)

    async def _sync_for_ever(self, interval: float) -> None:
        failing = False
        while True:
            await asyncio.sleep(interval)
            for file in self._files():
                try:
                    await self._in_thread(file.sync)
                    failing = False
                except OSError as error:
                    if not failing:
                        self._log.error("can't force %s onto the disk: %s", file.path, error.strerror)
                    failing = True


def _write_all(writes: list[tuple[LogFile, bytes]]) -> None:
    """Append to all files or to none."""
    marks: list[tuple[LogFile, int]] = []
    for file, data in writes:
        try:
            file.make_room(len(data))
            marks.append((file, file.mark()))
            file.write(data)
        except OSError as error:
            for begun, mark in marks:
                begun.back_to(mark)
            raise Retryable(f"can't write {file.path}: {error.strerror}") from error
