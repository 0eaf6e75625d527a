"""`--self-signed`: certificate and key in a Secret that all replicas share, their authority in the configuration.

Each replica looks at the Secret: the first that finds none that is of use makes one, under the Secret's
resourceVersion, so that of several one succeeds and the others read what it wrote. A new certificate is shown only
after its authority stands in the MutatingWebhookConfiguration, and the former authority stays there beside it: no call
fails in between.
"""

import asyncio
import base64
import binascii
import logging
import random
import ssl
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from podtrail_kubernetes.errors import RequestFailed, StatusError
from podtrail_kubernetes.rest_client import STRATEGIC_MERGE_PATCH, RestClient

from podtrail.component import StartError
from podtrail.transport.tls_server import ServerPems, load_certificate
from podtrail_webhook.certificates import SelfSigned, make_certificate, utc_now, why_renew
from podtrail_webhook.self_signed_settings import SelfSignedSettings
from podtrail_webhook.telemetry import WebhookTelemetry

_KEYS: Final = ("tls.crt", "tls.key", "ca.crt")
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_ATTEMPTS: Final = 5
"""How often a write that somebody else was faster with is tried again at once."""
_FIRST_BACK_OFF: Final = 0.5
_LONGEST_BACK_OFF: Final = 30.0
_PROPAGATION: Final = 2.0
"""Seconds in which all API servers have seen a changed configuration."""
_log = logging.getLogger("podtrail.webhook")


class SelfSignedCertificate:
    """Keeps the Secret, the configuration and the server's certificate in step."""

    def __init__(
        self,
        settings: SelfSignedSettings,
        client: RestClient,
        telemetry: WebhookTelemetry,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._settings = settings
        self._client = client
        self._telemetry = telemetry
        self._now = now
        self._shown: SelfSigned | None = None
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2

    async def obtain(self) -> None:
        """Returns when there is a certificate to show; tries until then, longer and longer apart."""
        failures = 0
        while not await self._tried() and self._shown is None:
            await _back_off(failures)
            failures += 1

    async def keep(self, interval: float) -> None:
        """Renews in time, takes up what another replica made, mends what somebody took away; for ever.

        What fails is tried again sooner: the webhook's configuration may come after the webhook.

        Args:
            interval: Seconds between two looks, to which up to half is added so that replicas don't come together.
        """
        while True:
            failures = 0
            while not await self._tried():
                await _back_off(failures)
                failures += 1
            await asyncio.sleep(interval * (1 + random.random() / 2))  # noqa: S311 - no secret

    async def _tried(self) -> bool:
        try:
            await self.look()
        except (RequestFailed, StartError) as failure:
            self._telemetry.certificate("failed")
            _log.warning("the certificate could not be looked after: %s", failure)
            return False
        return True

    async def look(self) -> None:
        """Makes the certificate if it has to be made, and sees that authority and server have it.

        Raises:
            RequestFailed: the API server refuses or can't be reached.
            StartError: the certificate is of no use.
        """
        held = await self._held()
        if self._shown is None:
            self._take_up(held)
        published = await self._publish(held.authorities)
        if held != self._shown:
            if published:
                await asyncio.sleep(_PROPAGATION)
            self._take_up(held)

    def _take_up(self, held: SelfSigned) -> None:
        load_certificate(self.context, ServerPems(held.certificate, held.key, None))
        self._shown = held
        self._telemetry.certificate("loaded")
        _log.info("took up the certificate in the Secret %s", self._secret_name)

    async def _held(self) -> SelfSigned:
        """What the Secret holds, made anew where that is of no use."""
        for remaining in range(_ATTEMPTS - 1, -1, -1):
            secret = await self._read_secret()
            held = _held_by(secret)
            why = "there is none" if held is None else why_renew(held, self._settings.names, self._now())
            if held is not None and not why:
                return held
            made = make_certificate(self._settings.names, self._now(), held.authorities if held else b"")
            try:
                await self._write_secret(secret, made)
            except StatusError as refused:
                if refused.code != 409 or not remaining:
                    raise
                continue  # another replica was faster: what it made is as good
            _log.info("made a certificate into the Secret %s: %s", self._secret_name, why)
            return made
        raise AssertionError("the last attempt returns or raises")

    async def _read_secret(self) -> Mapping[str, Any] | None:
        try:
            return await self._client.request("GET", f"{self._secrets}/{self._settings.secret}")
        except StatusError as refused:
            if refused.code == 404:
                return None
            raise

    async def _write_secret(self, secret: Mapping[str, Any] | None, made: SelfSigned) -> None:
        data = {key: base64.b64encode(pem).decode() for key, pem in zip(_KEYS, made, strict=True)}
        if secret is None:
            metadata = {"name": self._settings.secret, "namespace": self._settings.namespace}
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}
            await self._client.request("POST", self._secrets, body)
            return
        body = {**secret, "data": {**(secret.get("data") or {}), **data}}
        await self._client.request("PUT", f"{self._secrets}/{self._settings.secret}", body)

    async def _publish(self, authorities: bytes) -> bool:
        """Has API servers trust these authorities, in all webhooks of the configuration; False where they do."""
        path = f"{_CONFIGURATIONS}/{self._settings.configuration}"
        configuration = await self._client.request("GET", path)
        bundle = base64.b64encode(authorities).decode()
        stale = [
            webhook["name"]
            for webhook in configuration.get("webhooks") or []
            if webhook.get("clientConfig", {}).get("caBundle") != bundle
        ]
        if stale:
            patch = {"webhooks": [{"name": name, "clientConfig": {"caBundle": bundle}} for name in stale]}
            await self._client.request("PATCH", path, patch, content_type=STRATEGIC_MERGE_PATCH)
            _log.info("wrote caBundle into the MutatingWebhookConfiguration %s", self._settings.configuration)
        return bool(stale)

    @property
    def _secrets(self) -> str:
        return f"/api/v1/namespaces/{self._settings.namespace}/secrets"

    @property
    def _secret_name(self) -> str:
        return f"{self._settings.namespace}/{self._settings.secret}"


async def _back_off(failures: int) -> None:
    longest = min(_FIRST_BACK_OFF * 2.0**failures, _LONGEST_BACK_OFF)
    await asyncio.sleep(longest * (1 + random.random()))  # noqa: S311 - no secret


def _held_by(secret: Mapping[str, Any] | None) -> SelfSigned | None:
    """What a Secret holds; None where a part is missing or no base64."""
    data = (secret or {}).get("data") or {}
    try:
        parts = [base64.b64decode(data.get(key) or "", validate=True) for key in _KEYS]
    except binascii.Error:
        return None
    return SelfSigned(*parts) if all(parts) else None
