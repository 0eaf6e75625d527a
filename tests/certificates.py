"""Certificates for tests: authorities that sign what a test asks for, valid, expired, of any name."""

import datetime as dt
import ssl
from ipaddress import ip_address
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = dt.timedelta(days=1)
_SIGNS = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    **dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    ),
)
"""Said with the keys' identifiers, since Python 3.13 clients take no authority without them (RFC 5280)."""


class Identity:
    """A certificate with its key, as PEM and as files."""

    def __init__(self, folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        self.key = key.private_bytes(*form)
        self.cert_file, self.key_file = folder / f"{name}.pem", folder / f"{name}.key"
        self.cert_file.write_bytes(self.certificate)
        self.key_file.write_bytes(self.key)

    def grpc(self, authority: bytes) -> grpc.ChannelCredentials:
        """Return what a gRPC client shows, which trusts an authority."""
        return grpc.ssl_channel_credentials(authority, self.key, self.certificate)

    def ssl(self, authority: bytes) -> ssl.SSLContext:
        """Return what an HTTP client shows, which trusts an authority."""
        context = ssl.create_default_context(cadata=authority.decode())
        context.load_cert_chain(self.cert_file, self.key_file)
        return context


class Authority:
    """Signs certificates, into files of a folder."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = self._builder(self._name, self._key)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(_SIGNS, critical=True)
        self.certificate = made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def issue(
        self, common_name: str, *names: str, addresses: tuple[str, ...] = (), uris: tuple[str, ...] = (), days: int = 1
    ) -> Identity:
        """Return a certificate with these alternative names (DNS), addresses and URIs, for so many days from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]), key, days)
        alternative: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternative += [x509.IPAddress(ip_address(address)) for address in addresses]
        alternative += [x509.UniformResourceIdentifier(uri) for uri in uris]
        if alternative:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternative), critical=False)
        return Identity(self._folder, common_name, builder.sign(self._key, hashes.SHA256()), key)

    def server(self) -> Identity:
        """Return a certificate for servers of this machine."""
        return self.issue("server", "localhost", addresses=("127.0.0.1", "::1"))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 1) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number())
        of, by = (x509.SubjectKeyIdentifier.from_public_key(each.public_key()) for each in (key, self._key))
        builder = builder.add_extension(of, critical=False)
        signer = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(by)
        builder = builder.add_extension(signer, critical=False)
        return builder.not_valid_before(now - 2 * _DAY).not_valid_after(now + days * _DAY)
