"""Connections that change their protocol: exec, attach, port-forward and cp, over WebSocket or SPDY.

What follows the request is no HTTP any more and passes as it comes, in both directions. That is done below aiohttp,
whose parser knows no protocol but WebSocket to change to.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from multidict import CIMultiDict

from podtrail_kubernetes.rest_client import CONNECT_TIMEOUT, Credentials

_PIECE = 1 << 16
_LONGEST_HEAD = 1 << 18


class ProxiedConnection(web.RequestHandler):
    """A client's connection, which may be taken out of HTTP."""

    __slots__ = ("_no_http", "_raw")

    def __init__(
        self, manager: web.Server, no_http: Callable[[], web.Response], *, loop: asyncio.AbstractEventLoop
    ) -> None:
        settings: Any = {"access_log": None, "auto_decompress": False}
        super().__init__(manager, loop=loop, max_line_size=_LONGEST_HEAD, max_field_size=_LONGEST_HEAD, **settings)
        self._raw: asyncio.StreamReader | None = None
        self._no_http = no_http

    def take_over(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Ends HTTP on this connection: what comes from now on is read, and what is written goes, as it is."""
        assert self.transport is not None
        loop = asyncio.get_running_loop()
        self._raw = asyncio.StreamReader(limit=_PIECE, loop=loop)
        self._raw.set_transport(self.transport)
        return self._raw, asyncio.StreamWriter(self.transport, self, None, loop)

    def data_received(self, data: bytes) -> None:
        """Hands on what came."""
        if self._raw is not None:
            self._raw.feed_data(data)
        else:
            super().data_received(data)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answers what is no HTTP without a word in the terminal; a defect is told as ever."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        response = self._no_http()
        response.force_close()
        return response

    def connection_lost(self, exc: BaseException | None) -> None:
        """Ends what reads."""
        if self._raw is not None:
            self._raw.feed_eof()
        super().connection_lost(exc)


async def tunnel(
    connection: ProxiedConnection,
    method: str,
    url: str,
    headers: CIMultiDict[str],
    credentials: Credentials,
) -> int:
    """Passes the request on, and then all that comes on either side until one of them ends; returns the status.

    Raises:
        OSError: The API server can't be reached, or broke off before its answer.
    """
    async with asyncio.timeout(CONNECT_TIMEOUT):
        reader, writer = await _connected(url, credentials)
    try:
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        host = parts.netloc.rpartition("@")[2]
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *(f"{name}: {each}" for name, each in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode("utf-8", "surrogateescape"))
        status, head = await _head(reader)
        from_client, to_client = connection.take_over()
        try:
            to_client.write(head)
            await _until_one_ends(_copy(from_client, writer), _copy(reader, to_client))
        finally:
            to_client.close()
    finally:
        writer.transport.abort()
    return status


async def _connected(url: str, credentials: Credentials) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    tls: ssl.SSLContext | None = credentials.tls if secure else None
    name = (credentials.server_name or parts.hostname) if secure else None
    return await asyncio.open_connection(parts.hostname, port, ssl=tls, server_hostname=name, limit=_LONGEST_HEAD)


async def _head(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The answer's status and head; one that refuses to change the protocol says that the connection ends with it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        status = int(head.split(b" ", 2)[1])
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
        raise ConnectionError(f"no answer of HTTP: {error}") from error
    if status == 101:
        return status, head
    first, *lines = head[:-4].split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    return status, b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # the other side is gone: so ends this one
        while data := await reader.read(_PIECE):
            writer.write(data)
            await writer.drain()


async def _until_one_ends(*copies: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(each) for each in copies]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
