"""Runs the webhook: certificate, server, probes, metrics, and what happens at SIGTERM."""

import asyncio
import logging
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final, Protocol

from podtrail_extensions.health_check import Config as HealthCheckConfig
from podtrail_extensions.health_check import HealthCheck
from podtrail_kubernetes.rest_client import RestClient, user_agent

from podtrail.component import Context, Metrics
from podtrail.config.types import TlsServerSettings, host_port
from podtrail.service.logs import LoopErrors, configure_logs
from podtrail.service.process import ResidentMemory, allow_many_files, publish, settle_garbage_collector
from podtrail.service.telemetry import MetricsServer
from podtrail_webhook.files import CertificateFiles
from podtrail_webhook.mutation import AnnotationPolicy, mutate
from podtrail_webhook.places import resource_kind
from podtrail_webhook.review import AdmissionRequest, allow
from podtrail_webhook.self_signed_settings import SelfSignedSettings
from podtrail_webhook.server import PATH, WebhookServer
from podtrail_webhook.telemetry import WebhookTelemetry

GRACE_SECONDS: Final = 5.0
"""For requests under way when the webhook is told to end."""
_log = logging.getLogger("podtrail.webhook")


@dataclass(frozen=True)
class WebhookOptions:
    """What the command was told."""

    endpoint: str
    health_endpoint: str
    metrics_endpoint: str
    certificate: TlsServerSettings | SelfSignedSettings
    kubeconfig: Path | None
    """For `SelfSignedSettings`; None: the Pod's ServiceAccount."""
    look_interval: float
    """Seconds between two looks at the certificate."""
    policy: AnnotationPolicy


class Certificate(Protocol):
    """What the server shows, and where it comes from."""

    context: ssl.SSLContext

    async def obtain(self) -> None:
        """Returns when there is one to show."""
        ...

    async def keep(self, interval: float) -> None:
        """Sees to it that there is one; looks every so many seconds, for ever."""
        ...


class Webhook:
    """What answers, and counts."""

    def __init__(self, policy: AnnotationPolicy, telemetry: WebhookTelemetry) -> None:
        self._policy = policy
        self._telemetry = telemetry

    def answer(self, request: AdmissionRequest, traceparent: str | None, tracestate: str | None) -> bytes:
        """The AdmissionReview to answer with: always allowed, with or without a patch.

        Raises:
            RefusedReview: the object is not shaped as its kind is.
        """
        mutation = mutate(request, traceparent, tracestate, self._policy)
        self._telemetry.answered(resource_kind(request), mutation.result)
        return allow(request.uid, mutation.patch, mutation.warnings)


def run_until_signalled(options: WebhookOptions) -> None:
    """Runs until SIGTERM or SIGINT; a second one ends it at once.

    Raises:
        StartError: a port can't be had, or the certificate's files can't be used.
        RestConfigError: there is no way to the API server.
    """
    allow_many_files()
    configure_logs()
    asyncio.run(_run(options))


async def _run(options: WebhookOptions) -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(LoopErrors(_log))
    told = asyncio.Event()

    def tell(number: signal.Signals) -> None:
        _log.info("%s: stopping", number.name)
        told.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, tell, number)
    work, stopping = asyncio.create_task(_serve(options)), asyncio.create_task(told.wait())
    await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in (work, stopping):
        task.cancel()
    with suppress(asyncio.CancelledError):
        await work


async def _serve(options: WebhookOptions) -> None:
    metrics = Metrics()
    publish(metrics, ResidentMemory())
    telemetry = WebhookTelemetry(metrics)
    webhook = Webhook(options.policy, telemetry)
    log = logging.LoggerAdapter(_log, {"component": "health_check"})
    async with AsyncExitStack() as stack:
        address = host_port(options.metrics_endpoint)
        await stack.enter_async_context(MetricsServer(metrics, *address, setting="--metrics-endpoint"))
        health = HealthCheck(HealthCheckConfig(endpoint=options.health_endpoint), Context("health_check", log=log))
        await stack.enter_async_context(health)
        certificate = await stack.enter_async_context(_certificate(options, telemetry))
        await certificate.obtain()
        server = WebhookServer(webhook.answer, telemetry)
        listening = server.listening(options.endpoint, certificate.context, GRACE_SECONDS)
        port = await stack.enter_async_context(listening)
        settle_garbage_collector()
        stack.callback(health.not_ready)
        health.ready()
        _log.info("answering AdmissionReviews on https://%s:%d%s", options.endpoint.rpartition(":")[0], port, PATH)
        await certificate.keep(options.look_interval)


@asynccontextmanager
async def _certificate(options: WebhookOptions, telemetry: WebhookTelemetry) -> AsyncIterator[Certificate]:
    if isinstance(options.certificate, TlsServerSettings):
        yield CertificateFiles(options.certificate, telemetry)
        return
    from podtrail_webhook.self_signed import SelfSignedCertificate  # needs the extra

    agent = user_agent("podtrail-webhook", version("podtrail"))
    client = await RestClient.open(options.kubeconfig, agent=agent)
    try:
        yield SelfSignedCertificate(options.certificate, client, telemetry)
    finally:
        await client.close()
