"""`podtrail generate`: a simulated scheduler's traffic, into a recording or to an OTLP endpoint at a given rate."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from podtrail.cli.durations import DURATION
from podtrail.cli.options import reporting
from podtrail.cli.output_file import refuse_existing, whole_recording
from podtrail.cli.presets import PRESETS
from podtrail.cli.progress import interrupted, shown
from podtrail.cli.reading import Failed, file_error, in_words, overwrite_option, refuse_overwriting
from podtrail.cli.workloads import chosen_workload, folders_of, receiver_config, simulated_scheduler
from podtrail.config.config_folder import configured_in
from podtrail.config.types import format_duration
from podtrail.otlp import Group, read_request
from podtrail.recording import RecordingForm
from podtrail.story import duration, several

if TYPE_CHECKING:
    from podtrail.cli.traffic import SimulatedTraffic, TrafficRequest

_START: Final = "2026-01-01T00:00:00Z"
_MOST_SPANS: Final = 1_000_000
_NO_SPANS: Final = "podtrail: the workload makes no spans"
_NANOSECONDS: Final = 1_000_000_000


_PODS = click.FloatRange(0, 100_000, min_open=True)


@dataclass(frozen=True, slots=True)
class _GenerateOptions:
    to: Path | None
    endpoint: str | None
    protocol: Any
    rate: float | None
    lasts: int | None
    requests_of: int
    like: str | None
    workload: Path | None
    config: tuple[str, ...]
    length: int | None
    seed: int | None
    pods_per_second: float | None
    nodes: int | None
    start: str | None
    as_json: bool
    overwrite: bool

    def check(self) -> None:
        """Raise a usage error when these do not go together."""
        if (self.to is None) == (self.endpoint is None):
            raise click.UsageError("give either --to FILE or --endpoint URL")
        if self.to is not None:
            for name, given in (("--for", self.lasts), ("--protocol", self.protocol)):
                if given is not None:
                    raise click.UsageError(f"{name} goes with --endpoint; --length says how much is written to a file")
            refuse_overwriting([path for path in (self.workload,) if path], self.to, self.config)
            refuse_existing(self.to, overwrite=self.overwrite)
        elif self.start is not None:
            raise click.UsageError("--start goes with --to: what is sent happens now")
        if sum(map(bool, (self.like, self.workload, self.config))) > 1:
            raise click.UsageError("give one of --like, --workload and --config")


@click.command("generate")
@click.option("--to", type=click.Path(path_type=Path), help="Write a recording (.otlp or .jsonl, perhaps .zst or .gz).")
@click.option("--endpoint", metavar="URL", help="Send to an OTLP endpoint, for example http://localhost:4317.")
@click.option("--protocol", type=click.Choice(["grpc", "http"]), help="By default http for port 4318, else grpc.")
@click.option(
    "--rate",
    type=click.FloatRange(1, 10_000_000),
    metavar="SPANS",
    help="Spans a second: as many clusters like this one as it takes, with ids, uids and names of their own.",
)
@click.option("--for", "lasts", type=DURATION, help="How long to send. By default as long as Pods come (--length).")
@click.option(
    "--requests-of",
    type=click.IntRange(1, _MOST_SPANS),
    default=512,
    show_default=True,
    metavar="SPANS",
    help="At most so many spans a request, when sending or with --rate.",
)
@click.option("--like", type=click.Choice(list(PRESETS)), help="A workload by name. By default one where all occurs.")
@click.option("--workload", type=click.Path(path_type=Path), help="A YAML file with the keys of `workload`.")
@click.option("--config", multiple=True, metavar="SOURCE", help="Take the workload of a configuration's scheduler.")
@click.option("--length", type=DURATION, help="For how long (simulated) Pods come. By default the workload's.")
@click.option("--seed", type=int, help="The same seed gives the same spans. By default the workload's.")
@click.option("--pods-per-second", type=_PODS, help="Pods that come, on average. By default the workload's.")
@click.option("--nodes", type=click.IntRange(1, 15_000), help="How many nodes the first group of nodes has.")
@click.option("--start", metavar="TIME", help=f"When simulated time begins in a file. By default {_START}.")
@overwrite_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(**given: Any) -> None:
    """Make a scheduler's traffic: into a recording, or to an OTLP endpoint.

    An instrumented scheduler runs on a simulated cluster. A file gets the same bytes for the same options.
    """
    options = _GenerateOptions(**given)
    options.check()
    workload = {
        "seed": options.seed,
        "length": None if options.length is None else format_duration(options.length),
        "arrival_rate": options.pods_per_second,
    }
    with reporting(), configured_in(folders_of(options.workload, options.config)):
        chosen = chosen_workload(options.like, options.workload, options.config)
        config = receiver_config(chosen, workload, options.nodes, options.start or _START)
    try:
        if options.to is not None:
            sys.exit(_write(options, options.to, config))
        sys.exit(_send(options, config))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise (file_error(error) if error.filename else Failed(in_words(error))) from None


def _write(options: _GenerateOptions, to: Path, config: Any) -> int:
    from podtrail.cli.traffic import simulated

    try:
        RecordingForm.of(to)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    requests = spans = first = last = 0
    stopped = False
    with whole_recording(to) as recording:
        made = simulated(simulated_scheduler(), config) if options.rate is None else _copied(options, config)
        with interrupted() as stop:
            for arrival, groups in shown(made, "writing"):
                recording.write(groups, arrival)
                first, last = first or arrival, arrival
                requests += 1
                spans += sum(group.span_count for group in groups)
                if stopped := stop.is_set():
                    break
    if options.as_json:
        told = {"requests": requests, "spans": spans, "seconds": (last - first) / _NANOSECONDS, "stopped": stopped}
        click.echo(json.dumps(told))
    else:
        click.echo(f"{several(requests, 'request')}, {several(spans, 'span')}, {duration(last - first)} of arrivals")
    if stopped:
        click.echo(f"podtrail: stopped before the end; {to} is whole as far as it goes", err=True)
    elif not spans:
        click.echo(_NO_SPANS, err=True)
    return int(stopped or not spans)


def _copied(options: _GenerateOptions, config: Any) -> Iterator[tuple[int, Sequence[Group]]]:
    """Yield the requests of a recording at a rate."""
    from podtrail.cli.traffic import joined

    end = config.begins + config.workload.length
    tape = _tape(options, config)
    parcels = _played(options, tape, str(config.workload.seed), config.begins) if tape is not None else ()
    for parcel in joined(takewhile(lambda parcel: parcel.due < end, parcels), options.requests_of):
        yield parcel.due, read_request(parcel.request).groups


def _tape(options: _GenerateOptions, config: Any) -> "SimulatedTraffic | None":
    from podtrail.cli.traffic import tape_of

    tape = tape_of(simulated_scheduler(), config, config.begins, options.requests_of)
    if tape is not None and options.rate is not None and options.rate < tape.rate:
        raise click.UsageError(
            f"the workload alone gives {tape.rate:,.0f} spans a second: lower --pods-per-second or raise --rate"
        )
    return tape


def _played(options: _GenerateOptions, tape: "SimulatedTraffic", seed: str, begin: int) -> "Iterator[TrafficRequest]":
    from podtrail.cli.traffic import multiplied, played

    return played(tape, seed, begin) if options.rate is None else multiplied(tape, options.rate, seed, begin)


def _send(options: _GenerateOptions, config: Any) -> int:
    from podtrail.cli.sending import client_settings, report, send
    from podtrail.cli.traffic import joined
    from podtrail.pipeline.clock import PipelineClock

    assert options.endpoint is not None
    try:
        settings = client_settings(options.endpoint, options.protocol)
    except ValueError as error:
        raise click.UsageError(f"--endpoint: {error}") from None
    tape = _tape(options, config)
    if tape is None:
        click.echo(_NO_SPANS, err=True)
        return 1
    clock = PipelineClock()
    begin = clock.now()
    end = begin + (options.lasts or config.workload.length)
    # Sent once more, the same traffic is other traces.
    parcels = _played(options, tape, f"{config.workload.seed}/{begin}", begin)
    due = takewhile(lambda parcel: parcel.due < end, parcels)
    sent = send(joined(due, options.requests_of), settings, clock.now, until=end + _NANOSECONDS)
    return report(sent, as_json=options.as_json)
