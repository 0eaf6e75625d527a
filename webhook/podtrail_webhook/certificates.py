"""Certificates that the webhook makes for itself: an authority whose key is thrown away, and one certificate by it.

So whoever reads the Secret gets the key of the webhook, and nothing that signs more. To be renewed both are made anew;
the former authority stays in the bundle for as long as it holds, for replicas that still show what it has signed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY: Final = timedelta(days=90)
RENEW_BEFORE: Final = timedelta(days=30)
"""A third of the time is left for whoever is down, or may not write."""
_BACKDATED: Final = timedelta(hours=1)
"""For clocks that are behind."""
_NOTHING_BEYOND: Final = 8
"""Authorities in a bundle at most."""


class SelfSigned(NamedTuple):
    """As PEM."""

    certificate: bytes
    key: bytes
    authorities: bytes
    """What clients are to trust: the authority that signed, and former ones."""


def make_certificate(names: Sequence[str], now: datetime, former: bytes = b"") -> SelfSigned:
    """Makes authority, key and certificate for these DNS names.

    Args:
        names: The first is the subject as well.
        now: The current time, with its zone.
        former: Authorities to keep in the bundle; what has expired is left out.
    """
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"podtrail webhook {now:%Y-%m-%dT%H:%M:%SZ}")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    # Its own names: two authorities of one name and different keys are told apart by nothing else.
    authority_id = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())

    def begun(of: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(of)
            .issuer_name(issuer)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BACKDATED)
            .not_valid_after(now + VALIDITY)
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
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    return SelfSigned(
        certificate.public_bytes(pem),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        b"".join([authority.public_bytes(pem), *_still_valid(former, now)]),
    )


def why_renew(held: SelfSigned, names: Sequence[str], now: datetime) -> str:
    """Says why a certificate is to be made anew; empty when it is not."""
    try:
        certificate = x509.load_pem_x509_certificate(held.certificate)
        key = serialization.load_pem_private_key(held.key, None)
        authorities = x509.load_pem_x509_certificates(held.authorities)
        alternative = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, x509.ExtensionNotFound) as error:
        return f"it can't be read: {error}"
    if certificate.public_key() != key.public_key():
        return "certificate and key don't belong together"
    if not any(_signed(certificate, authority) for authority in authorities):
        return "no authority in ca.crt has signed it"
    if missing := set(names) - set(alternative.get_values_for_type(x509.DNSName)):
        return f"it is not for {', '.join(sorted(missing))}"
    if now >= certificate.not_valid_after_utc - RENEW_BEFORE:
        return f"it ends at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
    if now < certificate.not_valid_before_utc:
        return "it is not valid yet"
    return ""


def utc_now() -> datetime:
    """The current time."""
    return datetime.now(UTC)


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _still_valid(authorities: bytes, now: datetime) -> list[bytes]:
    """The certificates of a bundle that hold, the newest first."""
    try:
        read = x509.load_pem_x509_certificates(authorities) if authorities else []
    except ValueError:
        return []  # what nobody can read verifies nothing
    valid = [each for each in read if each.not_valid_after_utc > now]
    valid.sort(key=lambda each: each.not_valid_before_utc, reverse=True)
    return [each.public_bytes(serialization.Encoding.PEM) for each in valid[: _NOTHING_BEYOND - 1]]


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
