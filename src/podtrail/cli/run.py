"""`podtrail run`: the pipelines of a configuration, until they are told to stop or have nothing left to do."""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from podtrail.cli.address_in_use import taken
from podtrail.cli.held_files import held_files
from podtrail.cli.options import config_options, reporting
from podtrail.cli.ports import advice, in_use, moved
from podtrail.cli.report import show_warnings
from podtrail.component import BatchObserver, ComponentError, Fact, GatedPod, ObservedPod
from podtrail.config import Document, printable
from podtrail.config.secret_keys import redacted
from podtrail.otlp import Batch
from podtrail.pipeline.loops import WritesFiles
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.service import Service, ServiceEnd
from podtrail.service.logs import log_what_python_prints

if TYPE_CHECKING:
    from podtrail.story import Stories

TURN = 0.001
"""Seconds until a thread that computes, for a page perhaps, lets the pipelines' loop go on; Python's own are 5 ms."""
_OBEYS = 1.0
"""Seconds in which a task ends that was told to."""


@click.command("run")
@config_options()
@click.option("--exit-when-done", is_flag=True, help="End when every finite source is exhausted and all is exported.")
@click.option(
    "--port-offset",
    type=click.IntRange(0, 60_000),
    default=0,
    metavar="N",
    help="Add so much to every port that the configuration listens on, and to those of exporters that send there.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object on standard output.")
def command(
    config: tuple[str, ...],
    assignments: tuple[str, ...],
    gates: frozenset[str],
    exit_when_done: bool,
    port_offset: int,
    as_json: bool,
) -> None:
    """Run the pipelines of a configuration.

    SIGHUP reads the configuration again and swaps to it if it is right; SIGTERM and Ctrl-C decide and deliver what is
    inside, within 10 s, then end. What is undecided in a durable pipeline, and what is on disk and not taken at the
    first try, stays there for the next start. A second one ends at once: what is in memory alone is lost then.
    """

    def read() -> Settings:
        document = Document.load(config, assignments)
        settings = read_settings(document, gates)
        more = moved(document, settings, port_offset)
        return read_settings(Document.load(config, (*assignments, *more)), gates) if more else settings

    with reporting():
        settings = read()
        show_warnings(settings.warnings)
    ports, held = in_use(settings), held_files(settings)
    if ports or any(not one.lock for one in held):  # a folder alone may be let go of in time
        for line in (*ports, *map(str, held)):
            click.echo(f"podtrail: {printable(line)}", err=True)
        click.echo(f"podtrail: {printable(advice(settings, held, ports=bool(ports)))}", err=True)
        sys.exit(1)
    log_what_python_prints()
    sys.setswitchinterval(TURN)
    told = _Told(settings, as_json=as_json)
    service = Service(settings, read, gates, told.observers)
    with asyncio.Runner() as runner:
        try:
            ended = runner.run(
                service.run(exit_when_done=exit_when_done, when_done=lambda: told.print(service, serving=True))
            )
        except ComponentError as error:
            click.echo(f"podtrail: {redacted(str(error))}{f'; {advice(settings)}' if taken(error) else ''}", err=True)
            code = 1
        else:
            told.print(service, serving=False)
            code = _judged(ended, exit_when_done=exit_when_done)
        if runner.run(_something_goes_on()):
            sys.stdout.flush()
            os._exit(code)  # to leave in order is to wait for it
    sys.exit(code)


async def _something_goes_on() -> bool:
    """End what a component has left behind; return whether some of it won't end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    return bool(left) and bool((await asyncio.wait(left, timeout=_OBEYS))[1])


def _judged(ended: ServiceEnd, *, exit_when_done: bool) -> int:
    """Return the exit code: 1 when the end has cost spans, or when a run that was to deliver everything has not."""
    inside = sum(b.in_memory + b.in_queue - b.stored + b.dropped.get("shutdown", 0) for b in ended.balances)
    if ended.at_once:
        lost = f"{inside:,} spans inside are lost" if inside else "nothing is lost"
        click.echo(f"podtrail: stopped at once, {lost}", err=True)
        return int(bool(inside))
    if inside:
        click.echo(f"podtrail: {inside:,} spans inside could not be delivered in time and are lost", err=True)
        return 1
    undelivered = sum(balance.undelivered for balance in ended.balances) if exit_when_done else 0
    if undelivered:
        click.echo(f"podtrail: {undelivered:,} spans could not be delivered", err=True)
    return int(bool(undelivered) or any(balance.missing for balance in ended.balances))


class _Told:
    """The summary at the end, for configurations with a source that ends; a sidecar has no end to sum up."""

    def __init__(self, settings: Settings, *, as_json: bool) -> None:
        self._settings = settings
        self._as_json = as_json
        self._began = time.monotonic_ns()
        self._stories = _stories(settings)

    @property
    def observers(self) -> Sequence[BatchObserver]:
        """Who has to see what leaves the pipelines."""
        return () if self._stories is None else (self,)

    def observe(self, pipeline: str, batch: Batch) -> None:  # noqa: ARG002 - an BatchObserver's signature
        """Take note for the summary, until it is printed."""
        if self._stories is not None:
            self._stories.observe(batch)

    def note(self, fact: Fact) -> None:
        """Take note of a Pod that waits, until the summary is printed."""
        if self._stories is None:
            return
        if isinstance(fact, ObservedPod):
            self._stories.note_observed(fact)
        elif isinstance(fact, GatedPod):
            self._stories.note_gated(fact.uid, fact.namespace, fact.name, fact.gates, fact.since)

    def print(self, service: Service, *, serving: bool) -> None:
        """Print the summary, once."""
        if self._stories is None:
            return
        from podtrail.cli.summary import as_json, print_summary
        from podtrail.story import LedgerLine, summarize

        used = dict.fromkeys(id for pipeline in self._settings.pipelines for id in pipeline.exporters)
        exporters = [self._settings.exporters[id].config for id in used]
        summary = summarize(
            self._stories,
            took=time.monotonic_ns() - self._began,
            ledgers=[LedgerLine.of(balance.exporter, balance) for balance in service.balances()],
            written=[
                path for config in exporters if isinstance(config, WritesFiles) for path in config.writes().values()
            ],
            page=service.page(),
        )
        self._stories = None  # a long run shall not pay for it any more
        if self._as_json:
            click.echo(as_json(summary))
        else:
            print_summary(summary, sys.stderr, serving=serving)


def _stories(settings: Settings) -> "Stories | None":
    used = {id for pipeline in settings.pipelines for id in pipeline.receivers}
    if not any(settings.receivers[id].factory.finite for id in used):
        return None
    from podtrail.story import Stories

    return Stories()
