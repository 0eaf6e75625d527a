"""Handshakes of TLS that fail over HTTP: told to the client, counted by reason, a line for each client."""

import asyncio
import gc
import logging
import socket
import ssl
import struct
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from podtrail.transport.caller import connected_peer
from podtrail.transport.refusal_log import RefusalLog
from podtrail.transport.tls_handshake import failure_of
from tests.certificates import Authority

DEADLINE = 120.0
HEADERS = {"content-type": "application/x-protobuf"}
FAILED = "podtrail_receiver_failed_handshakes_total"


class Place:
    """An authority, a server of it, and one that nobody knows."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        (folder / "foreign").mkdir()
        self.foreign = Authority(folder / "foreign", "foreign")
        trusted = folder / "clients.pem"
        trusted.write_bytes(self.authority.certificate)
        server = self.authority.server()
        self.tls = {
            "cert_file": str(server.cert_file),
            "key_file": str(server.key_file),
            "client_ca_file": str(trusted),
        }

    def client(self, which: str) -> ssl.SSLContext:
        """What a client shows: `good`, or what is wrong with it."""
        match which:
            case "expired":
                return self.authority.issue("agent", "agent", days=-1).ssl(self.authority.certificate)
            case "foreign":
                return self.foreign.issue("agent", "agent").ssl(self.authority.certificate)
            case "none":
                return ssl.create_default_context(cadata=self.authority.certificate.decode())
            case "old":
                context = self.authority.issue("agent", "agent").ssl(self.authority.certificate)
                context.maximum_version = ssl.TLSVersion.TLSv1_2
                return context
            case "distrusts":
                return self.authority.issue("agent", "agent").ssl(self.foreign.certificate)
            case _:
                return self.authority.issue("agent", "agent").ssl(self.authority.certificate)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def post(endpoint: str, context: ssl.SSLContext, body: bytes) -> str:
    """Send over a connection of its own; return the status, or what the client was told."""
    async with aiohttp.ClientSession(headers=HEADERS) as session:
        try:
            async with session.post(f"https://{endpoint}/v1/traces", data=body, ssl=context) as answer:
                return str(answer.status)
        except aiohttp.ClientError as error:
            return str(error)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not true():  # noqa: ASYNC110 - a counter tells nobody
            await asyncio.sleep(0.01)


def talk(serving: Any, tls: dict[str, Any], said: Callable[[Any], Awaitable[None]], **settings: object) -> list[str]:
    """Talk to a server; return its warnings."""
    lines: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                lines.append(record.getMessage())

    async def main() -> None:
        async with serving(http={"tls": tls, **settings}) as served:
            await said(served)

    handler = Kept()
    logging.getLogger().addHandler(handler)
    try:
        asyncio.run(main())
    finally:
        logging.getLogger().removeHandler(handler)
    return lines


@pytest.mark.parametrize(
    ("which", "version", "told", "reason", "words"),
    [
        ("expired", "1.2", "alert certificate expired", "certificate_expired", "its certificate has expired"),
        ("foreign", "1.2", "alert unknown ca", "certificate_untrusted", "its certificate is by no authority of tls::"),
        ("none", "1.2", "alert certificate required", "certificate_missing", "it shows no certificate"),
        ("old", "1.3", "alert protocol version", "nothing_common", "no version or cipher of TLS in common"),
    ],
)
def test_who_fails_is_told_why_counted_and_named_once_and_others_are_served(
    serving: Any, request_of: Any, place: Place, which: str, version: str, told: str, reason: str, words: str
) -> None:
    body = request_of(1).SerializeToString()

    async def said(served: Any) -> None:
        for _ in range(3):
            assert told in await post(served["http"], place.client(which), body)
        await until(lambda: served.metric(FAILED, transport="http", reason=reason) == 3)
        assert await post(served["http"], place.client("good"), body) == "200"

    (line,) = talk(serving, place.tls | {"min_version": version}, said)
    assert line.startswith("refused a connection from 127.0.0.1:")
    assert words in line


def test_a_client_that_refuses_the_servers_certificate_is_counted_and_named(serving: Any, place: Place) -> None:
    def connect(endpoint: str) -> None:
        host, _, port = endpoint.rpartition(":")
        # asyncio's clients go without a word.
        with socket.create_connection((host, int(port)), DEADLINE) as raw, pytest.raises(ssl.SSLCertVerificationError):
            place.client("distrusts").wrap_socket(raw, server_hostname="localhost")

    async def said(served: Any) -> None:
        await asyncio.to_thread(connect, served["http"])
        await until(lambda: served.metric(FAILED, transport="http", reason="refused_by_client") == 1)

    (line,) = talk(serving, place.tls, said)
    assert "it refuses the certificate of this server (" in line
    assert "unknown ca" in line


def test_who_speaks_no_tls_is_counted_and_who_only_looks_whether_the_port_is_open_gets_no_line(
    serving: Any, place: Place
) -> None:
    async def said(served: Any) -> None:
        host, _, port = served["http"].rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
        await until(lambda: served.metric(FAILED, transport="http", reason="closed") == 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/traces HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(DEADLINE):
            await reader.read()
        writer.close()
        await until(lambda: served.metric(FAILED, transport="http", reason="not_tls") == 1)

    (line,) = talk(serving, place.tls, said)
    assert line.endswith(": it does not speak TLS")


def test_who_connects_and_says_nothing_is_cut_off_while_others_are_served(
    serving: Any, request_of: Any, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtrail.transport.tls_handshake._SECONDS", 3.0)
    body = request_of(1).SerializeToString()

    async def said(served: Any) -> None:
        host, _, port = served["http"].rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
        silent[0][1].write(b"\x16\x03\x01")  # a hello that never goes on
        assert await post(served["http"], place.client("good"), body) == "200"
        async with asyncio.timeout(DEADLINE):
            assert await asyncio.gather(*(ended(reader) for reader, _ in silent)) == [b""] * 50
        await until(lambda: served.metric(FAILED, transport="http", reason="timeout") == 50)
        for _, writer in silent:
            writer.close()

    (line,) = talk(serving, place.tls, said)
    assert ": no handshake of TLS within 3 s" in line


async def ended(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def test_connections_at_their_handshake_count_among_those_that_there_may_be(serving: Any, place: Place) -> None:
    async def said(served: Any) -> None:
        host, _, port = served["http"].rpartition(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(10)]
        left = {asyncio.create_task(ended(reader)) for reader, _ in silent}
        async with asyncio.timeout(DEADLINE):
            while len(left) > 3:
                _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        assert len(left) == 3
        for task in left:
            task.cancel()
        for _, writer in silent:
            writer.close()

    assert talk(serving, place.tls, said, max_connections=3) == []


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_request_that_comes_with_the_end_of_the_handshake_is_answered(
    serving: Any, request_of: Any, place: Place, version: ssl.TLSVersion
) -> None:
    body = request_of(1).SerializeToString()
    head = f"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: {HEADERS['content-type']}\r\n"
    request = f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body

    async def said(served: Any) -> None:
        host, _, port = served["http"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = place.client("good")
        context.maximum_version = version
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        async with asyncio.timeout(DEADLINE):
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    writer.write(outgoing.read())
                    incoming.write(await reader.read(1 << 16))
            tls.write(request)
            writer.write(outgoing.read())
            while True:
                try:
                    assert tls.read(1 << 16).startswith(b"HTTP/1.1 200 ")
                    break
                except ssl.SSLWantReadError:
                    incoming.write(await reader.read(1 << 16))
        writer.close()
        assert len(served.spans) == 1

    assert talk(serving, place.tls, said) == []


@contextmanager
def uncollected() -> Iterator[None]:
    """The garbage collector looks at what is old hardly ever; here at nothing, so that none of it hides a circle."""
    gc.collect()
    gc.freeze()  # so that only what is new has to be looked through
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def halves() -> int:
    """How many ends of TLS there are in this process, in use or not."""
    return sum(type(each) is SSLProtocol for each in gc.get_objects())


@pytest.mark.parametrize(
    ("sent", "cut", "reason"),
    [
        (b"", False, "closed"),
        (b"", True, "closed"),
        (b"\x16\x03\x01", False, "closed"),
        (b"\x16\x03\x01", True, "closed"),
        (b"GET / HTTP/1.1\r\n\r\n", False, "not_tls"),
    ],
    ids=["nothing", "nothing, reset", "half a hello", "half a hello, reset", "no TLS"],
)
def test_handshakes_that_failed_leave_nothing_behind_for_the_garbage_collector(
    serving: Any, place: Place, sent: bytes, cut: bool, reason: str
) -> None:
    async def said(served: Any) -> None:
        host, _, port = served["http"].rpartition(":")
        with uncollected():
            for _ in range(3):
                clients = [socket.create_connection((host, int(port)), DEADLINE) for _ in range(20)]
                await until(lambda: halves() == 20)
                for client in clients:
                    client.sendall(sent)
                    if cut:
                        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    client.close()
                await until(lambda: halves() == 0)
        assert served.metric(FAILED, transport="http", reason=reason) == 60

    talk(serving, place.tls, said)


@pytest.mark.parametrize("which", ["expired", "none"])
def test_a_refused_certificate_leaves_nothing_behind_for_the_garbage_collector(
    serving: Any, place: Place, which: str
) -> None:
    def refused(endpoint: str) -> None:
        host, _, port = endpoint.rpartition(":")
        raw = socket.create_connection((host, int(port)), DEADLINE)
        with place.client(which).wrap_socket(raw, server_hostname="localhost") as client, suppress(OSError):
            client.recv(1)

    async def said(served: Any) -> None:
        with uncollected():
            for _ in range(20):
                await asyncio.to_thread(refused, served["http"])
            await until(lambda: halves() == 0)

    talk(serving, place.tls, said)


async def flood(writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"GET / HTTP/1.1\r\n" * 4_000)
        await writer.drain()


def test_who_floods_after_it_was_refused_is_cut_off(serving: Any, place: Place) -> None:
    async def said(served: Any) -> None:
        host, _, port = served["http"].rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        async with asyncio.timeout(DEADLINE):
            with pytest.raises(ConnectionError):
                await flood(writer)
            await ended(reader)

    assert len(talk(serving, place.tls, said)) == 1


async def test_a_server_that_stops_waits_for_no_handshake(
    serving: Any, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podtrail.transport.tls_handshake._SECONDS", 10 * DEADLINE)

    async def said(served: Any) -> None:
        host, _, port = served["http"].rpartition(":")
        served.silent = [await asyncio.open_connection(host, int(port)) for _ in range(3)]
        assert await post(served["http"], place.client("none"), b"") != "200"

    async with asyncio.timeout(DEADLINE):
        async with serving(http={"tls": place.tls}) as served:
            await said(served)
        await asyncio.gather(*(ended(reader) for reader, _ in served.silent))
        for _, writer in served.silent:
            writer.close()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (None, "closed"),
        (ConnectionResetError(), "closed"),
        (ConnectionAbortedError("SSL handshake is taking longer"), "timeout"),
        (ssl.SSLError(1, "[SSL: SOMETHING_NEW] something new"), "other"),
    ],
)
def test_every_failure_has_a_reason(error: BaseException | None, reason: str) -> None:
    assert failure_of(error).reason == reason


def test_each_client_gets_a_line_a_minute_and_all_together_few_however_many_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = 0.0
    log = RefusalLog(logging.LoggerAdapter(logging.getLogger("otlp"), {}), lambda: now)

    def refuse(*hosts: str) -> list[str]:
        caplog.clear()
        for host in hosts:
            log.tell(connected_peer(host, 1), "no")
        return [record.getMessage() for record in caplog.records]

    assert refuse("10.0.0.1", "10.0.0.1", "10.0.0.2") == [
        "refused a request from 10.0.0.1:1: no",
        "refused a request from 10.0.0.2:1: no; 1 more were refused since the last line",
    ]
    now = 59.0
    assert refuse("10.0.0.1", "10.0.0.2") == []
    now = 60.0
    assert refuse("10.0.0.1") == ["refused a request from 10.0.0.1:1: no; 2 more were refused since the last line"]
    many = [f"10.1.{number >> 8}.{number & 255}" for number in range(20_000)]
    assert len(refuse(*many)) == 9
    now = 120.0
    (first, *_) = refuse(*many)
    assert first.endswith("; 19991 more were refused since the last line")
