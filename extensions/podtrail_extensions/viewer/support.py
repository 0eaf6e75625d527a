"""What a support bundle is made of, asked of a running podtrail: files, the log, a recording of what is kept."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from aiohttp import hdrs, web

from podtrail.otlp import Group
from podtrail.recording import RecordingForm
from podtrail.story import to_json
from podtrail_extensions.viewer.bad_query import BadQuery
from podtrail_extensions.viewer.decision_views import DecisionViews

MOST_SECONDS: Final = 600
_MOST_BYTES: Final = 32 << 20
_MOST_WAITING: Final = 8 << 20
_LOOKS: Final = 1.0
"""Seconds after which an empty line is sent where nothing else is: whoever has gone is noticed by it."""
_STUCK: Final = 30.0
"""Seconds that a client may take for what is sent, until it is let go: nobody else can record meanwhile."""
_FORM: Final = RecordingForm.of("kept.jsonl")


class Support:
    """Answers for addresses of a support bundle."""

    def __init__(
        self, files: Callable[[], Mapping[str, str]], decisions: DecisionViews, clock: Callable[[], int]
    ) -> None:
        """Make it.

        Args:
            files: tells what the process says of itself, by file.
            decisions: has the policies' summary.
            clock: the source's, Unix nanoseconds.
        """
        self._files = files
        self._decisions = decisions
        self._clock = clock
        self._recording: _Recording | None = None
        self._ending = False

    async def end(self, _application: web.Application) -> None:
        """Have a recording end, and no new one begin."""
        self._ending = True
        if self._recording is not None:
            self._recording.end()

    def routes(self) -> list[web.RouteDef]:
        """Return its addresses."""
        return [
            web.get("/api/v1/support", self._support),
            web.get("/api/v1/log", self._log),
            web.get("/api/v1/record", self._record),
        ]

    def keep(self, groups: Sequence[Group]) -> None:
        """Take note of spans that were kept; nothing to do unless somebody records."""
        if self._recording is not None:
            self._recording.add(groups)

    async def _support(self, _request: web.Request) -> web.Response:
        policies = to_json(self._decisions.table(self._clock()))
        files = {**self._files(), "policies.json": json.dumps(policies, indent=2) + "\n"}
        return web.json_response({"files": files})

    async def _log(self, _request: web.Request) -> web.Response:
        return web.Response(text=self._files().get("log.jsonl", ""), content_type="application/x-ndjson")

    async def _record(self, request: web.Request) -> web.StreamResponse:
        asked = request.query.get("seconds", "60")
        if not (asked.isascii() and asked.isdecimal() and len(asked) < 5 and 1 <= int(asked) <= MOST_SECONDS):
            raise BadQuery(f"seconds is a number from 1 to {MOST_SECONDS}.")
        if self._recording is not None:
            raise BadQuery("Somebody records already: try again when that is over.")
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        if self._ending or request.method == hdrs.METH_HEAD:
            return response
        self._recording = recording = _Recording(request.transport)
        try:
            await response.prepare(request)
            await recording.run(response, float(asked))
            await response.write_eof()
        except (ConnectionResetError, TimeoutError):
            recording.let_go()  # who recorded has gone, or takes nothing
        finally:
            self._recording = None
        return response


class _Recording:
    """What was kept and is not yet sent; bounded, and what there is no room for is left out as whole requests."""

    def __init__(self, transport: asyncio.WriteTransport | None) -> None:
        self._lines: list[bytes] = []
        self._waiting = self._taken = 0
        self._came = asyncio.Event()
        self._ending = False
        self._transport = transport

    def add(self, groups: Sequence[Group]) -> None:
        size = sum(len(group.spans) for group in groups)
        if self._waiting + size > _MOST_WAITING or self._taken + size > _MOST_BYTES:
            return
        line = _FORM.framed(_FORM.message(groups, time.time_ns()))
        self._lines.append(line)
        self._waiting += len(line)
        self._taken += size
        self._came.set()

    def end(self) -> None:
        """End before the time is over, at once where the client does not take what was sent."""
        self._ending = True
        self._came.set()
        if self._transport is not None and self._transport.get_write_buffer_size():
            self.let_go()

    def let_go(self) -> None:
        """Wait no longer for the client."""
        if self._transport is not None:
            self._transport.abort()

    async def run(self, response: web.StreamResponse, seconds: float) -> None:
        """Send what comes. TimeoutError where the client does not take it."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        while not self._ending and loop.time() < ends:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(ends, loop.time() + _LOOKS)):
                    await self._came.wait()
            lines, self._lines, self._waiting = self._lines, [], 0
            self._came.clear()
            async with asyncio.timeout(_STUCK):
                await response.write(b"".join(lines) or b"\n")
