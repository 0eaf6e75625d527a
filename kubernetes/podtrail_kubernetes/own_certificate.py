"""A certificate of one's own making: by an authority whose key is thrown away, so that it signs nothing else ever.

Needs the package `cryptography`, which comes with the extras that make certificates.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BACKDATED: Final = timedelta(hours=1)
"""For clocks that are behind."""
_LONGEST_NAME: Final = 64
"""Characters of a common name (RFC 5280, appendix A.1)."""


class OwnCertificate(NamedTuple):
    """As PEM."""

    certificate: bytes
    key: bytes
    authority: bytes
    """The authority's certificate, for who is to trust this one."""


def make_own_certificate(
    authority_name: str, common_name: str, names: Sequence[x509.GeneralName], now: datetime, lasts: timedelta
) -> OwnCertificate:
    """Makes authority, key and a server's certificate.

    Args:
        authority_name: The common name of who signs.
        common_name: The server's, cut where it is too long; clients go by `names`.
        names: Of the server: DNS names, addresses.
        now: The current time, with its zone.
        lasts: How long both certificates hold.
    """
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, authority_name[:_LONGEST_NAME])])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name[:_LONGEST_NAME])])
    # Two authorities of one name and different keys are told apart by nothing else.
    authority_id = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())

    def begun(of: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(of)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + lasts)
        )

    authority = (
        begun(issuer, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(authority_id, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    certificate = (
        begun(subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return OwnCertificate(
        certificate.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        authority.public_bytes(Encoding.PEM),
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
