"""The proxy itself: who may come in, which context is meant, and each request passed on with its trace context."""

import asyncio
import contextlib
import json
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import hdrs, web
from yarl import URL

from podtrail_kubernetes.errors import RestConfigError
from podtrail_kubernetes.rest_client import CONNECT_TIMEOUT, Credentials, RestClient

from .client_contexts import ClientContexts, write_kubeconfig
from .forwarded_headers import to_api_server, to_client, upgrade_of
from .loopback_certificate import loopback_tls
from .request_trace import RequestTrace, new_span_id, read_traceparent
from .upgrade import ProxiedConnection, tunnel
from .written_objects import AnswerReader, WrittenObject, answer_reader, readable_answer, writes_object

HOST = "127.0.0.1"
_LONGEST_HEAD = 1 << 18
_BROKEN = (aiohttp.ClientError, web.RequestPayloadError, OSError, TimeoutError)
_FAREWELL = 0.5
"""Seconds for requests that are still under way when the client has ended."""


class TracingProxy:
    """Serves one client's run. Everything that the API server has to say passes, errors and endless answers too."""

    def __init__(
        self,
        kubeconfig: Path | None,
        contexts: ClientContexts,
        trace_id: str,
        *,
        agent: str,
        ended: Callable[[RequestTrace], None] = lambda _: None,
        wrote: Callable[[str, WrittenObject], None] = lambda *_: None,
    ) -> None:
        """Opens nothing yet.

        Args:
            kubeconfig: The user's, with the credentials; None: a Pod's ServiceAccount.
            contexts: The user's.
            trace_id: Of the run, 32 hexadecimal digits.
            agent: What the API server calls requests that are the proxy's own.
            ended: Is told of each request when it has ended.
            wrote: Is told of each object that was created or changed, with the context.
        """
        self.refused = 0
        """Requests of who did not know the token."""
        self.malformed = 0
        """What came that is no HTTP."""
        self._kubeconfig = kubeconfig
        self._contexts = contexts
        self._trace_id = trace_id
        self._agent = agent
        self._ended = ended
        self._wrote = wrote
        self._tokens = {name: secrets.token_urlsafe(32) for name in contexts.by_name}
        self._named = {f"Bearer {token}": name for name, token in self._tokens.items()}
        self._clients: dict[str, asyncio.Task[RestClient]] = {}
        self._session: aiohttp.ClientSession

    @asynccontextmanager
    async def serving(self, folder: Path, current: str) -> AsyncIterator[Path]:
        """Serves while it is entered; yields the temporary kubeconfig, written into `folder`.

        Args:
            folder: That only its owner can read.
            current: The context that is meant when the client names none.

        Raises:
            RestConfigError: No certificate can be made.
        """
        tls, authority = loopback_tls(folder)
        loop = asyncio.get_running_loop()
        server = web.Server(self._handle, handler_cancellation=True)
        async with contextlib.AsyncExitStack() as stack:
            self._session = await stack.enter_async_context(_session())
            stack.push_async_callback(self._close_clients)
            listener = await loop.create_server(
                lambda: ProxiedConnection(server, self._no_http, loop=loop), HOST, 0, ssl=tls, backlog=1024
            )
            stack.push_async_callback(server.shutdown, _FAREWELL)
            stack.callback(listener.close)
            port = listener.sockets[0].getsockname()[1]
            path = folder / "kubeconfig"
            write_kubeconfig(
                path,
                self._contexts,
                current,
                server=f"https://{HOST}:{port}",
                authority=authority,
                tokens=self._tokens,
            )
            yield path

    async def client(self, context: str) -> RestClient:
        """Returns the client with the user's credentials; the first time it is made.

        Raises:
            RestConfigError: The credentials can't be used.
        """
        if context not in self._clients:
            of_kubeconfig = context if self._kubeconfig is not None else None
            self._clients[context] = asyncio.create_task(
                RestClient.open(self._kubeconfig, agent=self._agent, context=of_kubeconfig)
            )
        return await asyncio.shield(self._clients[context])

    async def _close_clients(self) -> None:
        for opening in self._clients.values():
            opening.cancel()  # one whose credential plugin still thinks
        for opened in await asyncio.gather(*self._clients.values(), return_exceptions=True):
            if isinstance(opened, RestClient):
                await opened.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        # By a hash: how long a look takes says nothing of the tokens.
        context = self._named.get(request.headers.get(hdrs.AUTHORIZATION, ""))
        if context is None:
            self.refused += 1
            return _status(401, "Unauthorized", "podtrail trace: only the traced command may come in here")
        own = read_traceparent(request.headers.get("traceparent"))
        trace_id, span_id = own or (self._trace_id, new_span_id())
        agent = request.headers.get(hdrs.USER_AGENT, "")
        asked = RequestTrace(
            request.method, request.path, agent, trace_id, span_id, own is not None, started_unix_nano=time.time_ns()
        )
        try:
            return await self._pass_on(request, context, asked)
        except RestConfigError as error:
            asked.error, asked.reason = "no credentials", str(error)
            return _status(500, "InternalError", f"podtrail trace: {error}")
        except asyncio.CancelledError:
            asked.error = asked.error or "the client went away"
            raise
        finally:
            asked.ended_unix_nano = time.time_ns()
            self._ended(asked)

    def _no_http(self) -> web.Response:
        self.malformed += 1
        return _status(400, "BadRequest", "podtrail trace: not an HTTP request")

    async def _pass_on(self, request: web.BaseRequest, context: str, asked: RequestTrace) -> web.StreamResponse:
        if not request.raw_path.startswith("/"):
            # Behind the API server's URL it could name another host, which would get the user's credentials.
            asked.status, asked.error = 400, "no path"
            return _status(400, "BadRequest", "podtrail trace: only paths of the API server are passed on")
        client = await self.client(context)
        credentials = await client.credentials()
        url = client.server + request.raw_path
        try:
            if upgrade_of(request.headers) is not None:
                return await self._change_protocol(request, url, credentials, asked)
            answer = await self._ask(request, url, credentials, asked)
            if answer.status == 401:
                credentials = await client.credentials(refused=True)
                if not request.can_read_body:
                    answer.close()  # its connection may have a client certificate that was replaced since
                    answer = await self._ask(request, url, credentials, asked)
        except _BROKEN as error:
            asked.error = type(error).__name__
            asked.reason = f"no answer from {client.server}: {_reason(error)}"
            return _status(503, "ServiceUnavailable", f"podtrail trace: {asked.reason}")
        asked.status = answer.status
        reader = answer_reader(request.method, request.raw_path, answer.status, answer.headers)
        async with answer:
            response = await self._answer(request, answer, reader, asked)
        if reader is not None and not asked.error and (written := reader.read()) is not None:
            self._wrote(context, written)
        return response

    async def _ask(
        self, request: web.BaseRequest, url: str, credentials: Credentials, asked: RequestTrace
    ) -> aiohttp.ClientResponse:
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue":
            assert request.transport is not None
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        headers = to_api_server(request.headers, credentials.headers, asked.traceparent, own=asked.own)
        if writes_object(request.method, request.raw_path) and hdrs.ACCEPT in headers:
            headers[hdrs.ACCEPT] = readable_answer(headers[hdrs.ACCEPT])
        return await self._session.request(
            request.method,
            URL(url, encoded=True),
            headers=headers,
            data=request.content if request.can_read_body else None,
            allow_redirects=False,
            ssl=credentials.tls,
            server_hostname=credentials.server_name,
            proxy=credentials.proxy,
        )

    async def _answer(
        self,
        request: web.BaseRequest,
        answer: aiohttp.ClientResponse,
        reader: AnswerReader | None,
        asked: RequestTrace,
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=to_client(answer.headers))
        await response.prepare(request)
        while True:
            try:
                piece = await answer.content.readany()
            except _BROKEN as error:
                # What has broken off must not look as if it had ended.
                asked.error = type(error).__name__
                if request.transport is not None:
                    request.transport.abort()
                return response
            if not piece:
                break
            if reader is not None:
                reader.feed(piece)
            await response.write(piece)
        await response.write_eof()
        return response

    async def _change_protocol(
        self, request: web.BaseRequest, url: str, credentials: Credentials, asked: RequestTrace
    ) -> web.StreamResponse:
        if credentials.proxy:
            asked.error = "upgrade through an HTTP proxy"
            text = "podtrail trace: exec, attach, port-forward and cp don't pass the HTTP proxy of this kubeconfig or "
            return _status(501, "NotImplemented", f"{text}environment; run this command without podtrail trace")
        headers = to_api_server(request.headers, credentials.headers, asked.traceparent, own=asked.own)
        headers[hdrs.CONNECTION] = "Upgrade"
        headers[hdrs.UPGRADE] = upgrade_of(request.headers) or ""
        connection: Any = request.protocol
        asked.status = await tunnel(connection, request.method, url, headers, credentials)
        return web.Response()  # nobody reads it: the connection has ended


def _session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),  # each watch keeps one
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT),
        auto_decompress=False,
        trust_env=False,
        skip_auto_headers=(hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE),
        max_line_size=_LONGEST_HEAD,
        max_field_size=_LONGEST_HEAD,
    )


def _reason(error: BaseException) -> str:
    """Why there was no answer, without the innards that aiohttp's texts have."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return str(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.strerror or str(error.os_error)
    return str(error) or type(error).__name__


def _status(code: int, reason: str, message: str) -> web.Response:
    """An answer of our own, in the words of an API server, so that clients show it."""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return web.Response(status=code, body=json.dumps(status).encode(), content_type="application/json")
