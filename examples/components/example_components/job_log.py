"""`job_log`: makes a span of each line of a log of jobs."""

import asyncio
import hashlib
import json
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pydantic import Field

from podtrail.component import Consumer, Context, Factory, Lost, Refused, StartError
from podtrail.config.types import Model
from podtrail.otlp import Batch, Group, Status, encode_span, frame, resource_header, scope_header


class Config(Model):
    """Which log to read."""

    path: str = Field(
        description='A file with a line of JSON a job: `{"job": "backup", "start": 1767225600, "seconds": 12.5}`.'
    )


class JobLog:
    """Reads the log to its end."""

    finite = True

    def __init__(self, config: Config, context: Context) -> None:
        """Read nothing yet."""
        self._path = Path(config.path)
        self._log = context.log
        self._file: IO[str] | None = None
        self._accepted = context.metrics.counter(
            "otelcol_receiver_accepted_spans", "Spans that the pipelines took.", ("receiver", "transport")
        )
        self._labels = (context.id, "file")
        self._resource = resource_header({"service.name": "jobs"})
        self._scope = scope_header("example_components")

    async def __aenter__(self) -> Self:
        """Open the log. StartError when it can't be."""
        try:
            self._file = self._path.open(encoding="utf-8")
        except OSError as error:
            raise StartError(f"path: can't read {self._path}: {error.strerror}") from error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()

    async def run(self, consume: Consumer) -> None:
        """Hand over a span a line; end with the log."""
        assert self._file is not None
        while line := await asyncio.to_thread(self._file.readline):
            try:
                batch = self._batch(line)
            except (ValueError, KeyError, TypeError) as error:
                self._log.warning("this is no job: %r: %r", line, error)
                continue
            await self._hand_over(batch, consume)

    def _batch(self, line: str) -> Batch:
        job = json.loads(line)
        start = int(job["start"] * 1_000_000_000)
        end = start + int(job["seconds"] * 1_000_000_000)
        digest = hashlib.sha256(line.encode()).digest()  # the same line, the same span
        span = encode_span(
            trace_id=digest[:16],
            span_id=digest[16:24],
            name=job["job"],
            start=start,
            end=end,
            status=Status(2, job["error"]) if "error" in job else None,
            attributes={"job.name": job["job"]},
        )
        group = Group(self._resource, self._scope, digest[:16], frame([span]), 1)
        return Batch([group], arrived=0)  # 0: the pipelines put down when it came to them

    async def _hand_over(self, batch: Batch, consume: Consumer) -> None:
        """Offer a batch until it is taken: the log can wait."""
        while True:
            try:
                await consume(batch)
            except Refused as refused:
                await asyncio.sleep(refused.after or 1.0)
            except Lost as lost:  # podtrail has counted it and said why; it must not be offered again
                self._log.warning("%s", lost)
                return
            else:
                self._accepted.add(batch.span_count, *self._labels)
                return


def _create(config: Config, context: Context) -> Any:
    return JobLog(config, context)


FACTORY = Factory(kind="receiver", type="job_log", Config=Config, create=_create, finite=True)
