"""What is behind the exporters: backends that are well, slow, failing, rejecting or hang, and know what they got."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from podtrail.component import Context, Permanent, Retryable
from podtrail.otlp import Batch, split
from tests.reliability.simulation.life import Life
from tests.reliability.simulation.scenario import Manner
from tests.reliability.simulation.traffic import SpanKey, key_of

Answer = Literal["none", "taken", "come again", "rejected"]


@dataclass(slots=True)
class Delivery:
    """Spans that came to a backend in one request."""

    exporter: str
    at: float
    life: int
    """In which life of podtrail."""
    spans: Sequence[bytes]
    keys: Sequence[SpanKey]
    kept: bool = False
    """Whether the backend has them now."""
    answer: Answer = "none"
    answered_at: float = 0.0


@dataclass(slots=True)
class Backend:
    """One backend; it lives longer than podtrail does."""

    exporter: str
    seed: int
    manner: Manner = "well"
    deliveries: list[Delivery] = field(default_factory=list)
    hanging: list[asyncio.Event] = field(default_factory=list)
    """Set, they let those go on who wait for an answer."""

    def turn(self, manner: Manner) -> None:
        """Be so from now on; who hangs is let go with nothing taken."""
        self.manner = manner
        for waiting in self.hanging:
            waiting.set()
        self.hanging.clear()

    async def take(self, batch: Batch, life: Life) -> int:
        """Take a request in its manner; a life that is over can neither send nor hear anything."""
        if life.over:
            await asyncio.Event().wait()
        spans = [raw for group in batch.groups for raw in split(group.spans)]
        delivery = Delivery(self.exporter, life.now(), life.number, spans, [key_of(raw) for raw in spans])
        self.deliveries.append(delivery)
        rng = random.Random(f"{self.seed}/{self.exporter}/{len(self.deliveries)}")
        manner = self.manner
        latency = rng.uniform(2.0, 7.0) if manner == "slow" else rng.uniform(0.001, 0.03)
        if manner == "hanging":
            self.hanging.append(turned := asyncio.Event())
            await turned.wait()
            raise Retryable("connection reset")
        await asyncio.sleep(latency * rng.random())
        if manner in ("well", "slow", "taking without an answer") and not life.over:
            delivery.kept = True
            life.tell(f"{self.exporter} takes {len(spans)} spans")
        await asyncio.sleep(latency * rng.random())
        if life.over:
            await asyncio.Event().wait()
        delivery.answered_at = life.now()
        if manner in ("failing", "taking without an answer"):
            delivery.answer = "come again"
            raise Retryable("unavailable", after=rng.choice([None, None, 0.5, 3.0]))
        if manner == "rejecting":
            delivery.answer = "rejected"
            raise Permanent("invalid argument")
        delivery.answer = "taken"
        return 0


class MemoryExporter:
    """An exporter that leads to a backend in memory."""

    def __init__(self, backend: Backend, life: Life) -> None:
        self._backend = backend
        self._life = life

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return

    async def send(self, batch: Batch) -> int:
        """Send a batch."""
        return await self._backend.take(batch, self._life)


class Backends:
    """All backends of a story."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._by_exporter: dict[str, Backend] = {}
        self.life: Life | None = None
        """Which exporters are made for."""

    def __getitem__(self, exporter: str) -> Backend:
        return self._by_exporter.setdefault(exporter, Backend(exporter, self._seed))

    def all(self) -> Sequence[Backend]:
        """Return those that anything was sent to or that have turned, in order of their names."""
        return [self._by_exporter[name] for name in sorted(self._by_exporter)]

    def begin(self, life: Life) -> None:
        """Podtrail lives again; who waited for an answer before is gone."""
        self.life = life
        for backend in self.all():
            backend.hanging.clear()

    def exporter(self, _: Any, context: Context) -> MemoryExporter:
        """Make an exporter: for its factory."""
        assert self.life is not None
        return MemoryExporter(self[context.id], self.life)
