"""`podtrail recording`: what can be done with recordings, a module each."""

from typing import Final

import click

from podtrail.cli.lazy import LazyGroup

_COMMANDS: Final = {
    "merge": ("recording_merge", "Put several recordings together, in the order of arrival."),
    "cut": ("recording_cut", "Take some traces out of recordings: by time, Pod, namespace, cluster, result or id."),
    "anonymize": ("recording_anonymize", "Replace names, messages, ids and values, so that it can be given away."),
    "stat": ("recording_stat", "Say what is in recordings: spans, traces, attempts, rejections, rates, faults."),
}


@click.command(cls=LazyGroup, named=_COMMANDS)
def command() -> None:
    """Merge, cut, anonymize and count recordings.

    A recording is a file of requests with their arrivals (.jsonl or .otlp, either with .gz or .zst). Files of the
    Collector's file exporter and JSON of Jaeger and Zipkin are read, too.
    """
