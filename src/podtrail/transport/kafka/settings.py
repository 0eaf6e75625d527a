"""What a Kafka client can be told, with the keys and defaults of the Collector's `kafka` receiver and exporter."""

import re
from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from podtrail.config.types import (
    MILLISECOND,
    MINUTE,
    Model,
    PositiveDuration,
    Secret,
    TlsClientSettings,
    WarningPath,
    client_target,
)

SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_DEFAULT_PORT = 9092
_VERSION = re.compile(r"\d+\.\d+\.\d+(\.\d+)?")
_REFUSED_MECHANISMS = {
    "OAUTHBEARER": "takes its tokens from an extension that podtrail does not have",
    "AWS_MSK_IAM_OAUTHBEARER": "needs AWS's signatures, which librdkafka can't make",
}
_MECHANISMS = "use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"


class PlainTextAuthSettings(Model):
    """An older way to say `sasl::mechanism: PLAIN`."""

    username: str = Field(min_length=1, description="The user's name.")
    password: Secret = Field(min_length=1, description="The user's password.")


class SaslSettings(Model):
    """How to log in by SASL."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "aws_msk": f"remove it: AWS's IAM is not offered; {_MECHANISMS}",
        "oauthbearer_token_source": f"remove it: OAUTHBEARER is not offered; {_MECHANISMS}",
    }

    mechanism: SaslMechanism = Field(description="`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`.")
    username: str = Field(min_length=1, description="The user's name.")
    password: Secret = Field(min_length=1, description="The user's password.")
    version: Literal[0, 1] | None = Field(None, description="Accepted, without effect: librdkafka negotiates.")

    @field_validator("mechanism", mode="before")
    @classmethod
    def _say_why_not(cls, mechanism: object) -> object:
        if isinstance(mechanism, str) and (why := _REFUSED_MECHANISMS.get(mechanism)):
            raise ValueError(f"{mechanism} {why}: {_MECHANISMS}")
        return mechanism

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what librdkafka does otherwise."""
        return [(("version",), "has no effect: librdkafka negotiates it")] if self.version is not None else []


class KafkaAuthSettings(Model):
    """How to log in at the brokers."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "kerberos": "remove it: podtrail's librdkafka has no Kerberos; use sasl with PLAIN or SCRAM over tls",
    }

    sasl: SaslSettings | None = Field(None, description="By SASL; absent: without.")
    plain_text: PlainTextAuthSettings | None = Field(None, description="Older form of `sasl` with PLAIN.")
    tls: TlsClientSettings | None = Field(None, description="Older place of `tls`.")

    @model_validator(mode="after")
    def _check_once(self) -> Self:
        if self.sasl is not None and self.plain_text is not None:
            raise ValueError("sasl and plain_text are both given: keep sasl")
        return self

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return which keys have newer names."""
        found: list[tuple[WarningPath, str]] = []
        if self.plain_text is not None:
            found.append((("plain_text",), "is deprecated: use sasl with mechanism: PLAIN"))
        if self.tls is not None:
            found.append((("tls",), "is deprecated: move it out of auth"))
        return found


