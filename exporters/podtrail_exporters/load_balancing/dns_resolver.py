"""Backends at the addresses of a name, looked up again and again with the system's resolver."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv6Address, ip_address

from podtrail.config.types import SECOND
from podtrail_exporters.load_balancing.config import DnsResolver
from podtrail_exporters.load_balancing.resolver import Sink

_INTERVAL = 5.0
_TIMEOUT = 1.0
"""Seconds, where the configuration has 0."""

LookUp = Callable[[str], Awaitable[Sequence[str]]]
"""Returns the addresses of a name; OSError where there are none."""


async def system_look_up(name: str) -> Sequence[str]:
    """Return the addresses of a name, as the system resolves it.

    Raises:
        OSError: it does not.
    """
    found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class DnsLookups:
    """Looks a name up every so often."""

    def __init__(self, settings: DnsResolver, look_up: LookUp = system_look_up) -> None:
        """Look up with `look_up`, which tests replace."""
        self.nobody = f"{settings.hostname!r} has no address"
        self._settings = settings
        self._look_up = look_up
        self._interval = settings.interval / SECOND or _INTERVAL
        self._timeout = settings.timeout / SECOND or _TIMEOUT
        self._task: asyncio.Task[None] | None = None

    async def start(self, sink: Sink) -> None:
        """Look up once, then in the background. A name that is unknown may become known: that is no error yet."""
        await self._resolve(sink)
        self._task = asyncio.create_task(self._again(sink), name=f"look-ups of {self._settings.hostname}")

    async def stop(self) -> None:
        """Look up no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _again(self, sink: Sink) -> None:
        while True:
            await asyncio.sleep(self._interval)
            await self._resolve(sink)

    async def _resolve(self, sink: Sink) -> None:
        name = self._settings.hostname
        try:
            async with asyncio.timeout(self._timeout):
                addresses = await self._look_up(name)
        except TimeoutError:
            sink.failed(f"dns: no answer for {name!r} within {self._timeout:g} s")
        except OSError as error:
            sink.failed(f"dns: {name!r} can't be looked up: {error.strerror or error}")
        except UnicodeError as error:
            sink.failed(f"dns: {name!r} is no name that can be looked up: {error}")
        else:
            sink.resolved([self._named(address) for address in addresses])

    def _named(self, address: str) -> str:
        """Return an address as the Collector's ring names it: canonical, an IPv6 one in brackets."""
        ip = ip_address(address.partition("%")[0])
        if isinstance(ip, IPv6Address) and ip.ipv4_mapped is not None:
            ip = ip.ipv4_mapped
        text = f"[{ip}]" if isinstance(ip, IPv6Address) else str(ip)
        return f"{text}:{self._settings.port}" if self._settings.port else text
