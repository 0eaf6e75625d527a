"""Certificates of the webhook's own making: who trusts them, and when they are made anew."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from podtrail_webhook.certificates import RENEW_BEFORE, VALIDITY, SelfSigned, make_certificate, utc_now, why_renew

NAMES = ["podtrail-webhook.podtrail.svc", "podtrail-webhook.podtrail.svc.cluster.local"]
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def shakes_hands(made: SelfSigned, authorities: bytes, name: str, folder: Path) -> bool:
    """Whether a client that trusts these authorities takes the certificate for that name."""
    (folder / "tls.crt").write_bytes(made.certificate)
    (folder / "tls.key").write_bytes(made.key)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    client_context = ssl.create_default_context(cadata=authorities.decode())
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname=name)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_clients_that_trust_the_bundle_take_the_certificate_for_its_names(name: str, tmp_path: Path) -> None:
    made = make_certificate(NAMES, utc_now())
    assert shakes_hands(made, made.authorities, name, tmp_path)
    assert not shakes_hands(made, made.authorities, "elsewhere.podtrail.svc", tmp_path)
    assert not shakes_hands(made, make_certificate(NAMES, utc_now()).authorities, name, tmp_path)


def test_after_a_renewal_the_bundle_takes_the_former_certificate_and_the_new_one(tmp_path: Path) -> None:
    former = make_certificate(NAMES, utc_now() - timedelta(days=61))
    renewed = make_certificate(NAMES, utc_now(), former.authorities)
    assert shakes_hands(former, renewed.authorities, NAMES[0], tmp_path)
    assert shakes_hands(renewed, renewed.authorities, NAMES[0], tmp_path)
    assert not shakes_hands(renewed, former.authorities, NAMES[0], tmp_path)


def test_the_bundle_forgets_what_has_expired_and_stays_small() -> None:
    bundle = b""
    for number in range(20):
        bundle = make_certificate(NAMES, NOW + timedelta(minutes=number), bundle).authorities
    assert len(x509.load_pem_x509_certificates(bundle)) == 8
    later = make_certificate(NAMES, NOW + VALIDITY + timedelta(days=1), bundle)
    assert len(x509.load_pem_x509_certificates(later.authorities)) == 1


def test_the_key_of_the_authority_is_nowhere() -> None:
    made = make_certificate(NAMES, NOW)
    assert made.key.count(b"PRIVATE KEY") == 2  # its begin and its end
    assert b"PRIVATE" not in made.certificate + made.authorities


MADE = make_certificate(NAMES, NOW)
ANOTHER = make_certificate(NAMES, NOW)


def test_a_certificate_that_holds_is_kept() -> None:
    assert why_renew(MADE, NAMES, NOW) == ""
    assert why_renew(MADE, NAMES[:1], NOW + VALIDITY - RENEW_BEFORE - timedelta(seconds=1)) == ""


@pytest.mark.parametrize(
    ("held", "names", "now", "why"),
    [
        (MADE, NAMES, NOW + VALIDITY - RENEW_BEFORE, "it ends at 2027-02-21 12:00 UTC"),
        (MADE, NAMES, NOW + 2 * VALIDITY, "it ends at 2027-02-21 12:00 UTC"),
        (MADE, NAMES, NOW - timedelta(days=1), "it is not valid yet"),
        (MADE, ["other.podtrail.svc", *NAMES], NOW, "it is not for other.podtrail.svc"),
        (MADE._replace(key=ANOTHER.key), NAMES, NOW, "certificate and key don't belong together"),
        (MADE._replace(authorities=ANOTHER.authorities), NAMES, NOW, "no authority in ca.crt has signed it"),
        (MADE._replace(certificate=b"hello"), NAMES, NOW, "it can't be read: "),
        (MADE._replace(key=b"hello"), NAMES, NOW, "it can't be read: "),
        (MADE._replace(authorities=b"hello"), NAMES, NOW, "it can't be read: "),
        (MADE._replace(certificate=MADE.authorities), NAMES, NOW, "it can't be read: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_that_does_not_is_made_anew(held: SelfSigned, names: list[str], now: datetime, why: str) -> None:
    assert why_renew(held, names, now).startswith(why)


def test_authorities_that_nobody_can_read_are_left_out_of_the_new_bundle() -> None:
    assert len(x509.load_pem_x509_certificates(make_certificate(NAMES, NOW, b"hello").authorities)) == 1
