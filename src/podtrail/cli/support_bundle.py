"""`podtrail support-bundle`: one file for an issue, from a running podtrail."""

import io
import os
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, NoReturn

import click

from podtrail.cli.output_file import removed_when_stopped
from podtrail.cli.reading import Failed
from podtrail.cli.running_page import NobodyThere, asking, endpoint_option, get_json, no_page
from podtrail.config import printable
from podtrail.config.types import parse_duration

_SECOND: Final = 1_000_000_000
_MOST_SECONDS: Final = 600
_MOST_RECORDED: Final = 64 << 20
_CONTENTS: Final = "CONTENTS.txt"
_MEANINGS: Final[Mapping[str, str]] = {
    "config.yaml": "the configuration that runs, defaults left out, secrets redacted",
    "versions.json": "versions of podtrail, its packages, Python and the system",
    "health.json": "how long it runs, whether the ledger balances, warnings of its configuration",
    "ledger.json": "spans by what became of them, per exporter",
    "metrics.txt": "all own metrics, as Prometheus reads them",
    "policies.json": "what each policy decided, as far as it is held",
    "log.jsonl": "the last lines of the log, at most 2,000",
    "kept.jsonl": "spans that were kept meanwhile, as a recording",
}
_LEFT_OUT: Final = (
    "secrets: what components declare one, keys that sound like one, users and queries of URLs; what comes from the",
    "  environment is shown by the variable's name",
    "environment variables, files that the configuration names, command line",
)


def _length(_context: click.Context, _option: click.Parameter, value: str | None) -> int:
    """Return whole seconds; 0 for nothing."""
    if value is None:
        return 0
    try:
        seconds = -(-parse_duration(value) // _SECOND)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if not 1 <= seconds <= _MOST_SECONDS:
        raise click.BadParameter("must be from 1s to 10m")
    return seconds


@click.command("support-bundle")
@click.option("--to", type=click.Path(path_type=Path), metavar="FILE", help="Where to write; must not exist.")
@click.option("--record", "seconds", callback=_length, metavar="DURATION", help="Record what is kept for so long, too.")
@endpoint_option
def command(to: Path | None, seconds: int, endpoint: str) -> None:
    """Write one .tar.gz for an issue: what a running podtrail tells of itself, without secrets.

    It can be read by its owner alone. Look through it before you pass it on: names of Pods and nodes are in it.
    """
    path = to or Path(f"podtrail-support-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}.tar.gz")
    with _new_file(path) as file:
        try:
            contents = _asked(endpoint, seconds)
        except NobodyThere as problem:
            raise Failed(str(problem)) from None
        listed = _listed(endpoint, contents, recorded=bool(seconds))
        _write(file, {_CONTENTS: listed.encode(), **contents})
    click.echo(listed, nl=False)
    click.echo(f"written to {printable(str(path))}")


def _asked(endpoint: str, seconds: int) -> dict[str, bytes]:
    """Return what a page tells, by file, with a recording of so many seconds. NobodyThere where it tells nothing."""
    files = get_json(endpoint, "/api/v1/support", {}).get("files")
    if not isinstance(files, dict):
        raise no_page(endpoint)
    contents = {str(name): str(text).encode("utf-8", "backslashreplace") for name, text in files.items()}
    return {**contents, "kept.jsonl": _record(endpoint, seconds)} if seconds else contents


def _record(endpoint: str, seconds: int) -> bytes:
    """Return what is kept within so many seconds.

    Raises:
        NobodyThere: nobody answers, or no longer.
    """
    click.echo(f"recording for {seconds} s", err=True)
    query = {"seconds": str(seconds)}
    with asking(endpoint, "/api/v1/record", query, seconds=seconds + 30.0) as answer:
        raw = answer.body.read(_MOST_RECORDED)
        if answer.status != 200:
            raise NobodyThere(f"{endpoint} does not record: {raw[:200].decode('utf-8', 'replace')}")
    return raw


def _listed(endpoint: str, contents: Mapping[str, bytes], *, recorded: bool) -> str:
    """Return what is in the bundle, and what is not."""
    width = max(map(len, contents), default=0)
    lines = [f"podtrail support bundle, asked of {endpoint}", "", "In it:"]
    for name, raw in contents.items():
        lines.append(f"  {printable(name):{width}}  {len(raw):>10,} bytes  {_MEANINGS.get(name, '')}".rstrip())
    lines += ["", "Left out:", *(f"  {one}" for one in _LEFT_OUT)]
    if recorded:
        lines += ["", "kept.jsonl has names as they are: podtrail recording anonymize makes others of them."]
    else:
        lines.append("  spans: --record 60s takes along what is kept in a minute")
    return "\n".join(lines) + "\n"


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file that was not there before: nobody waits for a recording that has no place. Half of one goes."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except (OSError, ValueError) as error:  # ValueError: there is a NUL in its name
        _refuse(path, error)
    whole = False
    try:
        with removed_when_stopped(path, path), os.fdopen(descriptor, "wb") as file:
            yield file
        whole = True
    except OSError as error:
        _refuse(path, error)
    finally:
        if not whole:
            path.unlink(missing_ok=True)


def _write(file: IO[bytes], contents: Mapping[str, bytes]) -> None:
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, raw in contents.items():
            member = tarfile.TarInfo(f"podtrail-support/{_safe(name)}")
            member.size, member.mode, member.mtime = len(raw), 0o600, int(time.time())
            archive.addfile(member, io.BytesIO(raw))


def _refuse(path: Path, error: OSError | ValueError) -> NoReturn:
    reason = error.strerror if isinstance(error, OSError) else error
    click.echo(f"podtrail: {printable(str(path))}: {reason}", err=True)
    sys.exit(2)


def _safe(name: str) -> str:
    """Return a name that stays within the archive: it is told by whoever answers."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in name).lstrip(".")[:100] or "file"
