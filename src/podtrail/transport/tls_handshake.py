"""Connections until TLS is agreed on: who fails there is told why, counted, and takes no room for long.

asyncio drops who fails without a word to anybody. Here the alert that says why goes out, and what the client has sent
meanwhile is read for a moment, without which the system would cut the connection before the client has read it.
"""

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, NamedTuple, cast

_SECONDS: Final = 20.0
"""For a handshake: who connects has them to come up with a certificate."""
_AT_ONCE: Final = 128
"""Handshakes that have begun: each takes a buffer of 256 KiB, whoever is there and says nothing."""
_PATIENCE_SECONDS: Final = 2.0
"""For the oldest of them, while others wait to begin."""
_LINGER_SECONDS: Final = 1.0
"""In which a client that was refused is to have read why."""
_NO_TLS: Final = frozenset({"HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL"})
_NOTHING_COMMON: Final = frozenset({"UNSUPPORTED_PROTOCOL", "NO_SHARED_CIPHER", "VERSION_TOO_LOW"})


class HandshakeFailure(NamedTuple):
    """Why there was none."""

    reason: str
    """A label."""
    words: str
    """Empty for who just went, as a health check of TCP does."""


FailedHandshake = Callable[[tuple[str, int], HandshakeFailure], None]
"""Told of host and port of a client, and why."""


def failure_of(error: BaseException | None) -> HandshakeFailure:
    """Return what a handshake failed of; None: the connection ended."""
    match error:
        case ssl.SSLCertVerificationError():
            return _of_certificate(error)
        case ssl.SSLError():
            return _of_tls(getattr(error, "reason", "") or "")
        case ConnectionAbortedError() | TimeoutError():
            return HandshakeFailure("timeout", f"no handshake of TLS within {_SECONDS:g} s")
        case _:
            return HandshakeFailure("closed", "")


def _of_certificate(error: ssl.SSLCertVerificationError) -> HandshakeFailure:
    match error.verify_code:
        case 10:  # X509_V_ERR_CERT_HAS_EXPIRED
            return HandshakeFailure("certificate_expired", "its certificate has expired")
        case 9:  # X509_V_ERR_CERT_NOT_YET_VALID
            return HandshakeFailure("certificate_not_yet_valid", "its certificate is not valid yet")
        case _:
            words = f"its certificate is by no authority of tls::client_ca_file ({error.verify_message})"
            return HandshakeFailure("certificate_untrusted", words)


def _of_tls(reason: str) -> HandshakeFailure:
    said = reason.lower().replace("_", " ")
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return HandshakeFailure("certificate_missing", "it shows no certificate")
    if reason in _NO_TLS:
        return HandshakeFailure("not_tls", "it does not speak TLS")
    if reason in _NOTHING_COMMON:
        return HandshakeFailure("nothing_common", f"no version or cipher of TLS in common ({said})")
    if "ALERT" in reason:
        return HandshakeFailure("refused_by_client", f"it refuses the certificate of this server ({said})")
    return HandshakeFailure("other", f"no handshake of TLS ({said or 'no reason is known'})")


class _Handshake:
    """What a context has to know of the connection that it is asked for."""

    def __init__(self) -> None:
        self.failed: asyncio.Future[ssl.SSLError] = asyncio.get_running_loop().create_future()
        self.incoming: ssl.MemoryBIO | None = None


_under_way: ContextVar[_Handshake] = ContextVar("_under_way")


class TellingTls(ssl.SSLObject):
    """TLS of one connection, whose failing handshake still sends its alert."""

    handshake: _Handshake | None = None

    def do_handshake(self) -> None:
        """Go on with it.

        Raises:
            SSLWantReadError: more must come first; or it has failed, and asyncio is to send what is to be sent.
        """
        handshake = self.handshake
        if handshake is None:
            super().do_handshake()
            return
        try:
            if not handshake.failed.done():
                super().do_handshake()
                return
            assert handshake.incoming is not None
            handshake.incoming.read()  # nobody reads it, nobody keeps it
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            handshake.failed.set_result(error.with_traceback(None))  # whose frames hold what holds it
        raise ssl.SSLWantReadError


class TellingContext(ssl.SSLContext):
    """A context whose connections say when their handshake fails."""

    sslobject_class = TellingTls

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *others: Any, **more: Any) -> ssl.SSLObject:
        """Return TLS between two buffers."""
        made = super().wrap_bio(incoming, outgoing, *others, **more)
        handshake = _under_way.get(None)
        if handshake is not None and isinstance(made, TellingTls):
            made.handshake, handshake.incoming = handshake, incoming
        return made


