"""Server certificates: read from files or configuration, for grpcio and for ssl."""

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from podtrail.component import StartError
from podtrail.config.types import TlsServerSettings


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
    certificate = _read("cert_file", settings.cert_file, settings.cert_pem)
    key = _read("key_file", settings.key_file, key_pem)
    client_authorities = _read("client_ca_file", settings.client_ca_file, None)
    assert certificate is not None
    assert key is not None
    return ServerPems(certificate, key, client_authorities)


def _read(name: str, path: str | None, text: str | None) -> bytes | None:
    if path is None:
        return text.encode() if text is not None else None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise StartError(f"tls::{name}: can't read {path}: {error.strerror}") from error


def ssl_context(settings: TlsServerSettings) -> ssl.SSLContext:
    """Return the context of a TLS server.

    Raises:
        StartError: a file can't be read, is no PEM, or certificate and key don't belong together.
    """
    pems = read_pems(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if settings.min_version == "1.3" else ssl.TLSVersion.TLSv1_2
    load_certificate(context, pems)
    if pems.client_authorities is not None:
        try:
            context.load_verify_locations(cadata=pems.client_authorities.decode())
        except (ssl.SSLError, ValueError) as error:
            raise StartError(f"tls::client_ca_file: {settings.client_ca_file} holds no certificate: {error}") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


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
