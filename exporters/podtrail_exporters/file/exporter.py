"""The exporter: encodes and writes in a thread of its own."""

from pathlib import Path
from types import TracebackType
from typing import Self

from podtrail.component import Context, Retryable
from podtrail.otlp import Batch, write_request
from podtrail.otlp.decisions import written_decision
from podtrail.otlp.json import write_json_request
from podtrail_exporters.file import Config
from podtrail_exporters.file.file_thread import FileThread
from podtrail_exporters.file.form import Form
from podtrail_exporters.file.log_file import LogFile


class FileExporter:
    """A batch is delivered when the system has taken its bytes; what does not fit on the disk is tried again."""

    def __init__(self, config: Config, context: Context) -> None:
        """Write as configured; files are opened on entering."""
        self._config = config
        self._append = config.append or context.resumed
        self._form = Form(config.format, config.compression)
        self._spans = LogFile(Path(config.path), self._form, config.rotation, context.log)
        self._decisions: LogFile | None = None
        if config.decisions_path is not None:
            self._decisions = LogFile(Path(config.decisions_path), Form("json"), config.rotation, context.log)
        files = [self._spans] if self._decisions is None else [self._spans, self._decisions]
        self._thread = FileThread(context.id, files, config.flush_interval, context.log)

    @property
    def wants_verdicts(self) -> bool:
        """Whether decisions are written."""
        return self._decisions is not None

    async def __aenter__(self) -> Self:
        await self._thread.open(append=self._append, create_directory=self._config.create_directory)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self._thread.close()

    async def send(self, batch: Batch) -> int:
        """Append a batch as one message, and its verdicts as lines; nothing of it when that fails.

        Raises:
            Retryable: the disk is full or fails.
        """
        await self._thread.do(lambda: self._write(batch))
        return 0

    def _write(self, batch: Batch) -> None:
        writes: list[tuple[LogFile, bytes]] = []
        if batch.groups:
            json_format = self._form.format == "json"
            message = write_json_request(batch.groups) if json_format else write_request(batch.groups)
            writes.append((self._spans, self._form.write(message)))
        if self._decisions is not None and batch.verdicts:
            writes.append((self._decisions, b"".join(map(written_decision, batch.verdicts))))
        write_all(writes)


def write_all(writes: list[tuple[LogFile, bytes]]) -> None:
    """Append to all files or to none.

    Raises:
        Retryable: a disk is full or fails.
    """
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
