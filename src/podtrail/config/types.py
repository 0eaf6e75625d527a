"""The types that component configurations are made of."""

from podtrail.config.delivery import DeliverySettings, QueueSettings, RetrySettings, Sizer
from podtrail.config.duration import (
    HOUR,
    MICROSECOND,
    MILLISECOND,
    MINUTE,
    SECOND,
    Duration,
    NonNegativeDuration,
    PositiveDuration,
    format_duration,
    parse_duration,
)
from podtrail.config.endpoint import ClientEndpoint, Endpoint, Target, client_target, host_port, is_loopback
from podtrail.config.keepalive import EnforcementPolicy, KeepaliveServerSettings, KeepaliveSettings, ServerParameters
from podtrail.config.model import Headers, Model, Secret, WarningPath
from podtrail.config.tls import TlsClientSettings, TlsServerSettings, TlsVersion

__all__ = [
    "HOUR",
    "MICROSECOND",
    "MILLISECOND",
    "MINUTE",
    "SECOND",
    "ClientEndpoint",
    "DeliverySettings",
    "Duration",
    "Endpoint",
    "EnforcementPolicy",
    "Headers",
    "KeepaliveServerSettings",
    "KeepaliveSettings",
    "Model",
    "NonNegativeDuration",
    "PositiveDuration",
    "QueueSettings",
    "RetrySettings",
    "Secret",
    "ServerParameters",
    "Sizer",
    "Target",
    "TlsClientSettings",
    "TlsServerSettings",
    "TlsVersion",
    "WarningPath",
    "client_target",
    "format_duration",
    "host_port",
    "is_loopback",
    "parse_duration",
]
