"""Which plugins rejected nodes in a trace: by its plugin spans or, where they tell nothing, the scheduler's message."""

from collections.abc import Collection
from itertools import islice

from podtrail.otlp import Rejection, read_message, read_refusals, read_rejections
from podtrail_processors.evidence.evidence import Evidence

_MOST = 256
_LONGEST_MESSAGE = 8192


def refusals_in(trace: Evidence, plugins: Collection[bytes] = (), *, post_filter: bool = False) -> list[Rejection]:
    """Return what kept the Pod from being scheduled, the first of many; with `post_filter` what that answered, too.

    With `plugins`, names in UTF-8, those of others may be left out without being read. A message that counts reasons
    names no plugin: for the reasons of the default plugins it is known.
    """
    if trace.refusing:
        spans = trace.refusing
        if plugins:
            spans = [span for span in spans if any(plugin in span for plugin in plugins)]
        read = read_refusals if post_filter else read_rejections
        return list(islice((one for span in spans for one in read(span)), _MOST))
    messages = [attempt.message[:_LONGEST_MESSAGE] for attempt in trace.attempts if attempt.failed]
    return list(islice((one for message in messages for one in read_message(message).rejections), _MOST))
