"""`podtrail record`: what comes over OTLP, or stands in files of other programs, as a recording."""

import re
from pathlib import Path
from typing import Final, NamedTuple

import click

from podtrail.cli.reading import strict_option, to_option
from podtrail.cli.recording_merge import merge
from podtrail.cli.sizes import parse_size
from podtrail.config.types import SECOND, host_port, is_loopback, parse_duration

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
            try:
                host_port(address[2])
            except ValueError as error:
                raise click.BadParameter(str(error)) from None
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
@click.option(
    "--allow-unauthenticated",
    is_flag=True,
    help="Listen where other machines can send as well, who may then all do so: nobody is asked for credentials.",
)
@click.option("--append", is_flag=True, help="Continue a recording.")
@click.option("--overwrite", is_flag=True, help="Begin a recording anew that is there.")
@strict_option
def command(
    sources: Sources,
    to: Path,
    seconds: float | None,
    limit: int | None,
    max_size: int | None,
    allow_unauthenticated: bool,
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
    for at in sources.listens.values():
        if not (allow_unauthenticated or is_loopback(host_port(at)[0])):
            raise click.UsageError(
                f"whoever reaches {at} could write to the recording: add --allow-unauthenticated if that is meant so"
            )
    from podtrail.cli.listening import Recorder, listen

    listen(
        sources.listens,
        Recorder(to, limit, max_size),
        seconds,
        append=append,
        allow_unauthenticated=allow_unauthenticated,
    )
