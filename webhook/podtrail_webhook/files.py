"""A certificate from files that somebody renews, such as cert-manager: taken up while requests are served."""

import asyncio
import logging
import ssl

from podtrail.component import StartError
from podtrail.config.types import TlsServerSettings
from podtrail.transport.tls_server import ServerPems, load_certificate, read_pems, ssl_context
from podtrail_webhook.telemetry import WebhookTelemetry

_log = logging.getLogger("podtrail.webhook")
_OPTIONS = {"tls::cert_file": "--tls-cert-file", "tls::key_file": "--tls-private-key-file"}


def with_options(error: StartError) -> str:
    """Return the text of an error with the command's options for the keys of a configuration."""
    text = str(error)
    return next((text.replace(key, option, 1) for key, option in _OPTIONS.items() if key in text), text)


class CertificateFiles:
    """Looks at certificate and key again and again."""

    def __init__(self, settings: TlsServerSettings, telemetry: WebhookTelemetry) -> None:
        """Read them for the first time.

        Raises:
            StartError: they can't be used.
        """
        self._settings = settings
        self._telemetry = telemetry
        self.context: ssl.SSLContext = ssl_context(settings)
        self._loaded: ServerPems = read_pems(settings)
        telemetry.certificate("loaded")

    async def obtain(self) -> None:
        """Returns at once: the files were read before."""

    async def keep(self, interval: float) -> None:
        """Takes up what is new, for connections from then on; for ever.

        What can't be used, such as a file that is just being written, is told and tried again; the old one serves on.

        Args:
            interval: Seconds between two looks.
        """
        while True:
            await asyncio.sleep(interval)
            try:
                found = read_pems(self._settings)
                if found == self._loaded:
                    continue
                load_certificate(self.context, found)
            except StartError as error:
                self._telemetry.certificate("failed")
                _log.warning("the certificate is kept as it was: %s", with_options(error))
                continue
            self._loaded = found
            self._telemetry.certificate("loaded")
            _log.info("took up the certificate in %s", self._settings.cert_file)
