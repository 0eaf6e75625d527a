"""What both OTLP exporters make of a success that is perhaps a partial one."""

import logging

from podtrail.otlp.answers import PartialSuccess


def rejected_spans(answer: PartialSuccess, log: logging.LoggerAdapter[logging.Logger]) -> int:
    """Return how many spans the backend rejected for good, and log what it says about it, once a batch."""
    if answer.rejected:
        log.warning("the backend rejected %d spans: %s", answer.rejected, answer.message or "it does not say why")
    elif answer.message:
        log.warning("the backend took everything and warns: %s", answer.message)
    return answer.rejected
