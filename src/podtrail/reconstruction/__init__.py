"""Attempts of a stock kube-scheduler, rebuilt from what it leaves behind: its log, Pods and Events, its metrics.

Pure and streaming: lines in, attempts out, in the time that the lines tell. Nothing here fails on what is read; what
can't be used is counted.
"""

from podtrail.reconstruction.attempt_draft import Draft, PodIdentity, Rebuilt
from podtrail.reconstruction.calendar import OffsetStep, zone_of
from podtrail.reconstruction.clock_offset import offsets_by_watch
from podtrail.reconstruction.correlator import HAVE_SPANS, WITHOUT_LINES, Correlator, Heard, Outcome
from podtrail.reconstruction.line_counts import LineCounts
from podtrail.reconstruction.lines import LONGEST_LINE, split_lines
from podtrail.reconstruction.metrics import Counted, read_attempts
from podtrail.reconstruction.scheduler_log import NO_ZONE, SchedulerLog
from podtrail.reconstruction.session import LAG, ClockReading, Session
from podtrail.reconstruction.spans import trace
from podtrail.reconstruction.watch import EventSeen, PodSeen, WatchReader

__all__ = [
    "HAVE_SPANS",
    "LAG",
    "LONGEST_LINE",
    "NO_ZONE",
    "WITHOUT_LINES",
    "ClockReading",
    "Correlator",
    "Counted",
    "Draft",
    "EventSeen",
    "Heard",
    "LineCounts",
    "OffsetStep",
    "Outcome",
    "PodIdentity",
    "PodSeen",
    "Rebuilt",
    "SchedulerLog",
    "Session",
    "WatchReader",
    "offsets_by_watch",
    "read_attempts",
    "split_lines",
    "trace",
    "zone_of",
]
