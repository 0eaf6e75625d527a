"""The end of a pipeline that a receiver feeds."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from podtrail.component import Refused
from podtrail.otlp import Batch, SpanView, split

DEADLINE = 120.0
"""Seconds in which what is waited for has come, however busy the machine is."""


def spans_of(batch: Batch) -> list[SpanView]:
    """Return the spans of a batch."""
    return [SpanView(raw) for group in batch.groups for raw in split(group.spans)]


class Sink:
    """Keeps what comes; refuses as often as it is told to."""

    def __init__(self, refusals: int = 0) -> None:
        self.batches: list[Batch] = []
        self.roots: list[Mapping[str, Any]] = []
        """What the roots of attempts say."""
        self.refusals = refusals
        self._changed = asyncio.Condition()

    async def __call__(self, batch: Batch) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Refused("full", after=0.0)
        async with self._changed:
            self.batches.append(batch)
            self.roots += [dict(span.attributes) for span in spans_of(batch) if span.name == "SchedulePod"]
            self._changed.notify_all()

    @property
    def trace_ids(self) -> list[bytes]:
        """The trace id of each group."""
        return [group.trace_id for batch in self.batches for group in batch.groups]

    @property
    def traces(self) -> list[int]:
        """The trace id of each group as a number."""
        return [int.from_bytes(trace_id, "big") for trace_id in self.trace_ids]

    @property
    def spans(self) -> list[SpanView]:
        """All spans."""
        return [span for batch in self.batches for span in spans_of(batch)]

    @property
    def results(self) -> Counter[str]:
        """How many attempts ended how."""
        return Counter(str(root["scheduler.result"]) for root in self.roots)

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait until this is so."""
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(done)

    async def until_traces(self, *traces: int) -> None:
        """Wait until as many have come, which must be these."""
        await self.until(lambda: len(self.traces) >= len(traces))
        assert self.traces == [*traces]


async def until(done: Callable[[], bool]) -> None:
    """Wait until something is so that tells nobody when it changes."""
    async with asyncio.timeout(DEADLINE):
        while not done():  # noqa: ASYNC110 - a metric tells nobody that it changed
            await asyncio.sleep(0.01)


def of_pod(roots: Sequence[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """Return those of a Pod's attempts."""
    return [root for root in roots if root["k8s.pod.name"] == name]
