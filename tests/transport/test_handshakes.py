"""Connections that never get through TLS take a bounded number of buffers, and no room from who does."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from podtrail.transport import tls_handshake
from podtrail.transport.tls_handshake import HandshakeFailure, Handshakes, TellingContext
from tests.certificates import Authority


class Answering(asyncio.Protocol):
    """Says hello."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


async def test_who_says_nothing_makes_room_for_who_does(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tls_handshake, "_AT_ONCE", 3)
    monkeypatch.setattr(tls_handshake, "_PATIENCE_SECONDS", 0.05)
    context = TellingContext(ssl.PROTOCOL_TLS_SERVER)
    identity = Authority(tmp_path).server()
    context.load_cert_chain(identity.cert_file, identity.key_file)
    failures: list[HandshakeFailure] = []
    handshakes = Handshakes(context, Answering, lambda _, failure: failures.append(failure), lambda _: True)
    async with AsyncExitStack() as stack:
        server = await asyncio.get_running_loop().create_server(handshakes, "127.0.0.1", 0)
        stack.push_async_callback(handshakes.close)
        stack.callback(server.close)
        port = server.sockets[0].getsockname()[1]
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting)
            assert await reader.read() == b"hello"
            writer.close()
            assert len(handshakes._begun) <= 3
            assert await silent[0][0].read() == b"", "it was cut off"
        assert {failure.reason for failure in failures} == {"timeout"}
        for _, one in silent:
            one.close()
