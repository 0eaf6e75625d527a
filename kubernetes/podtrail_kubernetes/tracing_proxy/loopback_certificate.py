"""A certificate for 127.0.0.1 that lives as long as a run: only who was told of it takes the proxy for the API server.

TLS on the loopback is not for secrecy alone. Clients of client-go send no token without it, and without it another
process that gets the port after a crash would be sent what was meant for the API server.
"""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from podtrail_kubernetes.errors import RestConfigError

if TYPE_CHECKING:
    from podtrail_kubernetes.own_certificate import OwnCertificate

_LASTS = timedelta(days=30)


def loopback_tls(folder: Path) -> tuple[ssl.SSLContext, bytes]:
    """Makes a certificate; returns a server's settings with it, and the authority (PEM) that clients know it by.

    The key is in a file of `folder` while it is loaded, which Python's ssl cannot do from memory.

    Raises:
        RestConfigError: The package `cryptography` is not installed.
    """
    made = _made()
    chain = folder / "serving.pem"
    chain.touch(0o600)
    try:
        chain.write_bytes(made.certificate + made.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(chain)
    finally:
        chain.unlink()
    return context, made.authority


def _made() -> "OwnCertificate":
    try:
        from cryptography.x509 import IPAddress

        from podtrail_kubernetes.own_certificate import make_own_certificate
    except ImportError as error:
        raise RestConfigError(
            f"podtrail trace makes a certificate for each run ({error}): install podtrail with its extra [trace]"
        ) from error
    address = IPAddress(ip_address("127.0.0.1"))
    return make_own_certificate(
        "podtrail trace, this run alone", "podtrail trace", [address], datetime.now(UTC), _LASTS
    )
