"""The exporter: encodes and writes in a thread of its own, one request at a time, in the order in which they came."""

import asyncio
from pathlib import Path
from types import TracebackType
from typing import Self

from podtrail.component import Context, Retryable
from podtrail.config.types import SECOND
from podtrail.otlp import Batch
from podtrail.recording import RecordingForm
from podtrail_exporters.file.exporter import write_all
from podtrail_exporters.file.file_thread import FileThread
from podtrail_exporters.file.form import Form
from podtrail_exporters.file.log_file import LogFile
from podtrail_exporters.recording import Config


class RecordingExporter:
    """A request is delivered when the system has taken its bytes; what does not fit on the disk is tried again."""

    wants_arrivals = True

    def __init__(self, config: Config, context: Context) -> None:
        """Write as configured; the file is opened on entering."""
        self._append = config.append or context.resumed
        self._create_directory = config.create_directory
        self._requests = RecordingForm.of(config.path)
        self._form = Form("json" if self._requests.json else "proto", self._requests.compression)
        self._file = LogFile(Path(config.path), self._form, config.rotation, context.log)
        self._thread = FileThread(context.id, [self._file], config.flush_interval, context.log)
        self._interval = config.rotation.interval / SECOND if config.rotation else 0.0
        self._began = 0.0

    async def __aenter__(self) -> Self:
        await self._thread.open(append=self._append, create_directory=self._create_directory)
        self._began = asyncio.get_running_loop().time()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._thread.close()

    async def send(self, batch: Batch) -> int:
        """Append a request with its arrival; nothing of it when that fails.

        Raises:
            Retryable: the disk is full or fails.
        """
        if batch.groups:
            now = asyncio.get_running_loop().time()
            await self._thread.do(lambda: self._write(batch, now))
        return 0

    def _write(self, batch: Batch, now: float) -> None:
        if self._interval and now - self._began >= self._interval:
            try:
                self._file.begin_anew()
            except OSError as error:
                raise Retryable(f"can't begin {self._file.path} anew: {error.strerror}") from error
            self._began = now
        write_all([(self._file, self._form.write(self._requests.message(batch.groups, batch.arrived)))])
