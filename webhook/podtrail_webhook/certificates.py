"""Certificates that the webhook makes for itself: an authority whose key is thrown away, and one certificate by it.

So whoever reads the Secret gets the key of the webhook, and nothing that signs more. To be renewed both are made anew;
the former authority stays in the bundle for as long as it holds, for replicas that still show what it has signed.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from podtrail_kubernetes.own_certificate import make_own_certificate

VALIDITY: Final = timedelta(days=90)
RENEW_BEFORE: Final = timedelta(days=30)
"""A third of the time is left for whoever is down, or may not write."""
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
    authority_name = f"podtrail webhook {now:%Y-%m-%dT%H:%M:%SZ}"
    made = make_own_certificate(authority_name, names[0], [x509.DNSName(name) for name in names], now, VALIDITY)
    authorities = b"".join([made.authority, *_still_valid(former, now)])
    return SelfSigned(made.certificate, made.key, authorities)


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
