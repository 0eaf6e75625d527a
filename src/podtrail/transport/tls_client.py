"""What a client trusts and shows: read from files or configuration, for grpcio and for ssl."""

import ssl
from pathlib import Path
from typing import NamedTuple

from podtrail.component import StartError
from podtrail.config.types import TlsClientSettings
from podtrail.transport.tls_server import ServerPems, load_certificate, read_pem


class ClientPems(NamedTuple):
    """Authorities, certificate and key as PEM; None where not configured."""

    authorities: bytes | None
    certificate: bytes | None
    key: bytes | None


def read_pems(settings: TlsClientSettings) -> ClientPems:
    """Read what `tls:` names.

    Raises:
        StartError: a file can't be read; the text names the key and the file.
    """
    key_pem = settings.key_pem.get_secret_value() if settings.key_pem is not None else None
    return ClientPems(
        read_pem("ca_file", settings.ca_file, settings.ca_pem),
        read_pem("cert_file", settings.cert_file, settings.cert_pem),
        read_pem("key_file", settings.key_file, key_pem),
    )


def system_authorities() -> bytes | None:
    """Return the authorities that the system trusts, None where it keeps no such file."""
    path = ssl.get_default_verify_paths().cafile
    return Path(path).read_bytes() if path is not None else None


def ssl_context(settings: TlsClientSettings) -> ssl.SSLContext:
    """Return the context of a TLS client.

    Raises:
        StartError: a file can't be read, is no PEM, or certificate and key don't belong together.
    """
    pems = read_pems(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3 if settings.min_version == "1.3" else ssl.TLSVersion.TLSv1_2
    if settings.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif pems.authorities is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cadata=pems.authorities.decode())
        except (ssl.SSLError, ValueError) as error:
            raise StartError(f"tls::ca_file: {settings.ca_file or 'ca_pem'} holds no certificate: {error}") from error
    if pems.certificate is not None and pems.key is not None:
        load_certificate(context, ServerPems(pems.certificate, pems.key, None))
    return context