class MetadataRetrySettings(Model):
    """How to ask again for metadata."""

    max: int | None = Field(
        None, ge=0, description="Accepted, without effect: librdkafka asks until a timeout ends it."
    )
    backoff: PositiveDuration = Field(250 * MILLISECOND, description="Wait before a request that failed is repeated.")

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what librdkafka does otherwise."""
        return [(("max",), "has no effect: librdkafka asks until a timeout ends it")] if self.max is not None else []


class KafkaMetadataSettings(Model):
    """What is known of the cluster's topics and partitions."""

    full: bool | None = Field(None, description="Accepted, without effect: librdkafka asks for the topics it needs.")
    refresh_interval: PositiveDuration = Field(10 * MINUTE, description="How often to ask for topics and partitions.")
    retry: MetadataRetrySettings = Field(default_factory=MetadataRetrySettings, description="Requests that failed.")

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what librdkafka does otherwise."""
        return [(("full",), "has no effect: librdkafka asks for the topics it needs")] if self.full is not None else []


class KafkaClientSettings(Model):
    """A Kafka client, be it consumer or producer."""

    brokers: tuple[str, ...] = Field(
        (f"localhost:{_DEFAULT_PORT}",),
        min_length=1,
        description="Brokers to begin with, each host:port; a list, or one line with commas.",
    )
    protocol_version: str | None = Field(
        None, description="Accepted, without effect: librdkafka negotiates with each broker."
    )
    client_id: str = Field("otel-collector", description="What the brokers know this client by, in quotas and logs.")
    resolve_canonical_bootstrap_servers_only: bool = Field(
        False, description="Look each broker's addresses up and connect to the names that these have."
    )
    conn_idle_timeout: PositiveDuration = Field(
        9 * MINUTE, description="Close connections that were not used for this long."
    )
    use_leader_epoch: bool | None = Field(
        None, description="Accepted; librdkafka always uses leader epochs where brokers have them."
    )
    tls: TlsClientSettings | None = Field(None, description="TLS; absent: plain text.")
    auth: KafkaAuthSettings = Field(default_factory=KafkaAuthSettings, description="How to log in.")
    metadata: KafkaMetadataSettings = Field(
        default_factory=KafkaMetadataSettings, description="What is known of topics and partitions."
    )

    @field_validator("brokers", mode="before")
    @classmethod
    def _read_one_line(cls, brokers: object) -> object:
        """One line with commas is a list, as in the Collector: a variable of the environment may hold several."""
        return [broker.strip() for broker in brokers.split(",")] if isinstance(brokers, str) and brokers else brokers

    @field_validator("brokers")
    @classmethod
    def _check_brokers(cls, brokers: tuple[str, ...]) -> tuple[str, ...]:
        for broker in brokers:
            _check_broker(broker)
        return brokers

    @field_validator("protocol_version")
    @classmethod
    def _check_version(cls, version: str | None) -> str | None:
        if version is not None and not _VERSION.fullmatch(version):
            raise ValueError(f"{version!r} is no version of Kafka: write for example 2.1.0, or remove it")
        return version

    @field_validator("tls")
    @classmethod
    def _check_tls(cls, tls: TlsClientSettings | None) -> TlsClientSettings | None:
        return _honourable(tls)

    @field_validator("auth")
    @classmethod
    def _check_older_tls(cls, auth: KafkaAuthSettings) -> KafkaAuthSettings:
        _honourable(auth.tls)
        return auth

    @property
    def tls_in_use(self) -> TlsClientSettings | None:
        """What there is to know of TLS; None: plain text."""
        tls = self.tls if self.tls is not None else self.auth.tls
        return None if tls is None or tls.insecure else tls

    @property
    def sasl_in_use(self) -> SaslSettings | None:
        """Who logs in, and how; None: nobody."""
        old = self.auth.plain_text
        if old is None:
            return self.auth.sasl
        return SaslSettings(mechanism="PLAIN", username=old.username, password=old.password, version=None)

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what librdkafka does otherwise, and what is hardly meant."""
        found: list[tuple[WarningPath, str]] = []
        if self.protocol_version is not None:
            found.append((("protocol_version",), "has no effect: librdkafka negotiates with each broker"))
        if self.use_leader_epoch is False:
            found.append((("use_leader_epoch",), "has no effect: librdkafka always uses leader epochs"))
        if self.tls is not None and self.auth.tls is not None:
            found.append((("auth", "tls"), "has no effect beside tls"))
        sasl = self.sasl_in_use
        if sasl is not None and sasl.mechanism == "PLAIN" and self.tls_in_use is None:
            where = "sasl" if self.auth.sasl is not None else "plain_text"
            found.append((("auth", where), "sends the password in clear text: add tls, or use a SCRAM mechanism"))
        return found


def _check_broker(broker: str) -> None:
    """Refuse what librdkafka would misread.

    Raises:
        ValueError: with what would be right.
    """
    if "," in broker:
        raise ValueError(f"{broker!r} has a comma: write each broker as an item of the list")
    if "://" in broker:
        raise ValueError(f"{broker!r} has a scheme: write host:port, and tls or auth for how to connect")
    try:
        target = client_target(broker)
    except ValueError as error:
        said, _, _ = str(error).partition(": write")
        raise ValueError(f"{said}: write host:port, for example localhost:{_DEFAULT_PORT}") from None
    if not target.host or target.port == 0:
        raise ValueError(f"{broker!r} is no broker: write host:port, for example localhost:{_DEFAULT_PORT}")


def _honourable(tls: TlsClientSettings | None) -> TlsClientSettings | None:
    """Refuse what librdkafka has no setting for.

    Raises:
        ValueError: with what to do instead.
    """
    if tls is None:
        return None
    if tls.reload_interval:
        raise ValueError("reload_interval is not offered by a Kafka client: certificates are read at the start")
    if tls.server_name_override is not None:
        raise ValueError(
            "server_name_override can't be honoured by librdkafka (it has no such option): "
            "name the brokers as their certificates do"
        )
    if tls.min_version == "1.3":
        raise ValueError("min_version: librdkafka has no such option, and takes 1.2, too: let the brokers ask for 1.3")
    return tls
