"""Trying again, with exponential back-off and jitter, on tenacity."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from podtrail.component import Retryable
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
        once_in_a_hurry: bool = False,
    ) -> None:
        """Make the repeater of `attempt`.

        Args:
            attempt: one try.
            backoff: None for a single try.
            hurry: once set, a wait under way ends and further ones are short: the queue is being drained.
            rng: draws the jitter.
            on_failure: told why a try failed and in how many seconds the next follows.
            once_in_a_hurry: whether nothing is tried twice while the queue is being drained.
        """
        self._attempt = attempt
        self._backoff = backoff
        self._hurry = hurry
        self._rng = rng
        self._on_failure = on_failure
        self._once_in_a_hurry = once_in_a_hurry

    async def send(self, batch: T) -> int:
        """Return how many spans were rejected.

        Raises:
            Retryable: the last one, when time is up.
            Permanent: at once, whenever the exporter says so.
        """
        if self._backoff is None:
            return await self._attempt(batch)
        delays = _Delays(self._backoff, self._hurry, self._rng)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Retryable),
            wait=delays.next,
            stop=lambda state: self._is_last() or delays.exceeded(state),
            before_sleep=self._tell,
            sleep=self._sleep,
            reraise=True,
        )
        return await retrying(self._attempt, batch)

    def _is_last(self) -> bool:
        return self._once_in_a_hurry and self._hurry.is_set()

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
