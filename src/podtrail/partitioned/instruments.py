"""What is counted of partitions, by receiver."""

from podtrail.component import Metrics


class PartitionInstruments:
    """Counters of one receiver's partitions."""

    def __init__(self, receiver: str, metrics: Metrics) -> None:
        """Count for the receiver of that id."""
        self._receiver = receiver

        self._replayed = metrics.counter(
            "podtrail_partition_replayed_records_total",
            "Records read again that an owner before had taken.",
            ("receiver",),
        )
        self._repeated = metrics.counter(
            "podtrail_partition_repeated_decisions_total",
            "Decisions made again that an owner before had made.",
            ("receiver",),
        )
        self._kept_back = metrics.counter(
            "podtrail_partition_kept_back_spans_total",
            "Spans that left again and were not delivered again, a span an exporter.",
            ("receiver",),
        )
        self._abandoned = metrics.counter(
            "podtrail_partition_abandoned_spans_total",
            "Spans for exporters that are no longer configured.",
            ("receiver",),
        )
        self._unreadable = metrics.counter(
            "podtrail_partition_unreadable_checkpoints_total",
            "Checkpoints and commits that could not be used: decisions about traces under way may differ.",
            ("receiver",),
        )
        self._not_taken = metrics.counter(
            "podtrail_partition_failed_checkpoints_total", "Checkpoints that could not be taken.", ("receiver",)
        )
        for counter in (self._replayed, self._repeated, self._kept_back, self._abandoned, self._unreadable):
            counter.add(0, receiver)
        self._not_taken.add(0, receiver)

    def replayed(self) -> None:
        """Count a record that is read again."""
        self._replayed.add(1, self._receiver)

    def repeated(self, decisions: int) -> None:
        """Count decisions that are made again."""
        if decisions:
            self._repeated.add(decisions, self._receiver)

    def kept_back(self, spans: int) -> None:
        """Count spans that are not delivered again."""
        self._kept_back.add(spans, self._receiver)

    def abandoned(self, spans: int) -> None:
        """Count spans that nobody is there for."""
        self._abandoned.add(spans, self._receiver)

    def unreadable(self) -> None:
        """Count what an owner before has left and can't be used."""
        self._unreadable.add(1, self._receiver)

    def not_taken(self) -> None:
        """Count a checkpoint that could not be taken."""
        self._not_taken.add(1, self._receiver)
