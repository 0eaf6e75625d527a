"""Transitions of Pods from files of watches, written as a recording."""

from collections.abc import Iterator
from pathlib import Path

from podtrail.cli.scheduler_files import LONGEST_WATCHED, Paths, lines_of
from podtrail.otlp import Group
from podtrail.reconstruction import LineCounts, WatchReader
from podtrail.reconstruction.pod_observer import PodObserver
from podtrail.recording import RecordingWriter


def write_transitions(watches: Paths, output: Path) -> int:
    """Write what watches of Pods tell, and return how many transitions that are.

    Raises:
        OSError: a file can't be read or written.
        ValueError: the output's name tells no format.
    """
    written = 0
    with RecordingWriter(output) as recording:
        for path in watches:
            for arrival, groups in _told_in(path):
                recording.write(groups, arrival)
                written += len(groups)
    return written


def _told_in(path: Path) -> Iterator[tuple[int, list[Group]]]:
    observer, reader = PodObserver(), WatchReader(LineCounts())
    for told in reader.objects(lines_of(path, LONGEST_WATCHED), LONGEST_WATCHED):
        if told.kind == "Pod" and (groups := observer.take(told.change, told.object, told.arrival)):
            yield told.arrival, groups
