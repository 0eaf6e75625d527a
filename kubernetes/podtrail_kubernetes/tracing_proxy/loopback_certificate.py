"""A certificate for 127.0.0.1 that lives as long as a run: only who was told of it takes the proxy for the API server.

TLS on the loopback is not for secrecy alone. Clients of client-go send no token without it, and without it another
process that gets the port after a crash would be sent what was meant for the API server.
"""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from podtrail_kubernetes.errors import RestConfigError

_LASTS = timedelta(days=30)
_BEFORE = timedelta(hours=1)


def loopback_tls(folder: Path) -> tuple[ssl.SSLContext, bytes]:
    """Makes a certificate; returns a server's settings with it, and the authority (PEM) that clients know it by.

    The key is in a file of `folder` while it is loaded, which Python's ssl cannot do from memory.

    Raises:
        RestConfigError: The package `cryptography` is not installed.
    """
    authority, certificate, key = _made(datetime.now(UTC))
    chain = folder / "serving.pem"
    chain.touch(0o600)
    try:
        chain.write_bytes(certificate + key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(chain)
    finally:
        chain.unlink()
    return context, authority


def _made(now: datetime) -> tuple[bytes, bytes, bytes]:
    """An authority whose key is forgotten, a certificate of it, and that one's key; all PEM."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from cryptography.x509.oid import ExtendedKeyUsageOID
    except ImportError as error:
        raise RestConfigError(
            f"podtrail trace makes a certificate for each run ({error}): install podtrail with its extra [trace]"
        ) from error

    def builder(subject: str, issuer: str, public: Any, signer: Any) -> Any:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)]))
            .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BEFORE)
            .not_valid_after(now + _LASTS)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
        )

    root, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = "podtrail trace, this run alone"
    signs = x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    authority = (
        builder(name, name, root.public_key(), root.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(signs, critical=True)
        .sign(root, hashes.SHA256())
    )
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        builder("podtrail trace", name, leaf.public_key(), root.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(address, critical=False)
        .sign(root, hashes.SHA256())
    )
    secret = leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return authority.public_bytes(Encoding.PEM), certificate.public_bytes(Encoding.PEM), secret
