"""An HTTP client that posts OTLP requests as raw bytes."""

import asyncio
import gzip
import json
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import NamedTuple, Self

import aiohttp
import zstandard

from podtrail.component import ClientAuthenticator, Permanent, Retryable
from podtrail.config.types import SECOND, client_target
from podtrail.otlp.response_reading import MalformedAnswer, status_message, status_message_json
from podtrail.transport.client_settings import HttpClientSettings
from podtrail.transport.credentials import withheld
from podtrail.transport.tls_client import ssl_context

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_LARGEST_RESPONSE = 4 << 20
_LONGEST_TEXT = 300
_WORTH_A_THREAD = 1 << 17
"""Bytes from which on compression leaves the event loop."""
_FAST = 1
_RETRYABLE = frozenset({429, 502, 503, 504})
"""OTLP specification, Retryable Response Codes of OTLP/HTTP."""
_UNAUTHENTICATED = 401


class Answer(NamedTuple):
    """The body of a success."""

    content_type: str
    body: bytes
    """At most 4 MiB; empty when there was more."""


class HttpClient:
    """Posts to one URL over connections that are kept. Entering it reads certificates."""

    def __init__(self, settings: HttpClientSettings, user_agent: str) -> None:
        """Make a client; it is used between entering and leaving it, on one event loop."""
        self._settings = settings
        self._authenticator: ClientAuthenticator | None = None
        self._headers = {
            "accept-encoding": "identity",  # so that the limit of an answer is a limit of what it holds
            "user-agent": user_agent,
            **{name.lower(): value.get_secret_value() for name, value in settings.headers.items()},
            "content-type": PROTOBUF if settings.encoding == "proto" else JSON,
        }
        if settings.compression in ("gzip", "zstd"):
            self._headers["content-encoding"] = settings.compression
        self._session: aiohttp.ClientSession | None = None
        self._ssl: ssl.SSLContext | bool = True
        self._server_name = settings.tls.server_name_override if settings.tls is not None else None

    def authenticate_by(self, authenticator: ClientAuthenticator) -> None:
        """Show with every request what this authenticator gives."""
        self._authenticator = authenticator

    async def __aenter__(self) -> Self:
        if client_target(self._settings.url).scheme == "https" and self._settings.tls is not None:
            self._ssl = ssl_context(self._settings.tls)
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            timeout=aiohttp.ClientTimeout(total=self._settings.timeout / SECOND or None),
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def export(self, request: bytes) -> Answer:
        """Post a serialized ExportTraceServiceRequest, return what the success says.

        Raises:
            Retryable: status 429, 502, 503 or 504, with the wait that Retry-After asked for; no answer at all; 401 for
                credentials that may be others at the next try.
            Permanent: any other status, a redirect too.
        """
        assert self._session is not None, "not entered"
        body = await self._compressed(request)
        authenticator = self._authenticator
        shown = {} if authenticator is None else authenticator.credentials()
        try:
            async with self._session.post(
                self._settings.url,
                data=body,
                headers=shown,
                allow_redirects=False,
                proxy=self._settings.proxy_url,
                ssl=self._ssl,
                server_hostname=self._server_name,
            ) as response:
                content = await _read_bounded(response.content)
                if response.status // 100 == 2:
                    return Answer(response.content_type, content)
                renews = authenticator is not None and authenticator.renews
                raise _failure(response, withheld(content, shown), renews=renews)
        except TimeoutError as error:
            raise Retryable("no answer in time") from error
        except aiohttp.ClientError as error:
            raise Retryable(f"{type(error).__name__}: {error}") from error

    async def _compressed(self, request: bytes) -> bytes:
        match self._settings.compression:
            case "gzip":
                compress = _gzip
            case "zstd":
                compress = _zstd
            case _:
                return request
        if len(request) < _WORTH_A_THREAD:
            return compress(request)
        return await asyncio.to_thread(compress, request)


def _gzip(raw: bytes) -> bytes:
    return gzip.compress(raw, _FAST, mtime=0)


def _zstd(raw: bytes) -> bytes:
    return zstandard.ZstdCompressor(_FAST).compress(raw)


async def _read_bounded(content: aiohttp.StreamReader) -> bytes:
    """Return a body, empty if it is too large; what follows is not read, and the connection not used again."""
    pieces: list[bytes] = []
    size = 0
    async for piece in content.iter_any():
        size += len(piece)
        if size > _LARGEST_RESPONSE:
            return b""
        pieces.append(piece)
    return b"".join(pieces)


def _failure(response: aiohttp.ClientResponse, content: bytes, *, renews: bool) -> Retryable | Permanent:
    text = f"HTTP {response.status}: {_reason(response, content)}"
    if response.status in _RETRYABLE or (renews and response.status == _UNAUTHENTICATED):
        return Retryable(text, _retry_after(response.headers.get("Retry-After", "")))
    return Permanent(text)


def _reason(response: aiohttp.ClientResponse, content: bytes) -> str:
    if response.status // 100 == 3:
        return f"redirects to {response.headers.get('Location', 'nowhere')!r} are not followed: mend the endpoint"
    try:
        if response.content_type == PROTOBUF:
            message = status_message(content)
        elif response.content_type == JSON:
            message = status_message_json(content)
        else:
            message = json.dumps(content[:_LONGEST_TEXT].decode(errors="replace"), ensure_ascii=True)[1:-1]
    except MalformedAnswer:
        message = ""
    return message[:_LONGEST_TEXT] or response.reason or "no reason given"


def _retry_after(text: str) -> float | None:
    """Return the seconds that Retry-After asks for (RFC 9110: a number, or a date), None where it can't be read."""
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max((at - datetime.now(UTC)).total_seconds(), 0.0)
