"""`short_spans`: drops spans that took next to no time, and sets attributes on the others."""

from typing import Any

from pydantic import Field

from podtrail.component import Context, Factory, PassingProcessor, Taken
from podtrail.config.types import MILLISECOND, Model, PositiveDuration
from podtrail.otlp import Batch, Group, append_attributes, frame, span_reader, split


class Config(Model):
    """Which spans are too short, and what the others get."""

    shorter_than: PositiveDuration = Field(MILLISECOND, description="Spans that took less are dropped.")
    attributes: dict[str, str] = Field({}, description="Attributes to set on those that are left.")


_read = span_reader({"start_time_unix_nano", "end_time_unix_nano"})


class ShortSpans(PassingProcessor):
    """Holds nothing: what comes in leaves at once, or never."""

    def __init__(self, config: Config, context: Context) -> None:
        """Count in the ledger and the metrics of `context`."""
        self._config = config
        self._ledger = context.ledger
        self._dropped = context.metrics.counter(
            "example_short_spans_dropped", "Spans that were too short.", ("processor",)
        )
        self._id = context.id

    def add(self, batch: Batch, now: int) -> Taken:
        """Let the longer spans pass, and all verdicts."""
        groups = [kept for group in batch.groups if (kept := self._kept(group))]
        dropped = batch.span_count - sum(group.span_count for group in groups)
        if dropped:
            self._ledger.sampled_out += dropped
            self._dropped.add(dropped, self._id)
        if not groups and not batch.verdicts:
            return Taken()
        return Taken((Batch(groups, batch.arrived, batch.verdicts),))

    def _kept(self, group: Group) -> Group | None:
        """Return what is left of a group; None if nothing is."""
        kept: list[bytes] = []
        for raw, span in zip(split(group.spans), _read(group.spans), strict=True):
            if span.end_time_unix_nano - span.start_time_unix_nano >= self._config.shorter_than:
                kept.append(append_attributes(raw, self._config.attributes))
        return group._replace(spans=frame(kept), span_count=len(kept)) if kept else None


def _create(config: Config, context: Context) -> Any:
    return ShortSpans(config, context)


FACTORY = Factory(kind="processor", type="short_spans", Config=Config, create=_create)
