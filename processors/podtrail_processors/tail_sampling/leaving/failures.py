"""Whether late spans tell of a failure that their trace was decided without."""

from podtrail.otlp import Group, SpanView, split
from podtrail.otlp.attempt import attempts_in
from podtrail.otlp.columns import column_reader
from podtrail_processors.tail_sampling.voting.words import cut

_ERROR = 2
_read = column_reader({"status"})


def failure_in(group: Group) -> str:
    """Return in words what failed; "" when no span has status ERROR and no attempt a result other than Success."""
    if _ERROR in _read(group.spans).status.code:
        name = next(span.name for raw in split(group.spans) if (span := SpanView(raw)).status.code == _ERROR)
        return f'span "{cut(name)}" has status ERROR'
    results = (attempt.result for attempt in attempts_in(group.spans) if attempt.result not in ("", "Success"))
    failed = next(results, "")
    return f'scheduler.result is "{cut(failed)}"' if failed else ""
