"""Attempts of a stock kube-scheduler, rebuilt from what it leaves behind: its log, Pods and Events, its metrics.

Pure and streaming: lines in, attempts out, in the time that the lines tell. Nothing here fails on what is read; what
can't be used is counted.
"""

from podtrail.reconstruction.census import Census
from podtrail.reconstruction.correlator import Correlator, Heard, Outcome
from podtrail.reconstruction.draft import Draft, PodIdentity, Rebuilt
from podtrail.reconstruction.lines import LONGEST_LINE, split_lines
from podtrail.reconstruction.metrics import Counted, read_attempts
from podtrail.reconstruction.scheduler_log import SchedulerLog
from podtrail.reconstruction.session import LAG, Session
from podtrail.reconstruction.spans import trace
from podtrail.reconstruction.watch import EventSeen, PodSeen, WatchReader

__all__ = [
    "LAG",
    "LONGEST_LINE",
    "Census",
    "Correlator",
    "Counted",
    "Draft",
    "EventSeen",
    "Heard",
    "Outcome",
    "PodIdentity",
    "PodSeen",
    "Rebuilt",
    "SchedulerLog",
    "Session",
    "WatchReader",
    "read_attempts",
    "split_lines",
    "trace",
]
