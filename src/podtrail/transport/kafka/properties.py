"""The properties that librdkafka is given for the settings of a client."""

import logging
from typing import Final

from podtrail.config.types import MILLISECOND
from podtrail.transport.kafka.settings import KafkaClientSettings
from podtrail.transport.tls_client import read_pems

Properties = dict[str, str | int | float | bool]
"""By librdkafka's names (CONFIGURATION.md of librdkafka)."""

UNHEARD: Final = logging.getLogger("podtrail.transport.kafka.librdkafka")
"""Takes librdkafka's own lines (its property `logger`), which say again what its callbacks tell."""
UNHEARD.propagate = False
UNHEARD.addHandler(logging.NullHandler())

_LONGEST_AGE: Final = 3
"""For how many refreshes what is known of topics holds, as librdkafka has it by default."""


def client_properties(settings: KafkaClientSettings) -> Properties:
    """Return what consumers and producers have in common.

    Raises:
        StartError: a file that `tls` names can't be read.
    """
    sasl, tls = settings.sasl_in_use, settings.tls_in_use
    refresh = settings.metadata.refresh_interval // MILLISECOND
    found: Properties = {
        "bootstrap.servers": ",".join(settings.brokers),
        "client.id": settings.client_id,
        "connections.max.idle.ms": settings.conn_idle_timeout // MILLISECOND,
        "topic.metadata.refresh.interval.ms": refresh,
        "metadata.max.age.ms": _LONGEST_AGE * refresh,
        "retry.backoff.ms": max(1, settings.metadata.retry.backoff // MILLISECOND),
        "security.protocol": ("SASL_" if sasl else "") + ("SSL" if tls else "PLAINTEXT"),
    }
    if settings.resolve_canonical_bootstrap_servers_only:
        found["client.dns.lookup"] = "resolve_canonical_bootstrap_servers_only"
    if sasl is not None:
        found["sasl.mechanism"] = sasl.mechanism
        found["sasl.username"] = sasl.username
        found["sasl.password"] = sasl.password.get_secret_value()
    if tls is not None:
        pems = read_pems(tls)
        named = {"ssl.ca.pem": pems.authorities, "ssl.certificate.pem": pems.certificate, "ssl.key.pem": pems.key}
        found |= {name: pem.decode() for name, pem in named.items() if pem is not None}
        if tls.insecure_skip_verify:
            found["enable.ssl.certificate.verification"] = False
    return found
