"""TLS to an extender, as client-go sets it up for one: without an authority of its own, no certificate is checked."""

import ssl
import tempfile
from pathlib import Path

from podtrail_scheduler.configuration.types import Extender, ExtenderTLSConfig


def tls_of(extender: Extender) -> ssl.SSLContext:
    """The context for an extender's connections.

    Raises:
        OSError: a file can't be read.
        ssl.SSLError: a file holds no certificate or key.
    """
    given = extender.tls_config or ExtenderTLSConfig()
    trusted = given.ca_data.decode("ascii") if given.ca_data else None
    context = ssl.create_default_context(cafile=given.ca_file or None if not trusted else None, cadata=trusted)
    unchecked = extender.enable_https and not (given.ca_data or given.ca_file)
    if given.insecure or unchecked:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if given.cert_data or given.cert_file:
        _load_certificate(context, given)
    return context


def _load_certificate(context: ssl.SSLContext, given: ExtenderTLSConfig) -> None:
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = given.cert_file, given.key_file
        if given.cert_data:
            certificate = str(Path(folder) / "tls.crt")
            Path(certificate).write_bytes(given.cert_data)
        if given.key_data:
            key = str(Path(folder) / "tls.key")
            Path(key).touch(0o600)
            Path(key).write_bytes(given.key_data)
        context.load_cert_chain(certificate, key or None)
