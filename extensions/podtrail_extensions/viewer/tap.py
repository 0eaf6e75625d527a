"""Sends decisions and spans as they leave the pipelines to whoever listens: lines of JSON, bounded for each listener.

While nobody listens a batch costs one look at an empty set. For who reads slowly the latest lines are let go and
counted: nothing waits for a listener.
"""

import asyncio
import socket
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, cast

from aiohttp import hdrs, web

from podtrail.otlp import Batch
from podtrail.story import Library
from podtrail.story.tap import TapFilter, as_line, decision_told, span_told, spans_of
from podtrail.transport.half_close import HalfClosing
from podtrail_extensions.viewer.bad_query import BadQuery
from podtrail_extensions.viewer.last_came import LastCame

_MOST: Final = 8
"""Listeners at once."""
_WAITING: Final = 1_000
"""Lines that wait for one listener; what comes beyond is lost to it."""
_PACE: Final = 0.5
"""Seconds from one line about the stream itself to the next."""
_STUCK: Final = 30.0
"""Seconds that a client may take for what is sent, until it is let go."""
_AT_ONCE: Final = 100
_SEND_BUFFER: Final = 1 << 16
"""Bytes that the system may hold for a client: what it reads is not to be old."""
_HEADERS: Final = {
    hdrs.CONTENT_TYPE: "application/x-ndjson; charset=utf-8",
    "X-Accel-Buffering": "no",  # nginx, and who does as it does
}


@dataclass(slots=True, eq=False)
class _Listener:
    wanted: TapFilter
    connection: HalfClosing
    came: LastCame
    lines: deque[bytes] = field(default_factory=deque)
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    passed: int = 0
    """Decisions and spans that came by."""
    matched: int = 0
    lost: int = 0
    """Of what came by, what was let go for want of room."""

    def take(self, pipeline: str, batch: Batch, library: Library) -> None:
        if self.wanted.decisions:
            self._take_decisions(pipeline, batch, library)
        if self.wanted.spans and batch.groups:
            self._take_spans(pipeline, batch, library)
        if self.lines:
            self.woken.set()

    def _take_decisions(self, pipeline: str, batch: Batch, library: Library) -> None:
        for at, verdict in enumerate(batch.verdicts):
            if len(self.lines) >= _WAITING:
                self.lost += len(batch.verdicts) - at
                self.passed += len(batch.verdicts) - at
                return
            self.passed += 1
            if self.wanted.wants_decision(verdict, library.stories):
                self.matched += 1
                self.lines.append(decision_told(pipeline, verdict))

    def _take_spans(self, pipeline: str, batch: Batch, library: Library) -> None:
        seen = 0
        for group in batch.groups:
            for span in spans_of(group):
                if len(self.lines) >= _WAITING:  # what is lost is not even looked at
                    self.lost += batch.span_count - seen
                    self.passed += batch.span_count - seen
                    return
                seen += 1
                self.passed += 1
                if self.wanted.wants_span(span, group, library.stories):
                    self.matched += 1
                    told = span_told(pipeline, span, group, library.stories, otlp=self.wanted.otlp)
                    self.lines.append(told)

    def status(self) -> bytes:
        counts = {"passed": self.passed, "matched": self.matched, "lost": self.lost}
        silent = time.time_ns() - self.came.at if self.came.at else 0
        return as_line({"kind": "status", **counts, "lastUnixNano": self.came.at, "silentNano": silent})


class Taps:
    """Everybody who listens."""

    def __init__(self, library: Library, came: LastCame) -> None:
        """Know of Pods and decisions by a library."""
        self._library = library
        self._came = came
        self._listeners: set[_Listener] = set()
        self._ending = False

    @property
    def waiting(self) -> int:
        """The lines that wait for listeners."""
        return sum(len(listener.lines) for listener in self._listeners)

    def observe(self, pipeline: str, batch: Batch) -> None:
        """Pass on what leaves a pipeline; the library has taken note of it."""
        for listener in self._listeners:
            listener.take(pipeline, batch, self._library)

    async def end(self, _application: web.Application) -> None:
        """Have all streams end, and no new one begin."""
        self._ending = True
        for listener in self._listeners:
            listener.woken.set()
            transport = listener.connection.transport
            if isinstance(transport, asyncio.WriteTransport) and transport.get_write_buffer_size():
                transport.abort()  # it reads too slowly to be waited for

    async def listen(self, request: web.Request) -> web.StreamResponse:
        """Serve a stream until the client is gone, takes nothing any more, or the taps end.

        Raises:
            BadQuery: The query asks for what no tap has.
        """
        try:
            wanted = TapFilter.read(request.query)
        except ValueError as error:
            raise BadQuery(str(error)) from None
        self._listeners = {one for one in self._listeners if not one.connection.gone}
        if self._ending or len(self._listeners) >= _MOST:
            words = f"{_MOST} are listening already: try again later"
            return web.json_response({"error": words}, status=503, headers={hdrs.RETRY_AFTER: "10"})
        response = web.StreamResponse(headers=_HEADERS)
        response.force_close()
        await response.prepare(request)
        listener = _Listener(wanted, cast("HalfClosing", request.protocol), self._came)
        if request.method == hdrs.METH_HEAD or listener.connection.gone:
            return response
        self._listeners.add(listener)
        try:
            with suppress(ConnectionError, TimeoutError):  # the client has gone, as it may, or reads nothing
                await self._tell(listener, response)
        finally:
            self._listeners.discard(listener)
        return response

    async def _tell(self, listener: _Listener, response: web.StreamResponse) -> None:
        loop = asyncio.get_running_loop()
        transport = cast("asyncio.Transport", listener.connection.transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        policies = sorted({policy.name for policy in self._library.policy_types()})
        await response.write(as_line({"kind": "listening", "policies": policies}))
        told = loop.time()
        while not self._ending and not listener.connection.gone:
            listener.woken.clear()
            sending = b"".join(listener.lines.popleft() for _ in range(min(_AT_ONCE, len(listener.lines))))
            if (now := loop.time()) - told >= _PACE:
                sending += listener.status()
                told = now
            if sending:
                async with asyncio.timeout(_STUCK):
                    await response.write(sending)
            if not listener.lines:
                with suppress(TimeoutError):
                    await asyncio.wait_for(listener.woken.wait(), max(0.0, told + _PACE - loop.time()))
