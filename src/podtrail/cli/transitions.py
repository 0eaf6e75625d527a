"""Transitions of Pods from files of watches, written as a recording."""

from collections.abc import Iterator
from pathlib import Path

from podtrail.cli.output_file import whole_recording
from podtrail.cli.scheduler_files import LONGEST_WATCHED, Paths, lines_of
from podtrail.otlp import Group, SpanView, split
from podtrail.reconstruction import LineCounts, WatchReader
from podtrail.reconstruction.pod_observer import PodObserver


def write_transitions(watches: Paths, output: Path) -> int:
    """Write what watches of Pods tell, and return how many transitions that are.

    Raises:
        OSError: a file can't be read or written.
        ValueError: the output's name tells no format.
    """
    written = 0
    with whole_recording(output) as recording:
        for path in watches:
            for arrival, groups in transitions_in(path):
                recording.write(groups, arrival)
                written += len(groups)
    return written


def transitions_in(path: Path) -> Iterator[tuple[int, list[Group]]]:
    """Yield the transitions of Pods in the file of a watch, each with its arrival, or its own time if it has none."""
    observer, reader = PodObserver(), WatchReader(LineCounts())
    for told in reader.objects(lines_of(path, LONGEST_WATCHED), LONGEST_WATCHED):
        if told.kind == "Pod" and (groups := observer.take(told.change, told.object, told.arrival)):
            yield told.arrival, groups
        elif told.kind == "Event" and told.change != "DELETED":
            for group in observer.warn(told.change, told.object, told.arrival):
                yield told.arrival or max(SpanView(raw).end for raw in split(group.spans)), [group]
