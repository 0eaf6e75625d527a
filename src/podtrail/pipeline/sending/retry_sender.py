"""Trying again, with exponential back-off and jitter, on tenacity."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar, cast

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from podtrail.component import DeliveryError, Retryable
from podtrail.otlp import Batch
from podtrail.pipeline.sending.plan import Backoff

T = TypeVar("T")

_HURRIED_DELAY = 1.0
_SHORTEST_DELAY = 0.01
"""Whatever the settings say: a backend that refuses at once must not make a busy loop."""


class RetrySender(Generic[T]):
    """Repeats a try that failed with `Retryable`, until it succeeds or the time for it is over."""

    def __init__(
        self,
        attempt: Callable[[T], Awaitable[int]],
        backoff: Backoff | None,
        *,
        hurry: asyncio.Event,
        rng: random.Random,
        on_failure: Callable[[Retryable, float], None],
    ) -> None:
        """Make the repeater of `attempt`.

        Args:
            attempt: one try.
            backoff: None for a single try.
            hurry: once set, a wait under way ends and further ones are short: the queue is being drained.
            rng: draws the jitter.
            on_failure: told why a try failed and in how many seconds the next follows.
        """
        self._attempt = attempt
        self._backoff = backoff
        self._hurry = hurry
        self._rng = rng
        self._on_failure = on_failure

    async def send(self, batch: T, *, is_last: Callable[[], bool] = lambda: False) -> int:
        """Return how many spans were rejected.

        What a try has delivered in part is not sent again: the next one is of the rest.

        Args:
            batch: to be sent.
            is_last: asked after a try that failed: whether no other is to follow.

        Raises:
            Retryable: the last one, when time is up; with what is left then.
            Permanent: at once, whenever the exporter says so.
        """
        left, rejected = batch, 0

        async def attempt() -> int:
            nonlocal left, rejected
            try:
                return rejected + await self._attempt(left)
            except DeliveryError as error:
                if error.rest is not None:
                    left = cast("T", error.rest)  # of the batch that it was given
                    rejected += error.rejected
                if left is not batch:
                    error.rest, error.rejected = cast("Batch", left), rejected
                raise

        if self._backoff is None:
            return await attempt()
        delays = _Delays(self._backoff, self._hurry, self._rng)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Retryable),
            wait=delays.next,
            stop=lambda state: is_last() or delays.exceeded(state),
            before_sleep=self._tell,
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(attempt)

    def _tell(self, state: RetryCallState) -> None:
        self._on_failure(_failure(state), state.upcoming_sleep)

    async def _sleep(self, seconds: float) -> None:
        if self._hurry.is_set():
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()


class _Delays:
    """The waits of one delivery. The first try is made when this is."""

    def __init__(self, backoff: Backoff, hurry: asyncio.Event, rng: random.Random) -> None:
        self._backoff = backoff
        self._hurry = hurry
        self._rng = rng
        self._interval = backoff.first
        self._now = asyncio.get_running_loop().time
        self._started = self._now()

    def next(self, state: RetryCallState) -> float:
        """Return the seconds to wait: back-off with jitter, or what the other side asked for if that is longer."""
        backoff = self._backoff
        jitter = 1 + backoff.randomization * (2 * self._rng.random() - 1)
        delay = max(self._interval * jitter, _failure(state).after or 0.0, _SHORTEST_DELAY)
        self._interval = min(self._interval * backoff.multiplier, backoff.longest)
        return min(delay, _HURRIED_DELAY) if self._hurry.is_set() else delay

    def exceeded(self, state: RetryCallState) -> bool:
        """Say whether the next try would come too late."""
        limit = self._backoff.give_up_after
        return limit > 0 and self._now() + state.upcoming_sleep > self._started + limit


def _failure(state: RetryCallState) -> Retryable:
    error = state.outcome and state.outcome.exception()
    assert isinstance(error, Retryable)
    return error
