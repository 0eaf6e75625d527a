"""`podtrail backtest`: what a configuration would have kept of a recording, compared with another."""

import json
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, TextIO

import click

from podtrail.backtest import Backtest, Contender, DailyBudget, Report, ReportContext, summarize
from podtrail.backtest.durations import Durations
from podtrail.backtest.expectations import Expectations
from podtrail.backtest.text import lines
from podtrail.cli.amounts import PERCENTAGE, budget_of, share_of
from podtrail.cli.options import replayed, reporting
from podtrail.cli.output_file import whole_file
from podtrail.cli.processor_lines import processor_lines, show_faults
from podtrail.cli.reading import RecordingInput, files, recordings_argument, refuse_overwriting, strict_option
from podtrail.cli.report import show_warnings
from podtrail.config.feature_gates import parse_gates
from podtrail.config.types import parse_duration
from podtrail.story import Line, to_json

_QUANTILE: Final = re.compile(r"p([0-9]{1,2}(?:\.[0-9]+)?)")
_COLOURS: Final = {"bad": "red", "held": "yellow", "good": "green"}
_BOLD: Final = ("strong", "command")


def _gates(_context: click.Context, _option: click.Parameter, value: tuple[str, ...]) -> frozenset[str]:
    try:
        return parse_gates(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _slow(_context: click.Context, _option: click.Parameter, value: str) -> int | float:
    """Return a length of time in nanoseconds, or a quantile as a share below 1."""
    if found := _QUANTILE.fullmatch(value):
        return float(found[1]) / 100
    try:
        threshold = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if threshold <= 0:
        raise click.BadParameter("must be longer than nothing")
    return threshold


_SOURCE: Final = "A path, file:PATH, env:NAME or 'yaml:a::b: value'. Repeatable; a later one is laid over the earlier."


@click.command("backtest")
@recordings_argument
@click.option("--baseline", multiple=True, metavar="SOURCE", help=f"The configuration that is. {_SOURCE}")
@click.option("--candidate", multiple=True, metavar="SOURCE", help="The configuration that may come, given alike.")
@click.option("--feature-gates", "gates", multiple=True, callback=_gates, metavar="A,-B", help="Of both.")
@click.option("--budget", callback=budget_of, metavar="AMOUNT", help='What may leave, for example "2GB/day".')
@click.option(
    "--slow",
    default="1s",
    show_default=True,
    callback=_slow,
    metavar="DURATION|pNN",
    help="Beyond which time a successful attempt is slow; p99: of this recording, which is read twice then.",
)
@click.option(
    "--sampled",
    type=PERCENTAGE,
    callback=share_of,
    metavar="N%",
    help="The recording is a random sample of so many traces. Where spans say so themselves (ot=th), that counts.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as one JSON object.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Write the report as one page.")
@click.option("--markdown", type=click.Path(path_type=Path), metavar="FILE", help="Write it as Markdown for a ticket.")
@strict_option
@click.option("--fail-on-lost-failed", is_flag=True, help="Exit code 1 when a failed attempt is lost.")
@click.option("--fail-on-lost-slow", is_flag=True, help="Exit code 1 when a slow attempt is lost.")
@click.option(
    "--max-spans-increase",
    type=PERCENTAGE,
    metavar="N%",
    help="Exit code 1 when the candidate lets out so many more spans than the baseline.",
)
@click.option("--fail-over-budget", is_flag=True, help="Exit code 1 when the candidate exceeds the budget.")
def command(
    recordings: tuple[Path, ...],
    baseline: tuple[str, ...],
    candidate: tuple[str, ...],
    gates: frozenset[str],
    budget: DailyBudget | None,
    slow: int | float,
    sampled: float | None,
    as_json: bool,
    html: Path | None,
    markdown: Path | None,
    strict: bool,
    fail_on_lost_failed: bool,
    fail_on_lost_slow: bool,
    max_spans_increase: float | None,
    fail_over_budget: bool,
) -> None:
    """Compare what two configurations keep of recorded traces, in virtual time.

    With one configuration: what it keeps of all there is. Lost is what the baseline keeps and the candidate does not,
    gained the reverse. Exit code 1: an expectation (--fail-…, --max-…) does not hold.
    """
    if not baseline and not candidate:
        raise click.UsageError("--candidate is needed, and --baseline to compare with")
    if fail_over_budget and budget is None:
        raise click.UsageError("--fail-over-budget goes with --budget")
    if max_spans_increase is not None and not (baseline and candidate):
        raise click.UsageError("--max-spans-increase needs both --baseline and --candidate")
    if html is not None and markdown is not None and html.resolve() == markdown.resolve():
        raise click.UsageError(f"--html and --markdown are the same file: {html}")
    for path in filter(None, (html, markdown)):
        refuse_overwriting(recordings, path, (*baseline, *candidate))
    expected = Expectations(fail_on_lost_failed, fail_on_lost_slow, max_spans_increase, fail_over_budget)
    before = _contender("baseline", baseline, gates) if baseline and candidate else None
    after = _contender("candidate", candidate or baseline, gates)
    show_warnings(dict.fromkeys((*(before.settings.warnings if before else ()), *after.settings.warnings)))
    with files(), processor_lines():
        source = RecordingInput(recordings, strict=strict)
        threshold, chosen = _threshold(slow, source)
        comparison = Backtest(before, after, slow=threshold, probability=sampled or 1.0)
        for record in source.records("read"):
            comparison.add(record)
        comparison.finish()
        comparison.intakes.damages = source.damages
        names = [path.name for path in recordings]
        report = summarize(comparison, ReportContext(names, chosen, budget, sampled), expected)
        if html is not None:
            from podtrail.backtest.page import page

            with whole_file(html) as written:
                written.write_bytes(page(report))
        if markdown is not None:
            from podtrail.backtest.ticket import backtest_report
            from podtrail.reports.markdown import to_markdown

            with whole_file(markdown) as written:
                written.write_text(to_markdown(backtest_report(report)), encoding="utf-8")
    if as_json:
        click.echo(json.dumps(to_json(report)))
    else:
        _print_lines(lines(report), sys.stdout)
    failed = [show_faults(side.flows) for side in comparison.sides]
    _end(report)
    if any(failed):
        sys.exit(1)


def _contender(name: str, sources: Sequence[str], gates: Collection[str]) -> Contender:
    with reporting():
        settings = replayed(tuple(sources), (), frozenset(gates))
    return Contender(name, ", ".join(sources), settings, gates)


def _threshold(slow: int | float, recordings: RecordingInput) -> tuple[int, str]:
    """Return the threshold in nanoseconds, and how it was chosen; a quantile is looked up in the recording."""
    if isinstance(slow, int):
        return slow, "as --slow says"
    durations = Durations()
    for record in recordings.records("read"):
        durations.came(record.intake.groups)
    return durations.quantile(slow), f"p{100 * slow:g} of the successful attempts of the recording"


def _end(report: Report) -> None:
    if not report.came.requests:
        click.echo("podtrail: the recordings hold no request that can be read", err=True)
        sys.exit(1)
    if not all(gate.held for gate in report.gates):
        sys.exit(1)


def _print_lines(lines: Iterable[Line], out: TextIO) -> None:
    """Print lines whose text is harmless already: colours on a terminal, plain words elsewhere."""
    colour = out.isatty() and not os.environ.get("NO_COLOR")
    for line in lines:
        styled = (
            click.style(piece.text, fg=_COLOURS.get(piece.style), bold=piece.style in _BOLD, dim=piece.style == "dim")
            for piece in line
        )
        click.echo("".join(styled), file=out, color=colour)
