"""The client's side as spans: a root for the command, a span for each of its requests, sent as they end."""

import asyncio
import os
import secrets
import socket
import time
from collections import deque
from typing import Any, Final, Self

from podtrail_kubernetes.tracing_proxy import RequestTrace, ended_well

from podtrail.cli.sending import Settings, client_settings, exporting
from podtrail.component import DeliveryError, Retryable
from podtrail.otlp import Group, Status, encode_span, frame, resource_header, scope_header, write_request
from podtrail.transport.client_environment import from_environment

_MOST_HELD: Final = 10_000
_EVERY_SECONDS: Final = 1.0
_LAST_SECONDS: Final = 3.0
_INTERNAL, _CLIENT = 1, 3
_SAMPLED_LOCAL: Final = 0x101
_ERROR: Final = 2


class ClientSpans:
    """The spans of one run."""

    def __init__(self, settings: Settings, title: str) -> None:
        """Begin the root, and to send in the background."""
        self.trace_id = secrets.token_hex(16)
        self.lost = 0
        """Spans that could not be sent, or for which there was no room."""
        self.why = ""
        self._settings = settings
        self._root = secrets.token_bytes(8)
        self._title = title
        self._began = time.time_ns()
        self._waiting: deque[bytes] = deque()
        self._program = title.partition(" ")[0]
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @classmethod
    def to(cls, endpoint: str | None, title: str) -> Self | None:
        """Return the spans of a run that go to an endpoint, or to the environment's; None where neither is given.

        Raises:
            ValueError: for a bad endpoint.
        """
        if endpoint is None:
            found = from_environment(os.environ)
            endpoint = found.get("traces_endpoint") or found.get("endpoint")
        return cls(client_settings(endpoint, None), title) if endpoint else None

    @property
    def traceparent(self) -> str:
        """The root's context, for a command that traces itself."""
        return f"00-{self.trace_id}-{self._root.hex()}-01"

    def request_ended(self, request: RequestTrace) -> None:
        """Add the span of a request; one that the client traces itself is the client's to tell."""
        if request.own:
            return
        attributes: dict[str, Any] = {"http.request.method": request.method, "url.path": request.path}
        if request.agent:
            attributes["user_agent.original"] = request.agent
        if request.status is not None:
            attributes["http.response.status_code"] = request.status
        if not ended_well(request):
            attributes["error.type"] = request.error or str(request.status)
        self._add(
            span_id=bytes.fromhex(request.span_id),
            parent_span_id=self._root,
            name=request.method,
            kind=_CLIENT,
            start=request.started_unix_nano,
            end=request.ended_unix_nano,
            status=None if ended_well(request) else Status(_ERROR, request.error),
            attributes=attributes,
        )

    def command_ended(self, code: int) -> None:
        """End the root."""
        self._add(
            span_id=self._root,
            name=self._title,
            kind=_INTERNAL,
            start=self._began,
            end=time.time_ns(),
            status=Status(_ERROR, f"exit code {code}") if code else None,
            attributes={"process.executable.name": self._program, "process.exit.code": code},
        )

    async def close(self) -> tuple[int, str]:
        """Send what is left, for a few seconds; return how many spans were lost, and why."""
        self._over.set()
        await asyncio.wait({self._task}, timeout=_LAST_SECONDS)
        if not self._task.done():
            self._task.cancel()
            self.why = self.why or f"no answer in {_LAST_SECONDS:g} s"
        await asyncio.gather(self._task, return_exceptions=True)
        self.lost += len(self._waiting)
        return self.lost, self.why

    def _add(self, **span: Any) -> None:
        if len(self._waiting) >= _MOST_HELD:
            self._waiting.popleft()
            self.lost += 1
            self.why = self.why or "too many wait to be sent"
        self._waiting.append(encode_span(trace_id=bytes.fromhex(self.trace_id), flags=_SAMPLED_LOCAL, **span))

    async def _run(self) -> None:
        async with exporting(self._settings) as export:
            while True:
                over = self._over.is_set()
                if self._waiting:
                    sent = list(self._waiting)
                    try:
                        await export(self._request(sent))
                    except Retryable as refused:
                        self.why = str(refused)
                    except DeliveryError as refused:
                        self.why = str(refused)
                        self.lost += len(sent)
                        self._drop(sent)
                    else:
                        self._drop(sent)
                if over:
                    return
                try:
                    async with asyncio.timeout(_EVERY_SECONDS):
                        await self._over.wait()
                except TimeoutError:
                    continue

    def _drop(self, spans: list[bytes]) -> None:
        for _ in spans:
            self._waiting.popleft()

    def _request(self, spans: list[bytes]) -> bytes:
        resource = resource_header(
            {"service.name": self._program, "host.name": socket.gethostname(), "process.pid": os.getpid()}
        )
        scope = scope_header("podtrail.trace")
        return write_request([Group(resource, scope, bytes.fromhex(self.trace_id), frame(spans), len(spans))])
