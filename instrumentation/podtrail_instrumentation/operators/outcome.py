"""How a handler's call ended, on its span: done, to be repeated, failed, denied or broken off."""

import asyncio
import traceback

import kopf

from podtrail_instrumentation.span import Span

_LONGEST_MESSAGE = 1024
_LONGEST_TRACE = 4096
"""Characters; of a stack trace the last are kept, which say where it happened."""

OUTCOME = "kopf.outcome"
RETRY_DELAY = "kopf.retry.delay"
"""Seconds."""


def tell(span: Span, raised: BaseException | None) -> bool:
    """Writes onto the span how the call ended; returns whether kopf will call the handler again.

    A `kopf.TemporaryError` is how a handler says "not yet": the span has an event `retry` and keeps its status. A
    `kopf.PermanentError` and every other exception is the status Error; after the latter kopf calls the handler again,
    unless it was told otherwise. A `kopf.AdmissionError` is an answer, and no failure.
    """
    if raised is None:
        span.set_attributes({OUTCOME: "succeeded"})
        return False
    if isinstance(raised, kopf.TemporaryError):
        given: object = raised.delay or 0.0
        delay = {RETRY_DELAY: float(given)} if isinstance(given, int | float) else {}
        span.set_attributes({OUTCOME: "retry", **delay})
        span.add_event("retry", {**delay, "exception.message": _message(raised)})
        return True
    if isinstance(raised, kopf.AdmissionError):
        span.set_attributes({OUTCOME: "denied"})
        return False
    if not isinstance(raised, Exception) or isinstance(raised, asyncio.CancelledError):
        span.set_attributes({OUTCOME: "cancelled"})
        return False
    final = isinstance(raised, kopf.PermanentError)
    span.set_attributes({OUTCOME: "failed" if final else "error"})
    event = {"exception.type": type(raised).__qualname__, "exception.message": _message(raised)}
    if not final and span.recording:
        event["exception.stacktrace"] = "".join(traceback.format_exception(raised))[-_LONGEST_TRACE:]
    span.add_event("exception", event)
    span.fail(_message(raised))
    return not final


def _message(raised: BaseException) -> str:
    # It has the words also of an exception that raises another when it is asked for them.
    told = traceback.TracebackException(type(raised), raised, None, lookup_lines=False)
    return (str(told) or type(raised).__qualname__)[:_LONGEST_MESSAGE]
