"""Who said no in a trace: what its plugin spans tell or, where they tell nothing, the scheduler's own message."""

from collections.abc import Collection
from itertools import islice

from podtrail.otlp import Rejection, read_message, read_rejections
from podtrail_processors.tail_sampling.evidence import Evidence

_MOST = 256
_LONGEST_MESSAGE = 8192


def refusals_in(trace: Evidence, plugins: Collection[bytes] = ()) -> list[Rejection]:
    """Return the refusals in a trace, the first of many.

    With `plugins`, names in UTF-8, those of others may be left out without being read. A message that counts reasons
    names no plugin: for the reasons of the default plugins it is known.
    """
    if trace.refusing:
        spans = trace.refusing
        if plugins:
            spans = [span for span in spans if any(plugin in span for plugin in plugins)]
        return list(islice((one for span in spans for one in read_rejections(span)), _MOST))
    messages = [attempt.message[:_LONGEST_MESSAGE] for attempt in trace.attempts if attempt.failed]
    return list(islice((one for message in messages for one in read_message(message).rejections), _MOST))
