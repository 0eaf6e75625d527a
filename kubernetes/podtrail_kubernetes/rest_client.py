"""Requests to an API server: plain JSON mappings in and out, errors as types, a throttle, credentials kept fresh.

The official client does configuration, TLS, transport and authentication; objects never become its model classes.

    client = await RestClient.open(Path("kubeconfig"), agent="podtrail-scheduler/0.1.0")
    pods = await client.request("GET", "/api/v1/pods", query={"limit": "500"})
    await client.close()
"""

import asyncio
import json
import logging
import platform
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urlencode

import aiohttp

from .errors import NotSent, RestConfigError, StatusError, Unreachable
from .rate_limiter import RateLimiter
from .rest_config import RestConfig, library

REQUEST_TIMEOUT = 60.0
"""Seconds for one request, as long as an API server takes at most."""

CONNECT_TIMEOUT = 30.0
"""Seconds to reach the API server, as in client-go."""

LAST_ANSWERS = 0.25
"""Seconds that requests have to be answered when nobody waits for them any more."""

MAX_RETRIES = 10
"""How often a request is sent again when the API server says when to come back, as in client-go."""

MAX_LINE = 16 << 20
"""Bytes of one watch event; etcd takes objects of 1.5 MiB."""

MAX_ANSWER = 256 << 20
"""Bytes of an answer other than a watch's; a page of 500 Pods has a few."""

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


def user_agent(program: str, version: str, part: str = "") -> str:
    """Names the client in the API server's audit log and spans, in the form that kube-scheduler uses."""
    agent = f"{program}/{version} ({platform.system().lower()}/{platform.machine()})"
    return f"{agent} {part}" if part else agent


class _Request(NamedTuple):
    method: str
    path: str
    query: Mapping[str, str]
    body: Mapping[str, Any] | None
    headers: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class Credentials(NamedTuple):
    """With what somebody else's request is sent as this client's user; secret."""

    headers: Mapping[str, str]
    tls: ssl.SSLContext
    server_name: str | None
    """By what name the API server's certificate is checked, if not by its URL's."""
    proxy: str | None
    """The HTTP proxy on the way, of the kubeconfig or the environment."""


