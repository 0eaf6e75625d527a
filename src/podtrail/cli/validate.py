"""`podtrail validate`: everything that is wrong with a configuration in one report, or one line that says OK."""

import click

from podtrail.cli.components import show_broken
from podtrail.cli.options import config_options, reporting, settings_of
from podtrail.cli.report import show_warnings
from podtrail.config import printable
from podtrail.pipeline.settings import Settings


@click.command("validate")
@config_options()
def command(config: tuple[str, ...], assignments: tuple[str, ...], gates: frozenset[str]) -> None:
    """Check a configuration and report everything that is wrong, with file, line and what would be right."""
    show_broken()
    with reporting():
        settings = settings_of(config, assignments, gates)
    show_warnings(settings.warnings)
    click.echo(f"OK {', '.join(map(printable, config))}: {_described(settings)}")


def _described(settings: Settings) -> str:
    pipelines = ", ".join(printable(pipeline.id) for pipeline in settings.pipelines)
    counts = (
        _counted(len(settings.receivers), "receiver"),
        _counted(len(settings.processors), "processor"),
        _counted(len(settings.exporters), "exporter"),
        _counted(len(settings.extensions), "extension"),
        f"{_counted(len(settings.pipelines), 'pipeline')} ({pipelines})",
    )
    warned = f"; {_counted(len(settings.warnings), 'warning')}" if settings.warnings else ""
    return ", ".join(counts) + warned


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
