"""`podtrail components`: which receivers, processors, exporters and extensions there are."""

import json
import sys

import click

from podtrail.component import Factory, registry
from podtrail.config import printable
from podtrail.otlp import native


@click.command("components")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(as_json: bool) -> None:
    """List the components there are, with the older names that are accepted, too, and which code reads spans."""
    factories = list(registry.all_factories())
    show_broken()
    if as_json:
        click.echo(json.dumps([_described(factory) for factory in factories], indent=2))
        return
    rows = [("KIND", "TYPE", "OLDER NAMES", "WHAT IT IS"), *map(_row, factories)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        click.echo("  ".join((*cells, row[3])).rstrip())
    click.echo(f"\nnative: {native.RUNS}")


def show_broken() -> None:
    """Say on standard error what other distributions offer and can't be used, a line each."""
    for one in registry.broken():
        click.secho(
            f"warning: {printable(one.entry_point)}: can't be used: {printable(one.reason)}", fg="yellow", err=True
        )


def _row(factory: Factory) -> tuple[str, str, str, str]:
    return factory.kind, printable(factory.type), printable(", ".join(factory.aliases)), printable(summary(factory))


def _described(factory: Factory) -> dict[str, object]:
    return {
        "kind": factory.kind,
        "type": factory.type,
        "older_names": list(factory.aliases),
        "summary": summary(factory),
    }


def summary(factory: Factory) -> str:
    """Return the first line of what the component's module says it is, its own name left out."""
    module = sys.modules.get(getattr(factory.create, "__module__", ""))
    first = (module.__doc__ if module and module.__doc__ else "").strip().partition("\n")[0]
    name, colon, text = first.partition(": ")
    shown = text if colon and f"`{factory.type}`" in name else first
    return shown[:1].upper() + shown[1:]
