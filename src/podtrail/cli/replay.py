"""`podtrail replay`: recorded traces through a configuration's processors, in virtual time."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from podtrail.cli.options import config_options, replayed, reporting
from podtrail.cli.output_file import refuse_existing, whole_file, whole_recording
from podtrail.cli.processor_lines import processor_lines, show_faults
from podtrail.cli.progress import shown
from podtrail.cli.reading import (
    Failed,
    files,
    in_brackets,
    overwrite_option,
    recordings_argument,
    refuse_foreign,
    refuse_overwriting,
    show_other_signals,
    show_skipped,
)
from podtrail.cli.replay_report import ReplayTally, deciding, policies
from podtrail.cli.report import show_warnings
from podtrail.otlp import Batch, write_request
from podtrail.otlp.decisions import written_decision
from podtrail.recording import Damage, OtherSignal, Record
from podtrail.replay.flows import Flows
from podtrail.replay.replayer import Replayer, read_records

if TYPE_CHECKING:
    from podtrail.cli.sending import Protocol

_SPEED = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)x?")
_FAILED = "otelcol_processor_tail_sampling_sampling_policy_evaluation_error"
_NOTHING = "the recordings hold no request that can be read{}"


class SpeedOption(click.ParamType[float]):
    """How much faster than recorded: `2x`, or `max`, which is 0."""

    name = "speed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the factor."""
        if isinstance(value, float):
            return value
        found = _SPEED.fullmatch(value)
        if value == "max":
            return 0.0
        if found is None or float(found[1]) <= 0:
            self.fail(f"{value!r} is no speed: write 1x, 10x, 0.5x or max", param, ctx)
        return float(found[1])


SPEED = SpeedOption()


