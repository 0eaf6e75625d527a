"""A recording made of what comes over OTLP: a pipeline from the `otlp` receiver to the `recording` exporter."""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from podtrail.cli.address_in_use import free, taken
from podtrail.cli.options import reporting
from podtrail.cli.reading import Failed
from podtrail.cli.sizes import format_size
from podtrail.component import StartError
from podtrail.config import Document
from podtrail.config.types import SECOND, format_duration
from podtrail.otlp import Batch
from podtrail.pipeline.settings import read_settings
from podtrail.service import Service
from podtrail.story import several

_LOOK_AGAIN: Final = 0.1
"""Seconds between two looks at the file's size."""


@dataclass(slots=True)
class Recorder:
    """Counts what comes and says when that is enough; a `BatchObserver`."""

    to: Path
    limit: int | None
    """Spans."""
    max_size: int | None
    """Bytes of the file."""
    service: Service | None = None
    requests: int = 0
    spans: int = 0

    def observe(self, pipeline: str, batch: Batch) -> None:  # noqa: ARG002 - an Observer's signature
        """Take note of a request."""
        self.requests += bool(batch.groups)
        self.spans += batch.span_count
        self.stop_when_full()

    def stop_when_full(self) -> bool:
        """Stop when as much has come as was asked for; return whether it has."""
        full = ""
        if self.limit is not None and self.spans >= self.limit:
            full = f"{several(self.spans, 'span')} of --limit {self.limit:,} came"
        elif self.max_size is not None and (size := self.size()) >= self.max_size:
            full = f"the file has {format_size(size)} of --max-size {format_size(self.max_size)}"
        if full:
            assert self.service is not None
            self.service.stop(full)
        return bool(full)

    def size(self) -> int:
        """Return the bytes of the file so far."""
        return self.to.stat().st_size if self.to.exists() else 0


def listen(
    listens: dict[str, str],
    recorder: Recorder,
    seconds: float | None,
    *,
    append: bool,
    allow_unauthenticated: bool = False,
) -> None:
    """Record what comes at these addresses, by protocol, until told to stop or for so many seconds; say what came.

    Raises:
        Failed: nothing came, or something is not in the file.
    """
    to = recorder.to
    with reporting():
        configuration = _configuration(listens, to, append=append, allow_unauthenticated=allow_unauthenticated)
        settings = read_settings(Document.from_mapping(configuration), frozenset())
    service = recorder.service = Service(settings, lambda: settings, observers=[recorder])
    began = time.monotonic()

    def end_when_full() -> None:
        # What was observed last is on its way to the file: without another request nobody would look again.
        if not recorder.stop_when_full():
            asyncio.get_running_loop().call_later(_LOOK_AGAIN, end_when_full)

    async def run() -> Any:
        if seconds is not None:
            over = f"--for {format_duration(int(seconds * SECOND))} is over"
            asyncio.get_running_loop().call_later(seconds, service.stop, over)
        end_when_full()
        return await service.run()

    try:
        with _progress(recorder, listens):
            ended = asyncio.run(run())
    except StartError as error:
        raise Failed(f"{error}{_advice(error, listens)}") from None
    (balance,) = ended.balances
    took = format_duration(int((time.monotonic() - began) * 1000) * SECOND // 1000)
    sums = f"{several(recorder.requests, 'request')}, {several(balance.delivered, 'span')}"
    click.echo(f"{to}: {sums} in {took}, {format_size(recorder.size())}")
    lost = recorder.spans - balance.delivered
    if lost:
        raise Failed(f"{lost:,} spans are not in the recording")
    if not recorder.requests:
        raise Failed("nothing came")


def _advice(error: StartError, listens: Mapping[str, str]) -> str:
    """Return what to do where somebody else listens at one of these addresses; "" for another error."""
    endpoint = taken(error)
    if not endpoint:
        return ""
    sources = [(protocol, free(at) if at == endpoint else at) for protocol, at in listens.items()]
    return f"; take a free port: {' '.join(f'--from {protocol}://{at}' for protocol, at in sources)}"


def _configuration(listens: dict[str, str], to: Path, *, append: bool, allow_unauthenticated: bool) -> dict[str, Any]:
    protocols = {
        protocol: {"endpoint": at, "allow_unauthenticated": allow_unauthenticated} for protocol, at in listens.items()
    }
    quiet = "warn" if sys.stderr.isatty() else "info"
    return {
        "receivers": {"otlp": {"protocols": protocols}},
        "exporters": {"recording": {"path": str(to), "append": append}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}, "logs": {"level": quiet}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["recording"]}},
        },
    }


@contextmanager
def _progress(recorder: Recorder, listens: dict[str, str]) -> Iterator[None]:
    """Show on a terminal how it goes."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
    from rich.text import Text

    class RecordingColumn(ProgressColumn):
        def render(self, task: Task) -> Text:  # noqa: ARG002 - rich's signature
            size = format_size(recorder.size())
            return Text(f"{recorder.spans:,} spans in {recorder.requests:,} requests, {size}")

    where = ", ".join(f"{protocol} on {at}" for protocol, at in listens.items())
    click.echo(f"listening for OTLP: {where}; Ctrl-C ends", err=True)
    columns = (SpinnerColumn(), RecordingColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as progress:
        progress.add_task("recording", total=None)
        yield
