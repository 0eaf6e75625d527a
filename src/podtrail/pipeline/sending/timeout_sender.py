"""One try to deliver a batch, within its time."""

import asyncio

from podtrail.component import DeliveryError, Exporter, Permanent, Retryable
from podtrail.component.failures import FailureReporter, told
from podtrail.otlp import Batch

_OBEYS = 1.0
"""Seconds in which a try ends that was told to."""


class TimeoutSender:
    """Tries an exporter once.

    Each try is a task of its own, so that its end can be looked at whatever it is: what an exporter raises that it
    should not costs the one batch and is shown with its traceback, not the queue and all that waits in it.
    """

    def __init__(self, exporter: Exporter, seconds: float | None, failures: FailureReporter) -> None:
        """Try `exporter` for at most so many seconds, None for as long as it takes."""
        self._exporter = exporter
        self._seconds = seconds
        self._failures = failures

    async def send(self, batch: Batch) -> int:
        """Return how many spans the other side rejected.

        Raises:
            Retryable: also when the time was up.
            Permanent: also when the exporter itself failed.
        """
        task = asyncio.create_task(self._send(batch))
        try:
            await asyncio.wait({task}, timeout=self._seconds)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=_OBEYS)
            if not task.done():  # nobody waits for it any more
                self._failures.report("send", TimeoutError("it goes on although it was told to end"))
            elif not task.cancelled():
                task.exception()  # looked at, also when this was cancelled: asyncio would complain of it otherwise
        if not task.done() or task.cancelled():
            raise Retryable(f"no answer within {self._seconds:g} s" if self._seconds else "cancelled by the exporter")
        match task.exception():
            case None:
                return task.result()
            case DeliveryError() as error:
                raise error
            case error:
                self._failures.report("send", error)
                raise Permanent(f"the exporter failed: {told(error)}")

    async def _send(self, batch: Batch) -> int:
        rejected = await self._exporter.send(batch)
        if not isinstance(rejected, int):
            raise TypeError(f"send returned {rejected!r}, not a number of rejected spans")
        return rejected
