"""What both OTLP exporters make of a success that is perhaps a partial one."""

import logging
from collections.abc import Callable

from podtrail.otlp.response_reading import MalformedAnswer, PartialSuccess

_LONGEST_TEXT = 300


def rejected_spans(
    body: bytes, read: Callable[[bytes], PartialSuccess], log: logging.LoggerAdapter[logging.Logger]
) -> int:
    """Return how many spans the backend rejected for good, and log what it says about it, once a batch."""
    try:
        answer = read(body)
    except MalformedAnswer as error:
        log.warning("the backend took the spans, but its answer can't be read: %s", error)
        return 0
    words = answer.message[:_LONGEST_TEXT]
    if answer.rejected < 0:
        log.warning("the backend says it rejected %d spans: taken for none", answer.rejected)
    elif answer.rejected:
        log.warning("the backend rejected %d spans: %s", answer.rejected, words or "it does not say why")
    elif words:
        log.warning("the backend took everything and warns: %s", words)
    return max(answer.rejected, 0)
