"""`podtrail suggest`: policies that keep to a budget, measured on a recording and replayed."""

import sys
from pathlib import Path

import click

from podtrail.backtest import DailyBudget
from podtrail.backtest.proposal import KeepWish, parse_wish
from podtrail.backtest.suggestion import Unsuitable, suggest
from podtrail.cli.amounts import PERCENTAGE, budget_of, share_of
from podtrail.cli.reading import Failed, RecordingInput, files, recordings_argument, strict_option
from podtrail.story import visible


def _wish(_context: click.Context, _option: click.Parameter, value: tuple[str, ...]) -> KeepWish:
    try:
        return parse_wish(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("suggest")
@recordings_argument
@click.option("--budget", required=True, callback=budget_of, metavar="AMOUNT", help='For example "2GB/day".')
@click.option(
    "--keep",
    "wish",
    multiple=True,
    default=("failed", "p99 latency"),
    show_default=True,
    callback=_wish,
    metavar="WHAT",
    help='What is kept whatever the rest: failed, "p99 latency", "slower than 1s". Repeatable.',
)
@click.option(
    "--sampled",
    type=PERCENTAGE,
    callback=share_of,
    metavar="N%",
    help="The recording is a random sample of so many traces. Where spans say so themselves (ot=th), that counts.",
)
@strict_option
def command(
    recordings: tuple[Path, ...], budget: DailyBudget, wish: KeepWish, sampled: float | None, strict: bool
) -> None:
    """Propose policies for a budget: what is to be kept first, and of the rest what there is room for.

    The block of YAML was replayed on the recording; its figures are what came of that. Exit code 1: the budget can't
    hold what is to be kept; what is printed is what comes nearest.
    """
    with files():
        source = RecordingInput(recordings, strict=strict)
        try:
            done = suggest(budget, wish, lambda: source.records("read"), sampled or 1.0)
        except Unsuitable as error:
            raise Failed(str(error)) from None
        click.echo(done.yaml(visible(path.name) for path in recordings), nl=False)
    if not done.fulfilled:
        for line in done.shortage():
            click.echo(f"podtrail: {line}", err=True)
        sys.exit(1)
