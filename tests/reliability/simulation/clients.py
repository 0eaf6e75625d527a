"""Clients: each sends a request, and sends it again while it is not acknowledged, as SDKs and Collectors do."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

from podtrail_receivers.otlp import OtlpReceiver

from podtrail.component import Context
from podtrail.component.contracts import Consumer
from podtrail.transport.status import Encoding, RequestError
from tests.reliability.simulation.life import Life
from tests.reliability.simulation.scenario import Send
from tests.reliability.simulation.traffic import request

_GRACE = 2.0


@dataclass(slots=True)
class Request:
    """What became of a request so far."""

    send: Send
    tries: int = 0
    acknowledged: float | None = None
    """When, if it was."""
    refusals: int = 0
    unanswered: int = 0
    """Tries of which the client never learned how they ended."""
    failed: bool = False
    """Answered with an error that nobody repeats."""
    given_up: bool = False

    @property
    def open(self) -> bool:
        """Whether it will be sent again."""
        return self.acknowledged is None and not self.failed and not self.given_up


@asynccontextmanager
async def _there() -> AsyncIterator[None]:
    yield


class MemoryReceiver(OtlpReceiver):
    """The receiver without its sockets: requests come from clients in memory."""

    def __init__(self, clients: "Clients", config: Any, context: Context) -> None:
        super().__init__(config, context)
        self._clients = clients
        self._requests: set[asyncio.Task[bytes]] = set()

    async def __aenter__(self) -> Self:
        """Bind nothing."""
        return self

    async def run(self, consume: Consumer) -> None:
        """Serve until cancelled; then take nothing new, and let what is under way end."""
        self._clients.server = self
        try:
            await super().run(consume)
        finally:
            if self._clients.server is self:
                self._clients.server = None
            if self._requests:
                await asyncio.wait(self._requests, timeout=_GRACE)
            for task in self._requests:
                task.cancel()

    async def answer(self, raw: bytes) -> bytes:
        """Return the answer to a request, as either server asks for it."""
        task = asyncio.create_task(self._export("grpc", raw, Encoding.PROTOBUF, _there))
        self._requests.add(task)
        try:
            return await task
        finally:
            task.cancel()
            self._requests.discard(task)


@dataclass(slots=True)
class Clients:
    """All clients of a story; they live longer than podtrail does."""

    seed: int
    requests: dict[int, Request] = field(default_factory=dict)
    server: MemoryReceiver | None = None
    life: Life | None = None

    def receiver(self, config: Any, context: Context) -> MemoryReceiver:
        """Make a receiver: for its factory."""
        return MemoryReceiver(self, config, context)

    def begin(self, life: Life) -> None:
        """Podtrail lives again: whatever is not acknowledged is sent again."""
        self.life, self.server = life, None
        for made in self.requests.values():
            if made.open:
                self._later(made, 1.0)

    def end(self) -> None:
        """Podtrail is gone: who waited for an answer gets none."""
        self.life = self.server = None

    def send(self, event: Send) -> None:
        """Send a request for the first time."""
        made = self.requests[event.request] = Request(event)
        if self.life is not None:
            self.life.loop.create_task(self._try(made, self.life))

    @property
    def waiting(self) -> bool:
        """Whether something will be sent again."""
        return any(made.open for made in self.requests.values())

    def _later(self, made: Request, seconds: float) -> None:
        assert self.life is not None
        life = self.life
        rng = random.Random(f"{self.seed}/{made.send.request}/{made.tries}")
        if made.tries >= made.send.tries:
            made.given_up = True
            life.tell(f"request {made.send.request} is given up")
        else:
            delay = seconds * rng.uniform(0.5, 1.5)
            life.loop.call_later(delay, lambda: life.loop.create_task(self._try(made, life)))

    async def _try(self, made: Request, life: Life) -> None:
        if self.server is None:
            self._later(made, 0.5)
            return
        made.tries += 1
        made.unanswered += 1  # until there is an answer
        number = made.send.request
        again = 1.0
        try:
            async with asyncio.timeout(made.send.patience):
                await self.server.answer(request(made.send.pieces))
        except RequestError as error:
            if life.over:
                return
            made.unanswered -= 1
            if error.reason == "overloaded":
                made.refusals += 1
                life.tell(f"request {number} is refused: {error.message}")
            else:
                made.failed = True
                life.tell(f"request {number} fails: {error.message}")
                return
        except (TimeoutError, asyncio.CancelledError):
            if life.over:
                return
            life.tell(f"request {number} gets no answer")
        else:
            if life.over:
                return
            made.unanswered -= 1
            made.acknowledged = life.now()
            life.tell(f"request {number} is acknowledged")
            return
        self._later(made, again)
