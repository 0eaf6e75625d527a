"""Changing attributes, span by span; spans of which none changes pass as the same bytes."""

from podtrail.component import Context, Taken
from podtrail.component.passing import PassingProcessor
from podtrail.otlp import (
    Batch,
    Group,
    SpanFields,
    Value,
    change_attributes,
    frame,
    raw_span_reader,
    read_key_value,
    split,
)
from podtrail_processors.attribute_actions import edit_of, edited, key_needed
from podtrail_processors.attributes.config import Config
from podtrail_processors.attributes.matching import Matcher

_read = raw_span_reader({"attributes"})
_read_to_match = raw_span_reader({"attributes", "name", "kind"})


class Attributes(PassingProcessor):
    """Applies the actions to the spans that are meant."""

    def __init__(self, config: Config, context: Context) -> None:  # noqa: ARG002 - as every processor
        self._edits = [edit_of(action) for action in config.actions]
        needed = [key_needed(action).encode() for action in config.actions]
        self._needed = None if b"" in needed else needed
        """Keys of which a span must have one for anything to change; None when there are no such."""
        self._include = Matcher(config.include) if config.include else None
        self._exclude = Matcher(config.exclude) if config.exclude else None
        self._read = _read_to_match if config.include or config.exclude else _read

    def add(self, batch: Batch, now: int) -> Taken:  # noqa: ARG002 - nothing here depends on the time
        """Change what is to be changed."""
        return Taken((Batch([self._apply(group) for group in batch.groups], batch.arrived, batch.verdicts),))

    def _apply(self, group: Group) -> Group:
        if self._needed is not None and not any(key in group.spans for key in self._needed):
            return group
        if self._include and not self._include.may_match(group):
            return group
        excludes = self._exclude if self._exclude and self._exclude.may_match(group) else None
        raws = split(group.spans)
        written = [self._edit(raw, span, excludes) for raw, span in zip(raws, self._read(group.spans), strict=True)]
        if all(new is None for new in written):
            return group
        spans = frame([raw if new is None else new for raw, new in zip(raws, written, strict=True)])
        return group._replace(spans=spans)

    def _edit(self, raw: bytes, span: SpanFields, excludes: Matcher | None) -> bytes | None:
        """Return the span as it is to be; None when nothing changes."""
        attributes: dict[str, Value] = {}
        for pair in span.attributes:
            key, value = read_key_value(pair)
            attributes.setdefault(key, value)
        if self._include and not self._include.matches(span, attributes):
            return None
        if excludes and excludes.matches(span, attributes):
            return None
        after = edited(attributes, self._edits)
        return change_attributes(raw, after.changed, after.removed) if after else None
