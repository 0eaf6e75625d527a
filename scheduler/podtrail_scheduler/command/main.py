"""`podtrail-scheduler`: runs as a second scheduler beside kube-scheduler, or in its place, with its flags.

Exit codes: 0 done; 1 the configuration is refused, or the scheduler failed or lost its leadership; 2 usage.
"""

import logging
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click

from podtrail_scheduler.configuration.encoding import encode
from podtrail_scheduler.configuration.errors import ConfigurationError
from podtrail_scheduler.plugins.selection import Selection

from .flags import shown
from .logs import set_up, structured, verbosity
from .options import Flags, with_options
from .preparation import prepare

KUBERNETES = "v1.37.1"
"""The release whose decisions are followed."""

_log = logging.getLogger("podtrail_scheduler.command")


def _print_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:  # noqa: ARG001
    if wanted:
        click.echo(f"podtrail-scheduler {version('podtrail')} (Kubernetes {KUBERNETES})")
        context.exit()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@with_options
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Say which.")
@click.pass_context
def main(context: click.Context, /, **given: Any) -> None:
    """Schedule the Pods whose `spec.schedulerName` is one of the configured profiles."""
    flags = Flags(**given)
    set_up(flags.v)
    for parameter in context.command.params:
        if parameter.name in given:
            text = shown(given[parameter.name], parameter.type)
            _log.log(verbosity(1), 'FLAG: --%s="%s"', parameter.name.replace("_", "-"), text)
    try:
        prepared = prepare(flags)
        text = encode(prepared.configuration)
    except ConfigurationError as refused:
        click.echo(str(refused), err=True)
        _fail(refused.message)
    _log.log(verbosity(2), "%s", structured("Using component config", config=text))
    if flags.write_config_to:
        _write(flags.write_config_to, text)
    else:
        _run(flags, prepared)


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, "utf-8")
    except OSError as error:
        _fail(f"open {file}: {(error.strerror or str(error)).lower()}")
    _log.info("%s", structured("Wrote configuration", file=file))


def _run(flags: Flags, prepared: Selection) -> None:
    from .running import RunningFailed, run_until_signalled

    try:
        run_until_signalled(flags, prepared)
    except RunningFailed as failed:
        _fail(str(failed))


def _fail(message: str) -> None:
    _log.error("%s", structured("command failed", err=message))
    sys.exit(1)


if __name__ == "__main__":
    main()