class _Early(asyncio.Protocol):
    """Keeps what comes right behind the handshake until its reader is there."""

    def __init__(self) -> None:
        self.data: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self.data.append(data)


class Handshakes:
    """Those under way at one server."""

    def __init__(
        self,
        context: TellingContext,
        protocol: Callable[[], asyncio.Protocol],
        failed: FailedHandshake,
        room: Callable[[int], bool],
    ) -> None:
        """Agree on TLS by `context`, and hand connections to protocols.

        Args:
            context: what it is agreed on by.
            protocol: makes the reader of a connection.
            failed: is told of each that fails.
            room: tells whether so many may be under way.
        """
        self._context = context
        self._protocol = protocol
        self._failed = failed
        self._room = room
        self._tasks: set[asyncio.Task[None]] = set()
        self._begun: dict[asyncio.Task[Any], float] = {}
        """Those that have a buffer, and since when; the oldest first."""

    def __call__(self) -> asyncio.Protocol:
        """Return what takes a connection that has just been made."""
        return _Connection(self)

    def begin(self, transport: asyncio.Transport) -> None:
        """Take a connection, or close it for want of room."""
        transport.pause_reading()
        if not self._room(len(self._tasks) + 1):
            transport.abort()
            return
        task = asyncio.get_running_loop().create_task(self._agree(transport))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Give up those under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _agree(self, transport: asyncio.Transport) -> None:
        task = asyncio.current_task()
        assert task is not None, "it is one"
        try:
            await self._turn(task)
            await self._shake_hands(transport)
        except asyncio.CancelledError:
            transport.abort()
            raise
        finally:
            self._begun.pop(task, None)

    async def _turn(self, task: asyncio.Task[Any]) -> None:
        """Return when this one may begin: there is room, or the oldest has had its time."""
        loop = asyncio.get_running_loop()
        while len(self._begun) >= _AT_ONCE:
            oldest, since = next(iter(self._begun.items()))
            left = since + _PATIENCE_SECONDS - loop.time()
            if left > 0:
                await asyncio.wait({oldest}, timeout=left)
            else:
                self._begun.pop(oldest)
                oldest.cancel()
        self._begun[task] = loop.time()

    async def _shake_hands(self, transport: asyncio.Transport) -> None:
        peer = transport.get_extra_info("peername") or ("", 0)
        handshake, early = _Handshake(), _Early()
        _under_way.set(handshake)
        loop = asyncio.get_running_loop()
        starting = loop.create_task(
            loop.start_tls(transport, early, self._context, server_side=True, ssl_handshake_timeout=_SECONDS)
        )
        try:
            either: set[asyncio.Future[Any]] = {starting, handshake.failed}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if handshake.failed.done():
                self._failed(peer[:2], failure_of(handshake.failed.result()))
                with suppress(OSError):  # it is gone already
                    transport.write_eof()
                await asyncio.wait({starting}, timeout=_LINGER_SECONDS)
            elif (error := starting.exception()) is not None or starting.result() is None:
                self._failed(peer[:2], failure_of(error))
            else:
                _hand_over(cast("asyncio.Transport", starting.result()), early, self._protocol())
        except asyncio.CancelledError:
            if asyncio.current_task() not in self._begun:  # another has its turn; else the server ends
                words = f"no handshake of TLS within {_PATIENCE_SECONDS:g} s, while others waited to begin theirs"
                self._failed(peer[:2], HandshakeFailure("timeout", words))
            raise
        finally:
            if not starting.done():
                starting.cancel()
            elif not starting.cancelled() and (told := starting.exception()) is not None:
                # asyncio's frame in its traceback holds the future that holds it: a circle, with a buffer of 256 KiB,
                # that would stay until the garbage collector looks at what is old.
                told.__traceback__ = None
            if handshake.failed.done():
                transport.abort()


def _hand_over(transport: asyncio.Transport, early: _Early, protocol: asyncio.Protocol) -> None:
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    for data in early.data:
        protocol.data_received(data)


class _Connection(asyncio.Protocol):
    def __init__(self, handshakes: Handshakes) -> None:
        self._handshakes = handshakes

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._handshakes.begin(cast("asyncio.Transport", transport))
