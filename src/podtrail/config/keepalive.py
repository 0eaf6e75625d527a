"""Keepalive of gRPC connections, with the keys and defaults of the Collector's `configgrpc`."""

from pydantic import Field

from podtrail.config.duration import HOUR, MINUTE, SECOND, NonNegativeDuration
from podtrail.config.model import Model


class KeepaliveSettings(Model):
    """Keepalive of a client (`keepalive:` of a gRPC exporter)."""

    time: NonNegativeDuration = Field(10 * SECOND, description="Ping the server after this long without activity.")
    timeout: NonNegativeDuration = Field(
        10 * SECOND, description="Close the connection when a ping stays unanswered this long."
    )
    permit_without_stream: bool = Field(False, description="Ping even when no request is under way.")


class ServerParameters(Model):
    """What a server does to its connections."""

    max_connection_idle: NonNegativeDuration = Field(0, description="Close a connection idle this long; 0s: never.")
    max_connection_age: NonNegativeDuration = Field(0, description="Close a connection this old; 0s: never.")
    max_connection_age_grace: NonNegativeDuration = Field(
        0, description="Time for its requests to end then; 0s: unlimited."
    )
    time: NonNegativeDuration = Field(2 * HOUR, description="Ping a client after this long without activity.")
    timeout: NonNegativeDuration = Field(
        20 * SECOND, description="Close the connection when a ping stays unanswered this long."
    )


class EnforcementPolicy(Model):
    """What a server puts up with from its clients' pings."""

    min_time: NonNegativeDuration = Field(5 * MINUTE, description="Shortest time between two pings of a client.")
    permit_without_stream: bool = Field(False, description="Allow pings when no request is under way.")


class KeepaliveServerSettings(Model):
    """Keepalive of a server (`keepalive:` of a gRPC receiver)."""

    server_parameters: ServerParameters = Field(default_factory=ServerParameters, description="What the server does.")
    enforcement_policy: EnforcementPolicy = Field(default_factory=EnforcementPolicy, description="What clients may do.")
