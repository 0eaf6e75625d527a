"""A trace in a few words: what a list of traces shows, read as its spans come."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podtrail.otlp import Group
from podtrail.otlp.reader import SpanFields, status_code
from podtrail.story.span import service_of

_LONGEST = 256
_ERROR = 2


class TraceOutline(NamedTuple):
    """What is known of a trace, of its root as far as that was received, else of its earliest span."""

    name: str
    service: str
    rooted: bool
    """Its root was received."""
    named_at: int
    """When the span began that it is named after, Unix nanoseconds."""
    start_unix_nano: int
    """Of its first span."""
    end_unix_nano: int
    spans: int
    errors: int
    """Spans that ended in an error."""

    @property
    def duration(self) -> int:
        """Nanoseconds from the first start to the last end."""
        return max(0, self.end_unix_nano - self.start_unix_nano)

    def grown(self, spans: Sequence[SpanFields], group: Group) -> "TraceOutline":
        """Return it with more spans of the trace."""
        if not spans:
            return self
        starts = [span.start_time_unix_nano for span in spans]
        earliest = min(starts)
        grown = self._replace(
            start_unix_nano=min(self.start_unix_nano, earliest) if self.spans else earliest,
            end_unix_nano=max(self.end_unix_nano, max(starts), max(span.end_time_unix_nano for span in spans)),
            spans=self.spans + len(spans),
            errors=self.errors + sum(status_code(span.status) == _ERROR for span in spans if span.status),
        )
        roots = [span for span in spans if not span.parent_span_id.strip(b"\0")]
        naming = min(roots or spans, key=lambda span: span.start_time_unix_nano)
        # The first root names it; before one came, the earliest span.
        if self.spans and (bool(roots), -naming.start_time_unix_nano) <= (self.rooted, -self.named_at):
            return grown
        return grown._replace(
            name=naming.name.decode(errors="replace")[:_LONGEST],
            service=service_of(group)[:_LONGEST],
            rooted=bool(roots),
            named_at=naming.start_time_unix_nano,
        )


NOTHING_OF_IT: Final = TraceOutline("", "", False, 0, 0, 0, 0, 0)
