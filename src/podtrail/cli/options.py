"""Options that commands share, and what they lead to: the settings of a configuration."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import click

from podtrail.cli import completing
from podtrail.cli.report import ConfigProblem
from podtrail.config import ConfigError, Document
from podtrail.config.feature_gates import parse_gates
from podtrail.pipeline.settings import PipelineSettings, Settings, read_settings

F = TypeVar("F", bound=Callable[..., Any])


def config_options(*, required: bool = True) -> Callable[[F], F]:
    """Give a command `config` (tuple of sources), `assignments` (tuple of `--set`) and `gates` (frozenset)."""

    def decorate(command: F) -> F:
        for option in (
            click.option("--feature-gates", "gates", multiple=True, callback=_gates, metavar="A,-B", help=_GATES_HELP),
            click.option(
                "--set",
                "assignments",
                multiple=True,
                metavar="KEY=VALUE",
                shell_complete=completing.assignments,
                help=_SET_HELP,
            ),
            click.option("--config", multiple=True, required=required, metavar="SOURCE", help=_CONFIG_HELP),
        ):
            command = option(command)
        return command

    return decorate


_CONFIG_HELP = "A path, file:PATH, env:NAME or 'yaml:a::b: value'. Repeatable; a later one is laid over the earlier."
_SET_HELP = "Set one value last of all, for example processors.batch.timeout=2s. Repeatable."
_GATES_HELP = "Switch feature gates on, or with a minus off. Repeatable."


def _gates(_context: click.Context, _option: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:
    try:
        return parse_gates(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@contextmanager
def reporting() -> Iterator[None]:
    """End the command with the report and exit code 2 when the configuration can't be used.

    Raises:
        ConfigProblem: the report.
    """
    try:
        yield
    except ConfigError as error:
        raise ConfigProblem(error) from None


def settings_of(
    config: tuple[str, ...], assignments: tuple[str, ...], gates: frozenset[str], idle: Collection[str] = ()
) -> Settings:
    """Return the settings that the options name; `idle` as in `read_settings`.

    Raises:
        ConfigError: they name no configuration, or one that is not valid.
    """
    return read_settings(Document.load(config, assignments), gates, idle)


def replayed(config: tuple[str, ...], assignments: tuple[str, ...], gates: frozenset[str]) -> Settings:
    """Return the settings that a recording is replayed with.

    A pipeline that does nothing but record what comes is left out beside others: it would let out all once more.

    Raises:
        ConfigError: the options name no configuration, or one that is not valid.
    """
    settings = settings_of(config, assignments, gates, idle=("receivers", "exporters"))
    others = tuple(pipeline for pipeline in settings.pipelines if not _records(pipeline))
    return replace(settings, pipelines=others or settings.pipelines)


def _records(pipeline: PipelineSettings) -> bool:
    return not pipeline.processors and all(id.partition("/")[0] == "recording" for id in pipeline.exporters)