@click.command("replay")
@recordings_argument
@config_options(required=False)
@click.option("--endpoint", metavar="URL", help="Send the recordings there over OTLP instead of deciding here.")
@click.option("--protocol", type=click.Choice(["grpc", "http"]), help="Of --endpoint: http for port 4318, else grpc.")
@click.option("--speed", type=SPEED, help="With --endpoint: 1x (the default) for the recorded gaps, 10x, 0.5x or max.")
@click.option("--strict", is_flag=True, help="End at the first place that can't be read, or span that is not valid.")
@click.option("--output", type=click.Path(path_type=Path), help="Write what is kept to a recording (.jsonl or .otlp).")
@click.option("--decisions", type=click.Path(path_type=Path), help="Write every decision to a file, one JSON a line.")
@overwrite_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
def command(
    recordings: tuple[Path, ...],
    config: tuple[str, ...],
    assignments: tuple[str, ...],
    gates: frozenset[str],
    endpoint: str | None,
    protocol: "Protocol | None",
    speed: float | None,
    strict: bool,
    output: Path | None,
    decisions: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Run recorded traces through a configuration's processors.

    The processors are told the recorded time, so a week of traces takes seconds and decides as it would have live.
    Receivers and exporters of the configuration are not started.

    With --endpoint the recordings are sent to a running pipeline instead, in recorded time or faster.
    """
    if endpoint is None:
        _refuse({"--speed": speed is not None, "--protocol": protocol}, "goes with --endpoint")
        if not config:
            raise click.UsageError("give --config to decide here, or --endpoint to send to a pipeline that runs")
        with reporting():
            settings = replayed(config, assignments, gates)
        show_warnings(settings.warnings)
        _refuse_overwriting(recordings, config, output, decisions)
        if output is not None:
            refuse_existing(output, overwrite=overwrite)
    else:
        mine = {"--config": config, "--set": assignments, "--feature-gates": gates}
        written = {"--output": output, "--decisions": decisions, "--overwrite": overwrite}
        _refuse({**mine, **written}, "does not go with --endpoint")
    with files():
        refuse_foreign(recordings)
        if endpoint is not None:
            sys.exit(_send(recordings, endpoint, protocol, 1.0 if speed is None else speed, strict, as_json))
        flows = Flows("contain")
        tally = ReplayTally(policies(settings), flows, deciding(settings))
        with processor_lines(), ExitStack() as stack:  # whose end writes what is left
            sinks = list(_sinks(stack, output, decisions))
            replayer = Replayer(settings, _sink(tally, sinks), gates, around=flows.around)
            for record in shown(_read(recordings, tally, strict=strict), "replay"):
                replayer.add(record.arrival, record.intake)
            replayer.finish()
            tally.failed_votes = int(sum(replayer.host.metrics.snapshot().get(_FAILED, {}).values()))
            if not tally.requests:
                _show(tally, as_json=as_json)
                raise Failed(_NOTHING.format(in_brackets(tally.others)))  # here, so that no file is written
    _show(tally, as_json=as_json)
    if tally.stitched:
        click.echo(
            "podtrail: note: link_stitching has passed these spans on: they are what was kept, not what came", err=True
        )
    if show_faults(flows):
        sys.exit(1)


def _show(tally: ReplayTally, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(tally.as_json()))
    else:
        tally.print(sys.stdout)


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, given in options.items():
        if given:
            raise click.UsageError(f"{name} {why}")


def _read(recordings: Sequence[Path], tally: ReplayTally, *, strict: bool) -> Iterator[Record]:
    """Yield the requests and count them; what can't be read is named, or in strict mode is Failed."""
    for record in read_records(recordings, _refused(tally) if strict else _damaged(tally)):
        if strict and record.intake.rejected:
            raise Failed(f"refused {record.position}: {record.intake.reason}")
        tally.came(record)
        yield record


def _send(
    recordings: Sequence[Path], endpoint: str, protocol: "Protocol | None", speed: float, strict: bool, as_json: bool
) -> int:
    """Send recordings to an endpoint, `speed` recorded seconds a second, 0 for at once; return the exit code."""
    from podtrail.cli.sending import client_settings, report, send
    from podtrail.cli.traffic import TrafficRequest
    from podtrail.pipeline.clock import PipelineClock

    try:
        settings = client_settings(endpoint, protocol)
    except ValueError as error:
        raise click.UsageError(f"--endpoint: {error}") from None
    tally = ReplayTally(())
    clock = PipelineClock()
    begin = clock.now()
    refused: list[Failed] = []

    def parcels() -> Iterator[TrafficRequest]:
        first = None
        try:
            for record in _read(recordings, tally, strict=strict):
                first = record.arrival if first is None else first
                due = begin + int((record.arrival - first) / speed) if speed else 0
                groups = record.intake.groups
                if groups:
                    yield TrafficRequest(due, write_request(groups), sum([group.span_count for group in groups]))
        except Failed as error:
            refused.append(error)

    code = report(send(parcels(), settings, clock.now if speed else lambda: 0), as_json=as_json)
    show_other_signals(tally.others)
    if refused:
        raise refused[0]
    if not tally.requests:
        click.echo(f"podtrail: {_NOTHING.format(in_brackets(tally.others))}", err=True)
    return code or int(not tally.requests)


def _refuse_overwriting(
    recordings: tuple[Path, ...], config: tuple[str, ...], output: Path | None, decisions: Path | None
) -> None:
    """End with a usage error rather than write over what is being read, or two things into one file."""
    if output is not None and decisions is not None and output.resolve() == decisions.resolve():
        raise click.UsageError(f"--output and --decisions are the same file: {output}")
    for written in filter(None, (output, decisions)):
        refuse_overwriting(recordings, written, config)


def _sinks(stack: ExitStack, output: Path | None, decisions: Path | None) -> Iterator[Callable[[Batch], None]]:
    if output is not None:
        recording = stack.enter_context(whole_recording(output))
        yield lambda batch: recording.write(batch.groups, batch.arrived) if batch.groups else None
    if decisions is not None:
        lines = stack.enter_context(stack.enter_context(whole_file(decisions)).open("wb"))
        yield lambda batch: lines.writelines(map(written_decision, batch.verdicts))


def _sink(tally: ReplayTally, sinks: list[Callable[[Batch], None]]) -> Callable[[str, Batch], None]:
    def sink(_pipeline: str, batch: Batch) -> None:
        tally.left(batch)
        for write in sinks:
            write(batch)

    return sink


def _refused(tally: ReplayTally) -> Callable[[Damage], None]:
    def refused(damage: Damage) -> None:
        if not isinstance(damage, OtherSignal):
            raise Failed(f"refused {damage}")
        tally.others[damage.signal] += 1

    return refused


def _damaged(tally: ReplayTally) -> Callable[[Damage], None]:
    def damaged(damage: Damage) -> None:
        if isinstance(damage, OtherSignal):
            tally.others[damage.signal] += 1
            return
        tally.damages += 1
        show_skipped(str(damage), tally.damages)

    return damaged