class RestClient:
    """One user's requests to one API server. Use `open`, and `close` at the end."""

    def __init__(self, config: RestConfig, agent: str, limiter: RateLimiter | None) -> None:
        self._config = config
        self._limiter = limiter
        try:
            self._client = library("client").ApiClient(config.configuration)
        except OSError as error:  # ssl.SSLError among them
            configuration = config.configuration
            files = (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file)
            raise RestConfigError(f"certificates {', '.join(filter(None, files))}: {error}") from error
        self._client.user_agent = agent
        self._in_flight: set[asyncio.Task[Any]] = set()

    @classmethod
    async def open(
        cls,
        kubeconfig: Path | None = None,
        master: str | None = None,
        *,
        agent: str,
        limiter: RateLimiter | None = None,
        context: str | None = None,
    ) -> Self:
        """Reads the settings, connects to nothing yet.

        Args:
            kubeconfig: Its path, or several as the variable KUBECONFIG lists them; None: the ServiceAccount of the Pod
                this runs in, unless `master` is given.
            master: The API server's URL in place of the kubeconfig's.
            agent: What the API server's audit log calls the client (`user_agent`).
            limiter: Holds back requests, not watches; None: nothing does.
            context: Of the kubeconfig; None: its current one.

        Raises:
            RestConfigError: Kubeconfig, ServiceAccount or certificates can't be used.
        """
        config = RestConfig(kubeconfig, master, context)
        await config.load()
        return cls(config, agent, limiter)

    @property
    def server(self) -> str:
        """The API server's URL."""
        return str(self._config.configuration.host)

    async def credentials(self, *, refused: bool = False) -> Credentials:
        """What a request of somebody else's needs on its way; `refused` when the last ones were (401)."""
        await self._config.refresh(self._client.rest_client, refused=refused)
        headers: dict[str, str] = {}
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], self.server, "GET", None)
        configuration = self._config.configuration
        tls = self._client.rest_client.ssl_context
        return Credentials(headers, tls, configuration.tls_server_name, configuration.proxy)

    async def close(self) -> None:
        """Closes what is open; watches end, and requests that are not answered yet (see `drain`)."""
        await self._client.close()
        await self._config.close()
        for task in self._in_flight:
            task.cancel()
        await asyncio.gather(*self._in_flight, return_exceptions=True)

    async def drain(self) -> None:
        """Waits a moment for the answers to what has been sent."""
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=LAST_ANSWERS)

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        limiter: RateLimiter | None = None,
        retries: int = MAX_RETRIES,
        allowed: Callable[[], bool] = lambda: True,
    ) -> Mapping[str, Any]:
        """Sends one request and returns the object in the answer.

        Args:
            method: `GET`, `POST` and so on.
            path: Behind the API server's URL, such as `/api/v1/pods`.
            body: A JSON object.
            query: What stands behind the path's `?`.
            headers: Besides agent, credentials and content type; who traces gives `traceparent` here.
            content_type: Of the body; of a patch it says which kind it is.
            limiter: Takes the place of the client's own.
            retries: How often an answer that says when to come back (429, or 5xx with Retry-After) is waited for.
            allowed: Says, right before it is sent, each time, whether it may be.

        Raises:
            StatusError: The API server answered with 400 or more.
            Unreachable: There was no whole answer.
            NotSent: It is not allowed.
        """
        limiter = limiter or self._limiter
        asked = _Request(method, path, query or {}, body, {"Content-Type": content_type} | dict(headers or {}))
        for remaining in range(retries, -1, -1):
            if limiter is not None:
                await limiter.wait()
            if not allowed():
                raise NotSent(f"{asked}: not sent, for another may lead by now")
            try:
                return _object(await self._finish(self._read(asked)), asked)
            except StatusError as refused:
                pause = refused.retry_after
                if not remaining or pause is None or not (refused.code == 429 or refused.code >= 500):
                    raise
                _log.info("%s: sent again in %g s: %s", asked, pause, refused)
                await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, idle: float
    ) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """Opens a watch; yields its lines as they come, all that one read gave at a time.

        Args:
            path: Of the collection.
            query: With `watch=true`, and from which resourceVersion on.
            idle: Seconds without a byte after which the peer counts as gone: one that went away without a word looks
                like one that has nothing to say.

        Raises:
            StatusError: The API server answered with 400 or more.
            Unreachable: There was no answer, or it broke off; also while it is read.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=idle)
        asked = _Request("GET", path, query, None, {})
        response = await self._finish(self._send(asked, limits))
        try:
            yield _lines(response, asked)
        finally:
            if response.connection is not None and response.connection.transport is not None:
                response.connection.transport.abort()  # a TLS farewell would outlive the event loop
            response.close()

    async def _finish(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Does `work` to its end, also when nobody waits for it any more: a request cut off is one not known of."""
        task = asyncio.get_running_loop().create_task(work)
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_forget)
            raise

    async def _read(self, asked: _Request) -> bytes:
        response = await self._send(asked, _whole())
        async with response:
            with _telling(asked):
                return await _body(response, asked)

    async def _send(self, asked: _Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Returns an answer below 400, its body still to be read."""
        await self._config.refresh(self._client.rest_client)
        with _telling(asked):
            response = await self._exchange(asked, limits)
            if response.status == 401:
                response.release()
                await self._config.refresh(self._client.rest_client, refused=True)
                response = await self._exchange(asked, limits)
            if response.status >= 400:
                async with response:
                    raise StatusError.from_answer(response.status, response.headers, await _body(response, asked))
        return response

    async def _exchange(self, asked: _Request, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        url = self.server + asked.path + (f"?{urlencode(asked.query)}" if asked.query else "")
        headers = self._client.default_headers | {"Accept": "application/json"} | asked.headers
        await self._client.update_params_for_auth(headers, [], ["BearerToken"], url, asked.method, asked.body)
        answer = await self._client.rest_client.request(
            asked.method, url, headers=headers, body=asked.body, _request_timeout=limits
        )
        response: aiohttp.ClientResponse = answer.response
        return response


def _forget(task: asyncio.Task[Any]) -> None:
    """Drops the outcome of what nobody waits for."""
    if (
        not task.cancelled()
        and task.exception() is None
        and isinstance(response := task.result(), aiohttp.ClientResponse)
    ):
        response.close()


def _whole() -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=REQUEST_TIMEOUT, sock_connect=CONNECT_TIMEOUT)


@contextmanager
def _telling(asked: _Request) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        system = getattr(error, "os_error", error)
        refused = isinstance(system, ConnectionRefusedError)
        raise Unreachable(f"{asked}: {error or type(error).__name__}", refused=refused) from error


def _object(text: bytes, asked: _Request) -> Mapping[str, Any]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unreachable(f"{asked}: the answer is not JSON: {error}") from error
    if not isinstance(read, dict):
        raise Unreachable(f"{asked}: the answer is no object")
    return read


async def _body(response: aiohttp.ClientResponse, asked: _Request) -> bytes:
    read = bytearray()
    async for chunk in response.content.iter_any():
        read += chunk
        if len(read) > MAX_ANSWER:
            response.close()
            raise Unreachable(f"{asked}: an answer of more than {MAX_ANSWER} bytes")
    return bytes(read)


async def _lines(response: aiohttp.ClientResponse, asked: _Request) -> AsyncIterator[list[bytes]]:
    chunks, rest = response.content.iter_any(), b""
    while True:
        with _telling(asked):
            chunk = await anext(chunks, b"")
        if not chunk:
            return
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE:
            raise Unreachable(f"{asked}: a line of more than {MAX_LINE} bytes")
        if lines:
            yield lines
