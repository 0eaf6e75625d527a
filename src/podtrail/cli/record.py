"""`podtrail record`: what comes over OTLP, or stands in files of other programs, as a recording."""

import asyncio
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from podtrail.cli.options import reporting
from podtrail.cli.reading import Failed, strict_option, to_option
from podtrail.cli.recording_merge import merge
from podtrail.cli.sizes import format_size, parse_size
from podtrail.config.types import SECOND, format_duration, parse_duration

if TYPE_CHECKING:
    from podtrail.otlp import Batch
    from podtrail.service import Service

_OTLP: Final = "otlp"
_ADDRESS: Final = re.compile(r"(?:(grpc|http)://)?(\S*:[0-9]{1,5})/?")
_DEFAULTS: Final = {"grpc": "localhost:4317", "http": "localhost:4318"}


class Sources(NamedTuple):
    """Where spans come from: addresses to listen on, by protocol, or files."""

    listens: dict[str, str]
    files: tuple[Path, ...]


def _sources(_context: click.Context, _option: click.Parameter, value: tuple[str, ...]) -> Sources:
    listens: dict[str, str] = {}
    paths: list[Path] = []
    for source in value or (_OTLP,):
        address = _ADDRESS.fullmatch(source)
        if source == _OTLP:
            listens |= _DEFAULTS
        elif address and not Path(source).exists():
            protocol = address[1] or "grpc"
            if protocol in listens:
                raise click.BadParameter(f"{protocol} is listened for twice, {source} and {listens[protocol]}")
            listens[protocol] = address[2]
        else:
            paths.append(Path(source))
    if listens and paths:
        raise click.BadParameter("either addresses or files: record one, then merge the recordings")
    return Sources(listens, tuple(paths))


def _duration(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    try:
        nanoseconds = None if value is None else parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if nanoseconds is not None and nanoseconds <= 0:
        raise click.BadParameter("must be more than 0s")
    return None if nanoseconds is None else nanoseconds / SECOND


def _size(_context: click.Context, _option: click.Parameter, value: str | None) -> int | None:
    try:
        return None if value is None else parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("record")
@click.option(
    "--from",
    "sources",
    multiple=True,
    callback=_sources,
    metavar="SOURCE",
    help="HOST:PORT or grpc://HOST:PORT to listen for OTLP over gRPC, http://HOST:PORT over HTTP; a file to read it. "
    f"Repeatable; by default gRPC on {_DEFAULTS['grpc']} and HTTP on {_DEFAULTS['http']}.",
)
@to_option
@click.option("--for", "seconds", callback=_duration, metavar="DURATION", help="End after this long, for example 10m.")
@click.option("--limit", type=click.IntRange(min=1), help="End with the request that brings so many spans together.")
@click.option("--max-size", callback=_size, metavar="SIZE", help="End when the file is so large, for example 500MiB.")
@click.option("--append", is_flag=True, help="Continue a recording.")
@click.option("--overwrite", is_flag=True, help="Begin a recording anew that is there.")
@strict_option
def command(
    sources: Sources,
    to: Path,
    seconds: float | None,
    limit: int | None,
    max_size: int | None,
    append: bool,
    overwrite: bool,
    strict: bool,
) -> None:
    """Write what comes over OTLP to a recording, request by request with the time of its arrival.

    Ends with Ctrl-C or SIGTERM, or when as much has come as was asked for; what was acknowledged is in the file. Files
    of the Collector's file exporter and JSON of Jaeger and Zipkin become recordings, too.
    """
    if append and overwrite:
        raise click.UsageError("--append and --overwrite contradict each other")
    if to.exists() and to.stat().st_size and not (append or overwrite):
        raise click.UsageError(f"{to} is there: --append continues it, --overwrite begins it anew")
    if sources.files:
        for given, name in ((seconds, "--for"), (limit, "--limit"), (max_size, "--max-size"), (append, "--append")):
            if given:
                raise click.UsageError(f"{name} is for listening: cut or merge recordings of files afterwards")
        merge(sources.files, to, strict=strict)
        return
    if strict:
        raise click.UsageError("--strict is for files: who sends invalid spans is told so")
    _listen(sources.listens, to, _Recorder(to, limit, max_size), seconds, append=append)


@dataclass(slots=True)
class _Recorder:
    """Counts what comes and says when that is enough; an `Observer`."""

    to: Path
    limit: int | None
    max_size: int | None
    service: "Service | None" = None
    requests: int = 0
    spans: int = 0

    def observe(self, pipeline: str, batch: "Batch") -> None:  # noqa: ARG002 - an Observer's signature
        """Take note of a request."""
        self.requests += bool(batch.groups)
        self.spans += batch.span_count
        enough = self.limit is not None and self.spans >= self.limit
        if enough or (self.max_size is not None and self.size() >= self.max_size):
            assert self.service is not None
            self.service.stop()

    def size(self) -> int:
        """Return the bytes of the file so far."""
        return self.to.stat().st_size if self.to.exists() else 0


def _listen(listens: dict[str, str], to: Path, recorder: _Recorder, seconds: float | None, *, append: bool) -> None:
    from podtrail.component import StartError
    from podtrail.config import Document
    from podtrail.pipeline.settings import read_settings
    from podtrail.service import Service

    with reporting():
        settings = read_settings(Document.from_mapping(_configuration(listens, to, append=append)), frozenset())
    service = recorder.service = Service(settings, lambda: settings, observers=[recorder])
    began = time.monotonic()

    async def run() -> Any:
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, service.stop)
        return await service.run()

    try:
        with _progress(recorder, listens):
            ended = asyncio.run(run())
    except StartError as error:
        raise Failed(str(error)) from None
    (balance,) = ended.balances
    took = format_duration(int((time.monotonic() - began) * 1000) * SECOND // 1000)
    click.echo(
        f"{to}: {recorder.requests:,} requests, {balance.delivered:,} spans in {took}, {format_size(recorder.size())}"
    )
    lost = recorder.spans - balance.delivered
    if lost:
        raise Failed(f"{lost:,} spans are not in the recording")
    if not recorder.requests:
        raise Failed("nothing came")


def _configuration(listens: dict[str, str], to: Path, *, append: bool) -> dict[str, Any]:
    quiet = "warn" if sys.stderr.isatty() else "info"
    return {
        "receivers": {"otlp": {"protocols": {protocol: {"endpoint": at} for protocol, at in listens.items()}}},
        "exporters": {"recording": {"path": str(to), "append": append}},
        "service": {
            "telemetry": {"metrics": {"level": "none"}, "logs": {"level": quiet}},
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["recording"]}},
        },
    }


@contextmanager
def _progress(recorder: _Recorder, listens: dict[str, str]) -> Iterator[None]:
    """Show on a terminal how it goes."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TimeElapsedColumn
    from rich.text import Text

    class Came(ProgressColumn):
        def render(self, task: Task) -> Text:  # noqa: ARG002 - rich's signature
            size = format_size(recorder.size())
            return Text(f"{recorder.spans:,} spans in {recorder.requests:,} requests, {size}")

    where = ", ".join(f"{protocol} on {at}" for protocol, at in listens.items())
    click.echo(f"listening for OTLP: {where}; Ctrl-C ends", err=True)
    columns = (SpinnerColumn(), Came(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as progress:
        progress.add_task("recording", total=None)
        yield
