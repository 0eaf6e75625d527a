"""What reaches Services where there is no kube-proxy and no CoreDNS: their addresses and their names.

Every cluster IP is an address of the loopback, on which each port hands a connection on to one of the Service's
endpoints. TCP only; names are those of Services (`NAME.NAMESPACE.svc.cluster.local`), with IPv4 addresses.
"""

import asyncio
import contextlib
import functools
import ipaddress
import json
import random
import struct
import subprocess
import threading
from collections.abc import Awaitable, Callable
from typing import Any, cast

import aiohttp

from tests.envtest.control_plane import DEADLINE, Api

KUBERNETES = "10.0.0.1"
"""The first address of the range: the API server's own Service."""
NAME_SERVER = "10.0.0.10"
_SUFFIX = ".svc.cluster.local"
_AGAIN = 0.2
"""Seconds until a watch that ended is begun anew."""
_TYPE_A, _CLASS_IN, _RESPONSE, _NO_SUCH_NAME = 1, 1, 0x8580, 3


class ServiceNetwork:
    """Runs in a thread, in the network in which it was made, until it is closed."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._names: dict[str, str] = {}
        self._slices: dict[str, Any] = {}
        self._listening: dict[tuple[str, int], asyncio.Server] = {}
        self._loop = asyncio.new_event_loop()
        self._work = self._loop.create_task(self._serve())
        self._thread = threading.Thread(target=self._run, name="services", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it."""
        self._loop.call_soon_threadsafe(self._work.cancel)
        self._thread.join(DEADLINE)

    def _run(self) -> None:
        with contextlib.closing(self._loop), contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._work)

    async def _serve(self) -> None:
        _own(NAME_SERVER)
        here = (NAME_SERVER, 53)
        names, _ = await self._loop.create_datagram_endpoint(lambda: _NameServer(self._address), local_addr=here)
        try:
            async with (
                aiohttp.ClientSession() as session,
                asyncio.TaskGroup() as both,
            ):
                both.create_task(self._watch(session, "/apis/discovery.k8s.io/v1/endpointslices", self._slice_seen))
                both.create_task(self._watch(session, "/api/v1/services", self._service_seen))
        finally:
            names.close()
            for server in self._listening.values():
                server.close()
            open_yet = asyncio.all_tasks() - {self._work}
            for task in open_yet:
                task.cancel()
            await asyncio.gather(*open_yet, return_exceptions=True)
            await asyncio.sleep(0)  # for what was aborted to be closed

    async def _watch(
        self, session: aiohttp.ClientSession, path: str, seen: Callable[[str, Any], Awaitable[None]]
    ) -> None:
        url = f"https://{self._api.host}:{self._api.port}{path}?watch=1"
        while True:
            with contextlib.suppress(aiohttp.ClientError):  # the API server is down, or ends a watch now and then
                # Its own limit for a line is below that of an object.
                async with session.get(url, ssl=self._api.tls, timeout=aiohttp.ClientTimeout(total=None)) as answer:
                    try:
                        await _each_event(answer.content, seen)
                    finally:
                        if answer.connection is not None and answer.connection.transport is not None:
                            answer.connection.transport.abort()  # nobody is left to say goodbye to
            await asyncio.sleep(_AGAIN)

    async def _slice_seen(self, kind: str, found: Any) -> None:
        key = found["metadata"]["uid"]
        if kind == "DELETED":
            self._slices.pop(key, None)
        else:
            self._slices[key] = found

    async def _service_seen(self, kind: str, found: Any) -> None:
        metadata, address = found["metadata"], found["spec"].get("clusterIP", "None")
        if address == "None":
            return
        name = f"{metadata['name']}.{metadata['namespace']}"
        for port in found["spec"]["ports"]:
            key = (address, port["port"])
            if kind == "DELETED":
                self._listening.pop(key).close()
            elif key not in self._listening:
                _own(address)
                serving = functools.partial(self._hand_on, name, port.get("name", ""))
                self._listening[key] = await asyncio.start_server(serving, *key)
        if kind == "DELETED":
            self._names.pop(name, None)
        else:
            self._names[name] = address

    async def _hand_on(
        self, service: str, port: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        found = self._endpoints(service, port)
        with contextlib.closing(writer), contextlib.suppress(OSError):  # a side that went: the other sees its end
            if found:
                there, back = await asyncio.open_connection(*random.choice(found))
                with contextlib.closing(back):
                    await asyncio.gather(_copy(reader, back), _copy(there, writer))

    def _endpoints(self, service: str, port: str) -> list[tuple[str, int]]:
        name, _, namespace = service.partition(".")
        found = []
        for each in self._slices.values():
            metadata = each["metadata"]
            owner = metadata.get("labels", {}).get("kubernetes.io/service-name")
            if (owner, metadata["namespace"]) == (name, namespace):
                ready = [one for one in each["endpoints"] if one.get("conditions", {}).get("ready", True)]
                numbers = [one["port"] for one in each.get("ports") or () if one.get("name", "") == port]
                found += [(address, number) for one in ready for address in one["addresses"] for number in numbers]
        return found

    def _address(self, name: str) -> str:
        return self._names.get(name.removesuffix(_SUFFIX), "") if name.endswith(_SUFFIX) else ""


async def _each_event(stream: aiohttp.StreamReader, seen: Callable[[str, Any], Awaitable[None]]) -> None:
    line = b""
    async for piece in stream.iter_any():  # by lines it would have a limit below the size of objects
        *lines, line = (line + piece).split(b"\n")
        for event in map(json.loads, lines):
            await seen(event["type"], event["object"])


class _NameServer(asyncio.DatagramProtocol):
    """Answers one question a packet (RFC 1035, section 4)."""

    def __init__(self, address: Callable[[str], str]) -> None:
        self._address = address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode())
            at += 1 + data[at]
        question = data[12 : at + 5]
        (kind,) = struct.unpack_from("!H", data, at + 1)
        address = self._address(".".join(labels).lower())
        answer = b""
        if address and kind == _TYPE_A:  # its name is the question's, at 12; it is good for a second
            answer = struct.pack("!HHHIH", 0xC00C, _TYPE_A, _CLASS_IN, 1, 4) + ipaddress.ip_address(address).packed
        flags = _RESPONSE if address else _RESPONSE | _NO_SUCH_NAME
        self._transport.sendto(data[:2] + struct.pack("!5H", flags, 1, bool(answer), 0, 0) + question + answer, addr)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


def _own(address: str) -> None:
    subprocess.run(["ip", "address", "replace", f"{address}/32", "dev", "lo"], check=True, timeout=DEADLINE)
