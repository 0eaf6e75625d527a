"""The command line: one module a command, imported when it is called.

Exit codes: 0 done; 1 the work failed or an expectation did not hold; 2 usage or configuration.
"""

import codecs
import errno
import io
import json
import os
import sys
from contextlib import suppress
from typing import Any, Final

import click

from podtrail.cli.lazy import LazyGroup

_COMMANDS: Final = {
    "run": ("run", "Run the pipelines of a configuration."),
    "demo": ("demo", "Simulate a cluster and show its scheduling on the page, without any set-up."),
    "validate": ("validate", "Check a configuration and report everything that is wrong."),
    "components": ("components", "List the components there are."),
    "print-config": ("print_config", "Print the configuration, merged, without secrets."),
    "replay": ("replay", "Run recorded traces through a configuration's processors, in virtual time."),
    "test": ("test", "Run tests of policies: what they keep, for which reason."),
    "record": ("record", "Write what comes over OTLP, or stands in other programs' files, to a recording."),
    "recording": ("recording", "Merge, cut, anonymize and count recordings."),
    "generate": ("generate", "Make a scheduler's traffic: into a recording, or to an OTLP endpoint."),
    "backtest": ("backtest", "Compare what two configurations keep of recorded traces."),
    "suggest": ("suggest", "Propose policies for a budget, measured on recorded traces."),
    "capacity": ("capacity", "Say what a rate of Pods takes: replicas, partitions, memory, disk, network, money."),
    "why": ("why", "Say why a Pod waits, or what became of a trace, in plain words."),
    "report": ("tickets", "Write a Pod's story or an incident for a ticket: Markdown, or one HTML file."),
    "tap": ("tap", "Show decisions and spans as they leave a running podtrail's pipelines."),
    "top": ("top", "Show what goes on in a running podtrail: attempts, who waits, slow plugins, policies, queues."),
    "support-bundle": (
        "support_bundle",
        "Write one file for an issue, from a running podtrail; without secrets.",
    ),
    "completion": ("completion", "Print what bash, zsh or fish needs to complete commands, options and names."),
    "trace": ("trace", "Run kubectl, or any client, so that its requests are traced; follow the Pods that come of it."),
    "reconstruct": ("reconstruct", "Rebuild a stock kube-scheduler's attempts from its log and from watches."),
    "webhook": ("podtrail_webhook.command", "Write requests' trace context into Pods, as an admission webhook."),
}


_ESCAPED: Final = "podtrail.escaped"
_OUTPUT_FAILS: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE}
_NAME_IS_UNUSABLE: Final = {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP}
"""Also what `Path.exists` and `Path.is_file` raise, which hold for other failures that there is no such file."""


class _Main(LazyGroup):
    """All commands."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Call the command.

        An output that takes nothing more ends it with a line and exit code 1, a name that can't be asked for with 2.
        """
        _open_closed_streams()
        _escape_characters()
        try:
            try:
                return super().main(*args, **extra)
            finally:
                sys.stdout.flush()
        except OSError as error:
            if error.errno in _NAME_IS_UNUSABLE and error.filename is not None:
                from podtrail.cli.reading import in_words
                from podtrail.config.printable import printable

                click.echo(f"podtrail: {printable(in_words(error))}", err=True)
                sys.exit(2)
            if error.errno not in _OUTPUT_FAILS or error.filename is not None:
                raise
            _abandon_output(error)
            sys.exit(1)
        finally:
            _flush_messages()


@click.command(cls=_Main, named=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="podtrail")
def main() -> None:
    """Keeps the scheduling attempts worth keeping and stitches them into the story of a Pod."""


def _open_closed_streams() -> None:
    """Lead standard streams that are closed nowhere: else the next file that is opened would take their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            mode = "w" if number else "r"
            nowhere = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - open as long as the process lives
            if nowhere.fileno() != number:
                os.dup2(nowhere.fileno(), number)
            setattr(sys, name, nowhere)


def _escape_characters() -> None:
    r"""Have characters that the terminal's encoding lacks, and bytes of file names, written as `\u2026`, as in JSON."""
    codecs.register_error(_ESCAPED, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with suppress(OSError, ValueError):  # it is closed, or no longer what it was when it was opened
                stream.reconfigure(errors=_ESCAPED)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    escaped = json.dumps(error.object[error.start : error.end])[1:-1]
    return escaped, error.end


def _flush_messages() -> None:
    """Write what is buffered of standard error, or drop it if nobody reads it.

    Python tries that once more at its end, and a failure there replaces the command's exit code by 120.
    """
    try:
        sys.stderr.flush()
    except OSError:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)


def _abandon_output(error: OSError) -> None:
    # What is still buffered would be tried once more at the end, and fail again.
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        if error.errno == errno.EPIPE:
            return  # a reader that has seen enough, such as head
        try:
            click.echo(f"podtrail: can't write the output: {error.strerror}", err=True)
        except OSError:
            os.dup2(nowhere.fileno(), 2)
