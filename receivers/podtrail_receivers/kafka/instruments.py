"""What the receiver counts, under the names of the Collector's kafkareceiver where it has one."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final

from podtrail.component import Context
from podtrail.component.metrics import LabelValues
from podtrail_receivers.kafka.assigned_partition import AssignedPartition
from podtrail_receivers.kafka.consumer_listener import Fetched, Place

_SECOND: Final = 1_000_000_000
_DELAYS: Final = (0.0, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 25, 50, 75, 100, 250)
_LABELS: Final = ("topic", "partition")


class KafkaInstruments:
    """All of them. Gauges tell of the partitions that this member has now."""

    def __init__(self, context: Context, owned: Callable[[], Collection[AssignedPartition]], *, delays: bool) -> None:
        """Make them.

        Args:
            context: the receiver's.
            owned: returns the partitions.
            delays: whether the delay of records is asked for.
        """
        metrics = context.metrics
        self._owned = owned
        self._records = metrics.counter("otelcol_kafka_receiver_records", "Records fetched.", _LABELS)
        self._messages = metrics.counter(
            "otelcol_kafka_receiver_messages", "Records fetched, under the older name.", _LABELS
        )
        self._bytes = metrics.counter(
            "otelcol_kafka_receiver_bytes_uncompressed", "Bytes of records fetched, uncompressed.", _LABELS
        )
        self._started = metrics.counter("otelcol_kafka_receiver_partition_start", "Partitions begun with.")
        self._closed = metrics.counter("otelcol_kafka_receiver_partition_close", "Partitions given up.")
        self._failed = metrics.counter(
            "otelcol_kafka_receiver_unmarshal_failed_spans", "Messages that could not be read.", _LABELS
        )
        self._not_kept_aside = metrics.counter(
            "podtrail_kafka_receiver_lost_dead_letters_total",
            "Unreadable messages that dead_letter::topic takes never.",
            _LABELS,
        )
        self._gone = metrics.counter(
            "podtrail_kafka_receiver_missing_records_total",
            "Records that were needed and are no longer in the topic: retention was shorter than the lag, or it was "
            "made anew.",
            _LABELS,
        )
        self._ahead = metrics.counter(
            "podtrail_kafka_receiver_future_records_total",
            "Records whose time is over 60 s ahead of the clock.",
            _LABELS,
        )
        self._commits = metrics.counter("podtrail_kafka_receiver_failed_commits_total", "Commits that failed.", _LABELS)
        self._again = metrics.counter(
            "podtrail_kafka_receiver_repeated_decisions_total",
            "Decisions made again that an earlier owner had made.",
            _LABELS,
        )
        self._delays = (
            metrics.histogram(
                "otelcol_kafka_receiver_records_delay", "Seconds from a record's time to its receipt.", _DELAYS, _LABELS
            )
            if delays
            else None
        )
        self._counted: dict[Place, int] = {}
        for name, help, value in (
            ("otelcol_kafka_receiver_current_offset", "The offset taken last.", _current),
            ("otelcol_kafka_receiver_offset_lag", "Records that are not taken yet.", _lag),
            ("podtrail_kafka_receiver_undecided_spans", "Spans whose trace is undecided.", _undecided),
            ("podtrail_kafka_receiver_oldest_undecided_seconds", "Age of the oldest record still needed.", _oldest),
            ("podtrail_kafka_receiver_time_ahead_seconds", "How far its time is ahead of the clock.", _time_ahead),
            ("podtrail_kafka_receiver_buffered_bytes", "Bytes fetched that wait for the pipelines.", _buffered),
        ):
            gauge = metrics.gauge(name, help, ("receiver", *_LABELS))
            gauge.read_all_from(partial(self._of_each, context.id, value), context.id)

    def fetched(self, found: Mapping[Place, Fetched]) -> None:
        """Count what was fetched."""
        now = time.time()
        for place, of_one in found.items():
            if not of_one.messages:
                continue
            labels = _labels(place)
            self._records.add(len(of_one.messages), *labels)
            self._messages.add(len(of_one.messages), *labels)
            self._bytes.add(sum([len(message) for message in of_one.messages]), *labels)
            if self._delays is not None:
                self._delays.observe(max(0.0, now - of_one.messages[0].timestamp()[1] / 1000), *labels)

    def started(self) -> None:
        """Count a partition that this member was given."""
        self._started.add(1)

    def closed(self, owned: AssignedPartition) -> None:
        """Count a partition that this member no longer has."""
        self.count_repeated([owned])
        self._counted.pop(owned.place, None)
        self._closed.add(1)

    def unreadable(self, place: Place, messages: int) -> None:
        """Count messages that could not be read."""
        self._failed.add(messages, *_labels(place))

    def not_kept_aside(self, place: Place) -> None:
        """Count a message that could neither be read nor copied."""
        self._not_kept_aside.add(1, *_labels(place))

    def gone(self, place: Place, records: int) -> None:
        """Count records that retention has taken away."""
        self._gone.add(records, *_labels(place))

    def ahead(self, place: Place, records: int) -> None:
        """Count records of which the time is ahead of the clock."""
        self._ahead.add(records, *_labels(place))

    def uncommitted(self, place: Place) -> None:
        """Count a commit that failed."""
        self._commits.add(1, *_labels(place))

    def count_repeated(self, owned: Iterable[AssignedPartition]) -> None:
        """Count decisions that were made again."""
        for each in owned:
            repeated = each.partition.repeated
            if more := repeated - self._counted.get(each.place, 0):
                self._counted[each.place] = repeated
                self._again.add(more, *_labels(each.place))

    def _of_each(self, id: str, value: Callable[[AssignedPartition], float | None]) -> Mapping[LabelValues, float]:
        found = {(id, *_labels(owned.place)): value(owned) for owned in self._owned()}
        return {labels: value for labels, value in found.items() if value is not None}


def _labels(place: Place) -> tuple[str, str]:
    return place[0], str(place[1])


def _current(owned: AssignedPartition) -> float | None:
    position = owned.partition.position
    return None if position is None else position - 1


def _lag(owned: AssignedPartition) -> float | None:
    position = owned.partition.position
    return None if position is None or owned.high < 0 else max(0, owned.high - position)


def _undecided(owned: AssignedPartition) -> float:
    return owned.partition.undecided


def _oldest(owned: AssignedPartition) -> float:
    oldest = owned.partition.oldest
    return 0.0 if oldest is None else max(0.0, (time.time_ns() - oldest) / _SECOND)


def _time_ahead(owned: AssignedPartition) -> float:
    return max(0.0, (owned.partition.time - time.time_ns()) / _SECOND)


def _buffered(owned: AssignedPartition) -> float:
    return owned.buffered
