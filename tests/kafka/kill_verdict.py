"""What came of gateways that were killed: what they kept, what came twice, and what their commits say of that."""

import itertools
import json
import re
import struct
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.kafka.cluster import Kafka

MOST_COMMITS = 2
"""Of a partition, between the first time that a span left and the takeover behind which it left again: one that was
under way already, and one that came while the span was."""


class Verdict(NamedTuple):
    """What came of it."""

    written: int
    """Spans."""
    kept: int
    """Spans, each counted once."""
    alone: int
    """Spans that one undisturbed gateway keeps."""
    missing: int
    """Of what that one keeps."""
    surplus: int
    """Beyond what that one keeps."""
    twice: int
    """Spans that came more than once."""
    unexplained: int
    """Of these: nobody took the partition over between the two times, or they had long been committed by then."""
    commits: Mapping[int, int]
    """How many came again by how many commits there were before the partition was taken over."""
    killed: int
    left: int
    complaints: Sequence[str]

    def __str__(self) -> str:
        told = f"{self.written} spans written, {self.kept} kept, by one gateway alone {self.alone}: "
        told += f"{self.missing} missing, {self.surplus} surplus; {self.twice} more than once, "
        told += f"{self.unexplained} of them unexplained; {self.killed} gateways killed, {self.left} left in order"
        if self.commits:
            told += "\ncame again, by commits of the partition after they had left: "
            told += ", ".join([f"{self.commits[count]} behind {count}" for count in sorted(self.commits)])
        return "\n".join((told, *self.complaints[:20]))

    def is_right(self, *, exactly_once: bool) -> bool:
        """Say whether it is as promised."""
        same = not self.missing and not self.surplus and self.kept > 0
        return same and not self.unexplained and not (exactly_once and self.twice)


class Repetitions:
    """Says of spans that came twice whether they may: they left after the last commit but one before a takeover."""

    def __init__(self, kafka: Kafka, source: str, group: str, folder: Path) -> None:
        """Look at `source` and what a group has committed of it, and at its members' logs in `folder`."""
        self._partitions = {span[:16]: record for record, found in _requests(kafka, source) for span in _ids(found)}
        self._commits = _commits(kafka, group, source)
        self._takeovers = _takeovers(folder, source)

    def commits_before(self, trace: bytes, first: float, second: float) -> int | None:
        """Return how many commits there were between a span's first time and the takeover; None: there was none."""
        partition = self._partitions[trace]
        takeovers = self._takeovers[partition]
        at = bisect(takeovers, second) - 1
        if at < 0 or takeovers[at] < first:
            return None
        commits = self._commits[partition]
        return bisect(commits, takeovers[at]) - bisect(commits, first)


def judge_spans(
    kafka: Kafka, topics: tuple[str, str], repetitions: Repetitions
) -> tuple[int, int, int, int, int, int, Mapping[int, int]]:
    """Return what of a `Verdict` is seen in the topics: that of the many, and that of the one."""
    came: dict[bytes, list[float]] = {}
    for span, when in spans(kafka, topics[0]):
        came.setdefault(span, []).append(when)
    alone = Counter(span for span, _ in spans(kafka, topics[1]))
    twice = {span: sorted(times) for span, times in came.items() if len(times) > 1}
    commits: Counter[int] = Counter()
    unexplained = 0
    for span, times in twice.items():
        found = [repetitions.commits_before(span[:16], *pair) for pair in itertools.pairwise(times)]
        counted = [count for count in found if count is not None]
        if len(counted) < len(found) or max(counted) > MOST_COMMITS:
            unexplained += 1
        commits.update([max(counted)] if counted else [])
    missing, surplus = len(alone.keys() - came.keys()), len(came.keys() - alone.keys())
    return len(came), len(alone), missing, surplus, len(twice), unexplained, commits


def spans(kafka: Kafka, topic: str) -> Iterator[tuple[bytes, float]]:
    """Yield trace and span ids of what is in a topic, with the time (seconds) at which it was produced."""
    for record in kafka.consume(topic):
        for span in _ids(ExportTraceServiceRequest.FromString(record.value or b"")):
            yield span, record.time / 1000


def _requests(kafka: Kafka, topic: str) -> Iterator[tuple[int, ExportTraceServiceRequest]]:
    for record in kafka.consume(topic):
        yield record.partition, ExportTraceServiceRequest.FromString(record.value or b"")


def _ids(request: ExportTraceServiceRequest) -> Iterator[bytes]:
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield span.trace_id + span.span_id


def _commits(kafka: Kafka, group: str, topic: str) -> Mapping[int, Sequence[float]]:
    """Return when each partition of a topic was committed: the keys are Kafka's OffsetCommitKey, version 1."""
    found: dict[int, list[float]] = defaultdict(list)
    about = b"".join(struct.pack(">h", len(name)) + name.encode() for name in (group, topic))
    for record in kafka.consume("__consumer_offsets"):
        key = record.key or b""
        if key[:2] in (b"\0\0", b"\0\1") and key[2:-4] == about and record.value is not None:
            found[struct.unpack(">i", key[-4:])[0]].append(record.time / 1000)
    for times in found.values():
        times.sort()
    return found


def _takeovers(folder: Path, topic: str) -> Mapping[int, Sequence[float]]:
    """Return when somebody began to read each partition, as the members tell it."""
    found: dict[int, list[float]] = defaultdict(list)
    for log in folder.glob("*.log"):
        for line in log.read_text("utf-8", "replace").splitlines():
            if '"reads ' in line:
                told = json.loads(line)
                for number in re.findall(rf"{re.escape(topic)}\[(\d+)\] from", told["msg"]):
                    found[int(number)].append(datetime.fromisoformat(told["ts"]).timestamp())
    for times in found.values():
        times.sort()
    return found
