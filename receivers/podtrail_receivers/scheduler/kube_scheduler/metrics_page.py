"""The scheduler's own count of its attempts, read from its `/metrics` now and then."""

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from podtrail.component import Context
from podtrail.config.types import SECOND
from podtrail_receivers.scheduler.kube_scheduler.config import MetricsPageConfig

if TYPE_CHECKING:
    import aiohttp

_TIMEOUT = 10.0
_LARGEST = 32 << 20
"""Bytes. kube-scheduler's page has some 300 KiB."""


class MetricsPage:
    """Fetches the page again and again."""

    def __init__(self, config: MetricsPageConfig, context: Context) -> None:
        self._config = config
        self._log = context.log
        self._failing = ""
        self._tls: ssl.SSLContext | bool = True

    def open(self) -> None:
        """Read certificates.

        Raises:
            StartError: one can't be read.
        """
        from podtrail.transport.tls_client import ssl_context

        if self._config.tls is not None:
            self._tls = ssl_context(self._config.tls)
        elif _is_loopback(urlsplit(self._config.endpoint).hostname or ""):
            self._tls = False

    async def pages(self) -> AsyncIterator[bytes]:
        """Yield the page each time; one that can't be read is told once, until it can again."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while True:
                try:
                    page = await self._fetch(session)
                except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                    self._fails(str(error) or type(error).__name__)
                else:
                    self._fails("")
                    yield page
                await asyncio.sleep(self._config.collection_interval / SECOND)

    async def _fetch(self, session: "aiohttp.ClientSession") -> bytes:
        headers = await self._headers()
        async with session.get(self._config.endpoint, headers=headers, ssl=self._tls) as answer:
            answer.raise_for_status()
            page = bytearray()
            async for chunk in answer.content.iter_any():
                page += chunk
                if len(page) > _LARGEST:
                    answer.close()
                    raise ValueError(f"the page is larger than {_LARGEST >> 20} MiB")
            return bytes(page)

    async def _headers(self) -> dict[str, str]:
        if not self._config.token_file:
            return {}
        try:
            token = await asyncio.to_thread(Path(self._config.token_file).read_text)
        except FileNotFoundError:
            return {}
        return {"Authorization": f"Bearer {token.strip()}"}

    def _fails(self, why: str) -> None:
        if why and why != self._failing:
            self._log.warning("can't read %s: %s", self._config.endpoint, why)
        self._failing = why


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
