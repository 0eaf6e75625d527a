"""`podtrail reconstruct`: attempts of a stock kube-scheduler from what it leaves behind, written as a recording."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import click

from podtrail.cli.output_file import refuse_existing, whole_recording
from podtrail.cli.reading import Unusable, file_error, overwrite_option, refuse_overwriting, show_skipped
from podtrail.cli.reconstruct_report import as_json, print_report
from podtrail.cli.scheduler_files import Paths, file_option, lines_of, rebuild
from podtrail.cli.timezone_option import timezone_option
from podtrail.cli.transitions import write_transitions
from podtrail.otlp import Batch
from podtrail.reconstruction import Correlator, Counted, LineCounts, Rebuilt, read_attempts, trace
from podtrail.recording import RecordingWriter


@click.command("reconstruct")
@file_option(
    "--log",
    "logs",
    what="A log of kube-scheduler: text or JSON, plain, with prefixes or in an envelope, also .gz or .zst.",
)
@file_option("--pods", what="A watch of Pods, each event with its arrival, or kubectl get pods -o json|yaml.")
@file_option("--nodes", what="A watch of Nodes.")
@file_option("--events", what="A watch of Events, or kubectl get events -o json|yaml.")
@file_option("--metrics", what="The scheduler's /metrics: its own count of attempts, to compare.")
@file_option("--apiserver", what="A recording of the API server's own spans: requests are linked with their attempts.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the attempts to a recording (.jsonl or .otlp).")
@click.option(
    "--transitions",
    type=click.Path(path_type=Path),
    help="Write what --pods and --events tell of each Pod, as k8s_pods does, to a recording (.jsonl or .otlp).",
)
@overwrite_option
@click.option("--year", type=click.IntRange(1971, 2200), help="The year of the first line, which klog does not write.")
@timezone_option
@click.option("--json", "in_json", is_flag=True, help="Print the report as one JSON object.")
def command(
    logs: Paths,
    pods: Paths,
    nodes: Paths,
    events: Paths,
    metrics: Paths,
    apiserver: Paths,
    output: Path | None,
    transitions: Path | None,
    overwrite: bool,
    year: int | None,
    timezone: str,
    in_json: bool,
) -> None:
    """Rebuild the scheduling attempts of a stock kube-scheduler from its log, from watches and its metrics.

    Any subset of the sources will do; each may be given several times. What is concluded and not told is marked with
    podtrail.inferred; nothing is made up. `-` reads standard input.
    """
    sources = [*logs, *pods, *nodes, *events]
    if not sources:
        raise click.UsageError("nothing to read: give at least one of --log, --pods, --events")
    if transitions is not None and not pods:
        raise click.UsageError("--transitions: a watch of Pods tells of these: give --pods")
    for written in (output, transitions):
        if written is not None:
            refuse_overwriting((*sources, *metrics, *apiserver), written)
            refuse_existing(written, overwrite=overwrite)
    if output is not None and output == transitions:
        raise click.UsageError("--output and --transitions are one file")
    counts = {
        name: LineCounts()
        for name, given in (("log", logs), ("pods", pods), ("nodes", nodes), ("events", events))
        if given
    }
    correlator = Correlator()
    try:
        counted = [count for path in metrics for count in read_attempts(lines_of(path))]
        watches = {"pods": pods, "nodes": nodes, "events": events}
        attempts = rebuild(correlator, logs, watches, counts, year, timezone)
        with whole_recording(output) if output else nullcontext() as recording:
            joined = _write(attempts, apiserver, recording)
        seen = write_transitions((*pods, *events), transitions) if transitions else 0
    except BrokenPipeError:
        raise
    except OSError as error:
        raise file_error(error) from None
    except ValueError as error:  # the output's name tells no format
        raise Unusable(str(error)) from None
    _report(counts, correlator, counted, joined, seen, in_json=in_json)


def _report(
    counts: dict[str, LineCounts],
    correlator: Correlator,
    counted: list[Counted],
    joined: Counter[str],
    seen: int,
    *,
    in_json: bool,
) -> None:
    if in_json:
        click.echo(json.dumps(as_json(counts, correlator.outcome, counted, joined), ensure_ascii=False))
    else:
        print_report(counts, correlator.outcome, counted, joined, sys.stdout)
    if not correlator.outcome.attempts and not seen:
        click.echo("podtrail: nothing that was read tells of an attempt", err=True)
        sys.exit(1)


def _write(attempts: Iterator[Rebuilt], apiserver: Paths, recording: RecordingWriter | None) -> Counter[str]:
    """Write the attempts; with the API server's spans where these are given, and return the links between them."""

    def write(batch: Batch) -> None:
        if recording:
            recording.write(batch.groups, batch.arrived)

    if apiserver:
        from podtrail.cli.joining import join

        traces = ((one.draft.end, [trace(one)]) for one in attempts)
        return join(traces, apiserver, write, lambda damage: show_skipped(str(damage), 1))
    for one in attempts:
        if recording:
            recording.write([trace(one)], one.draft.end)
    return Counter()
