"""One backend: its connection, how many requests are under way to it, and whether it answers."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, nullcontext
from typing import Any

from podtrail.component import DeliveryError, Retryable, StartError
from podtrail.config.types import SECOND
from podtrail.transport.client_settings import GrpcClientSettings
from podtrail.transport.grpc_client import GrpcClient
from podtrail.transport.user_agent import USER_AGENT
from podtrail_exporters.load_balancing.config import OtlpProtocol, dialled

_NO_SPANS = b""
"""A request that OTLP has every server answer: whether it does is all that is asked."""
_LONGEST_QUESTION = 5.0
"""Seconds, where requests have no limit."""
_SHORTEST_WAIT = 0.05
"""Seconds between questions, whatever the settings say."""
_NEARLY = 0.9
"""Timers are not exact: of the time for a request so much counts as all of it."""


class Unanswered(Retryable):
    """The backend gave no answer: it is down, stands still, or can't be reached."""


class BackendConnection:
    """Sends to one of the backends, and is let go of by `stop`."""

    def __init__(self, name: str, settings: OtlpProtocol, authenticators: Mapping[str, Any]) -> None:
        """Make ready to send to a backend; connecting is left to the first request.

        Args:
            name: as the resolver has it.
            settings: how it is talked to.
            authenticators: give what is shown with each request.
        """
        self.name = name
        self.endpoint = dialled(name)
        """Where it is reached."""
        self._settings = settings
        self._client = GrpcClient(GrpcClientSettings.to(self.endpoint, settings), USER_AGENT)
        for authenticator in authenticators.values():
            self._client.authenticate_by(authenticator)
        self._stack = AsyncExitStack()
        queue = settings.sending_queue
        self._turn = asyncio.Semaphore(queue.num_consumers) if queue.enabled else nullcontext()
        self._opened = False
        self._answered = 0.0
        self._questions: asyncio.Task[None] | None = None
        self.under_way = 0
        """Requests."""

    async def stop(self) -> None:
        """Close the connection."""
        if self._questions is not None:
            self._questions.cancel()
            await asyncio.gather(self._questions, return_exceptions=True)
        await self._stack.aclose()

    async def export(self, request: bytes) -> bytes:
        """Send a request, return the response.

        Raises:
            Unanswered: nobody answered.
            Retryable: it will, later.
            Permanent: it never will.
        """
        self.under_way += 1
        try:
            async with self._turn:
                return await self._ask(request)
        finally:
            self.under_way -= 1

    def ask_again(self, answers: Callable[[], None]) -> None:
        """Ask whether it answers, ever more rarely, until it does; `answers` is called then."""
        if self._questions is None or self._questions.done():
            self._questions = asyncio.create_task(self._until_it_answers(answers), name=f"is {self.name} back")

    async def _open(self) -> None:
        self._opened = True
        try:
            await self._stack.enter_async_context(self._client)
        except StartError as error:  # it could at the start: a certificate that is just being replaced
            self._opened = False
            raise Unanswered(str(error)) from error

    async def _ask(self, request: bytes) -> bytes:
        now = asyncio.get_running_loop().time
        if not self._opened:
            await self._open()
        began = now()
        try:
            response = await self._client.export(request)
        except DeliveryError as error:
            # A slow backend answers others meanwhile; one that stands still, or is gone, nobody.
            if isinstance(error, Retryable) and (not self._client.connected or self._silent(began, now())):
                raise Unanswered(str(error), error.after) from error
            self._answered = now()
            raise
        self._answered = now()
        return response

    def _silent(self, began: float, now: float) -> bool:
        limit = self._settings.timeout / SECOND
        return bool(limit) and now - max(began, self._answered) >= _NEARLY * limit

    async def _until_it_answers(self, answers: Callable[[], None]) -> None:
        retry = self._settings.retry_on_failure
        wait = retry.initial_interval / SECOND
        while True:
            await asyncio.sleep(max(wait, _SHORTEST_WAIT))
            wait = min(wait * retry.multiplier, retry.max_interval / SECOND)
            try:
                async with asyncio.timeout(self._settings.timeout / SECOND or _LONGEST_QUESTION):
                    await self._ask(_NO_SPANS)
            except (Unanswered, TimeoutError):
                continue
            except DeliveryError:
                pass  # whatever it says, it says something
            answers()
            return
