"""Server certificates: read from files or configuration, for grpcio and for ssl."""

import contextlib
import logging
import os
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from podtrail.component import StartError
from podtrail.config.types import TlsServerSettings
from podtrail.transport.followed_file import signature
from podtrail.transport.small_file import read_small_file
from podtrail.transport.tls_handshake import TellingContext

_LOOK_AGAIN = 1_000_000_000
"""Nanoseconds between two looks at whether a file has changed."""


class ServerPems(NamedTuple):
    """Certificates and key as PEM."""

    certificate: bytes
    key: bytes
    client_authorities: bytes | None
    """Who must have signed a client's certificate; None: clients need none."""


def read_pems(settings: TlsServerSettings) -> ServerPems:
    """Read what `tls:` names.

    Raises:
        StartError: a file can't be read; the text names the key and the file.
    """
    key_pem = settings.key_pem.get_secret_value() if settings.key_pem is not None else None
    certificate = read_pem("cert_file", settings.cert_file, settings.cert_pem)
    key = read_pem("key_file", settings.key_file, key_pem)
    client_authorities = read_pem("client_ca_file", settings.client_ca_file, None)
    assert certificate is not None
    assert key is not None
    return ServerPems(certificate, key, client_authorities)


def read_pem(name: str, path: str | None, text: str | None) -> bytes | None:
    """Return what `tls::NAME` is configured to: the content of a file, or the text itself; None for neither.

    Raises:
        StartError: the file can't be read.
    """
    if path is None:
        return text.encode() if text is not None else None
    try:
        return read_small_file(Path(path))
    except OSError as error:
        raise StartError(f"tls::{name}: can't read {path}: {error.strerror}") from error


class ServerContext(TellingContext):
    """What a connection is made with; it tells which authorities its client was checked by."""

    generation: int = 0
    """Of the authorities: 0 for those of the start, one more with every change."""


def ssl_context(settings: TlsServerSettings) -> ServerContext:
    """Return the context of a TLS server.

    Raises:
        StartError: a file can't be read, is no PEM, or certificate and key don't belong together.
    """
    return _context(settings, read_pems(settings))


def _context(settings: TlsServerSettings, pems: ServerPems) -> ServerContext:
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if settings.min_version == "1.3" else ssl.TLSVersion.TLSv1_2
    load_certificate(context, pems)
    if pems.client_authorities is not None:
        try:
            context.load_verify_locations(cadata=pems.client_authorities.decode())
        except (ssl.SSLError, ValueError) as error:
            raise StartError(f"tls::client_ca_file: {settings.client_ca_file} holds no certificate: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
        # A session that is resumed would bring a client back whose certificate nobody looks at again.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return context


class ServerCertificates:
    """What `tls:` names, as it is now: read again when it is due, which is asked with every new connection."""

    def __init__(
        self,
        settings: TlsServerSettings,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Read it for the first time; `clock` gives nanoseconds since any moment.

        Raises:
            StartError: it is of no use.
        """
        self._settings = settings
        self._clock = clock
        self._log = logging.getLogger(__name__)
        self._said = ""
        self.pems = read_pems(settings)
        self.context = _context(settings, self.pems)
        self._due = clock() + settings.reload_interval
        self._look_again = clock() + _LOOK_AGAIN
        self._seen = self._authorities_seen()

    @property
    def generation(self) -> int:
        """Of the authorities that sign clients' certificates: how often they have changed."""
        return self.context.generation

    def look(self) -> bool:
        """Read again what is due; return whether it has changed. What is of no use changes nothing, and is told."""
        if not self._is_due():
            return False
        try:
            pems = read_pems(self._settings)
            if pems == self.pems:
                return False
            context = _context(self._settings, pems)
        except StartError as error:
            if str(error) != self._said:
                self._said = str(error)
                self._log.warning("%s; what was read before still serves", error)
            return False
        self._said = ""
        context.generation = self.generation + (pems.client_authorities != self.pems.client_authorities)
        self.pems, self.context = pems, context
        return True

    def _is_due(self) -> bool:
        now, is_due = self._clock(), False
        if self._settings.reload_interval and now >= self._due:
            self._due = now + self._settings.reload_interval
            is_due = True
        if self._settings.client_ca_file_reload and now >= self._look_again:
            self._look_again = now + _LOOK_AGAIN
            seen = self._authorities_seen()
            is_due |= seen != self._seen
            self._seen = seen
        return is_due

    def _authorities_seen(self) -> tuple[int, int, int] | None:
        """Return what differs when the file of the authorities was written or replaced; None without one."""
        if self._settings.client_ca_file is None:
            return None
        return signature(Path(self._settings.client_ca_file))


def load_certificate(context: ssl.SSLContext, pems: ServerPems) -> None:
    """Have a context present this certificate from the next connection on; one that is of no use changes nothing.

    Raises:
        StartError: it is of no use.
    """
    # ssl takes paths only; what is behind these is readable by this process alone and gone as soon as it was read.
    with _file(pems.certificate) as certificate, _file(pems.key) as key:
        try:
            # What turns out to be of no use half-way would leave a context without the certificate that it had.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=_no_password)
            context.load_cert_chain(certificate, key, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise StartError(f"tls: certificate and key are not usable: {error}") from error


def _no_password() -> str:
    raise ValueError("the key is encrypted, which is not supported")


@contextlib.contextmanager
def _file(content: bytes) -> Iterator[str]:
    if hasattr(os, "memfd_create"):  # Linux: no file system is needed that can be written to
        number = os.memfd_create("pem")
        with open(number, "wb") as memory:
            memory.write(content)
            memory.flush()
            yield f"/proc/self/fd/{number}"
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        yield file.name
