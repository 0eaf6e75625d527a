"""TLS settings, with the keys of the Collector's `configtls`."""

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from podtrail.config.duration import NonNegativeDuration
from podtrail.config.model import Model, Secret

TlsVersion = Literal["1.2", "1.3"]
_EMPTY_IS_ABSENT: Final = frozenset(
    ("ca_file", "ca_pem", "cert_file", "cert_pem", "key_file", "key_pem", "min_version", "client_ca_file")
)
"""Keys of which the Collector takes an empty text for none, as a variable that is not set leaves one."""


class TlsSettings(Model):
    """What server and client have in common."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("cipher_suites", "curve_preferences", "include_insecure_cipher_suites", "max_version"),
            "remove it: OpenSSL's secure choices hold",
        ),
        "include_system_ca_certs_pool": "give ca_file one file with all authorities, or leave ca_file out",
        "tpm": "give the key as key_file",
    }

    ca_file: str | None = Field(
        None,
        description="Path of the authorities (PEM) that sign the other side's certificate; absent: the system's.",
    )
    ca_pem: str | None = Field(None, description="The same, the PEM text itself.")
    cert_file: str | None = Field(None, description="Path of the own certificate chain (PEM).")
    cert_pem: str | None = Field(None, description="The same, the PEM text itself.")
    key_file: str | None = Field(None, description="Path of the own private key (PEM).")
    key_pem: Secret | None = Field(None, description="The same, the PEM text itself.")
    min_version: TlsVersion | None = Field(
        None, description='Oldest TLS version to accept, "1.2" or "1.3"; 1.2 when absent.'
    )
    reload_interval: NonNegativeDuration = Field(
        0, description="How often to read certificate and key anew; 0s: never."
    )

    @model_validator(mode="before")
    @classmethod
    def _empty_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {key: None if value == "" and key in _EMPTY_IS_ABSENT else value for key, value in data.items()}

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        for name in ("ca", "cert", "key"):
            if getattr(self, f"{name}_file") is not None and getattr(self, f"{name}_pem") is not None:
                raise ValueError(f"{name}_file and {name}_pem are both given: keep one")
        if self.has_certificate != (self.key_file is not None or self.key_pem is not None):
            missing = "key_file or key_pem" if self.has_certificate else "cert_file or cert_pem"
            raise ValueError(f"certificate and key need each other: {missing} is missing")
        return self

    @property
    def has_certificate(self) -> bool:
        """Tell whether an own certificate is configured."""
        return self.cert_file is not None or self.cert_pem is not None


class TlsClientSettings(TlsSettings):
    """TLS of a client (`tls:` of an exporter)."""

    insecure: bool = Field(False, description="Connect without TLS.")
    insecure_skip_verify: bool = Field(False, description="Use TLS without verifying the server's certificate.")
    server_name_override: str | None = Field(
        None, description="Name to expect in the server's certificate instead of the endpoint's."
    )


class TlsServerSettings(TlsSettings):
    """TLS of a server (`tls:` of a receiver); `cert` and `key` are required."""

    client_ca_file: str | None = Field(
        None,
        description="Path of the authorities (PEM) that sign clients' certificates; absent: clients need none.",
    )
    client_ca_file_reload: bool = Field(
        False, description="Read `client_ca_file` anew when it changes; otherwise with the rest, at `reload_interval`."
    )
    client_allowed_names: tuple[str, ...] = Field(
        (),
        description="Names that may send: one of a certificate's alternative names (DNS, URI, IP, email), or its "
        "common name where it has none, must be among these; `*` stands for anything. Empty: whoever has one may.",
    )

    @model_validator(mode="after")
    def _check_clients(self) -> Self:
        for key in ("client_ca_file_reload", "client_allowed_names"):
            if getattr(self, key) and self.client_ca_file is None:
                raise ValueError(f"{key} needs client_ca_file: without it no client shows a certificate")
        if not all(name.strip("*") for name in self.client_allowed_names):
            raise ValueError("client_allowed_names has a name that allows everybody; leave it out for that")
        return self

    @model_validator(mode="after")
    def _check_certificate(self) -> Self:
        if not self.has_certificate:
            raise ValueError("a server needs a certificate: add cert_file and key_file (or cert_pem and key_pem)")
        return self
