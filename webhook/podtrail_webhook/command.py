"""`podtrail webhook`: serves admission requests until it is told to end.

Exit codes: 0 done; 1 it could not start; 2 usage.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from podtrail_kubernetes.errors import RestConfigError

from podtrail.component import StartError
from podtrail.config.types import SECOND, TlsServerSettings, host_port, parse_duration
from podtrail.transport.listen import in_use
from podtrail_webhook.files import with_options
from podtrail_webhook.mutation import AnnotationPolicy
from podtrail_webhook.running import WebhookOptions, run_until_signalled
from podtrail_webhook.self_signed_settings import SelfSignedSettings

_NAME = "podtrail-webhook"


def _endpoint(_context: click.Context, _option: click.Parameter, value: str) -> str:
    try:
        host_port(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


def _seconds(_context: click.Context, _option: click.Parameter, value: str) -> float:
    try:
        nanoseconds = parse_duration(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    if nanoseconds <= 0:
        raise click.BadParameter("must be above 0")
    return nanoseconds / SECOND


_OPTIONS = [
    click.option(
        "--endpoint", default=":9443", show_default=True, callback=_endpoint, help="Where to listen, host:port."
    ),
    click.option("--tls-cert-file", metavar="FILE", help="The certificate (PEM), followed by its intermediates."),
    click.option("--tls-private-key-file", metavar="FILE", help="Key of --tls-cert-file (PEM)."),
    click.option(
        "--tls-reload-interval",
        default="30s",
        show_default=True,
        callback=_seconds,
        help="How often to look whether the certificate was renewed, in its files or in the Secret.",
    ),
    click.option(
        "--self-signed",
        is_flag=True,
        help="Make the certificate, keep it in a Secret, write its authority into the MutatingWebhookConfiguration.",
    ),
    click.option("--namespace", default="podtrail", show_default=True, help="Of Service and Secret (--self-signed)."),
    click.option("--service", default=_NAME, show_default=True, help="API servers call this Service (--self-signed)."),
    click.option("--secret", default=_NAME, show_default=True, help="Holds certificate and key (--self-signed)."),
    click.option(
        "--webhook-configuration",
        default=_NAME,
        show_default=True,
        help="The MutatingWebhookConfiguration (--self-signed).",
    ),
    click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="How to reach the API server (--self-signed). Without: the Pod's ServiceAccount.",
    ),
    click.option(
        "--trusted-user",
        multiple=True,
        metavar="NAME",
        help="Only annotations of such users are kept; a ServiceAccount's is system:serviceaccount:NAMESPACE:NAME. "
        "Repeatable. Without, and without --trusted-group: those of everybody.",
    ),
    click.option("--trusted-group", multiple=True, metavar="NAME", help="The same for groups. Repeatable."),
    click.option(
        "--invalid-annotations",
        type=click.Choice(["remove", "keep"]),
        default="remove",
        show_default=True,
        help="What becomes of an annotation that is no traceparent.",
    ),
    click.option(
        "--health-endpoint",
        default="localhost:13133",
        show_default=True,
        callback=_endpoint,
        help="Where probes are answered.",
    ),
    click.option(
        "--metrics-endpoint",
        default="localhost:8888",
        show_default=True,
        callback=_endpoint,
        help="Where /metrics is served.",
    ),
]


def _with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command("webhook")
@_with_options
def command(**given: Any) -> None:
    """Write the trace context of requests into the Pods and Pod templates that they create.

    A mutating admission webhook: it serves AdmissionReview v1 at /mutate over HTTPS, with the certificate of
    --tls-cert-file, or with one of its own (--self-signed). It admits everything. SIGTERM lets requests under way end.
    """
    options = WebhookOptions(
        endpoint=given["endpoint"],
        health_endpoint=given["health_endpoint"],
        metrics_endpoint=given["metrics_endpoint"],
        certificate=_certificate(given),
        kubeconfig=given["kubeconfig"],
        look_interval=given["tls_reload_interval"],
        policy=AnnotationPolicy(
            trusted_users=frozenset(given["trusted_user"]),
            trusted_groups=frozenset(given["trusted_group"]),
            keep_invalid=given["invalid_annotations"] == "keep",
        ),
    )
    try:
        run_until_signalled(options)
    except StartError as error:
        if not (taken := in_use(error)):
            raise click.ClickException(with_options(error)) from None
        endpoints = {
            "--endpoint": options.endpoint,
            "--health-endpoint": options.health_endpoint,
            "--metrics-endpoint": options.metrics_endpoint,
        }
        ways = [option for option, endpoint in endpoints.items() if endpoint == taken.endpoint]
        raise click.ClickException(f"{taken}; choose another address: {' or '.join(ways)}") from None
    except RestConfigError as error:
        raise click.ClickException(str(error)) from None


def _certificate(given: dict[str, Any]) -> TlsServerSettings | SelfSignedSettings:
    """Raises UsageError where there is none, or two."""
    files = given["tls_cert_file"], given["tls_private_key_file"]
    if given["self_signed"]:
        if any(files):
            raise click.UsageError("--self-signed makes a certificate: leave --tls-cert-file away, or --self-signed")
        if find_spec("cryptography") is None:
            raise click.ClickException(
                "--self-signed needs podtrail's extra [webhook]: pip install '.[webhook]' in its checkout"
            )
        return SelfSignedSettings(given["namespace"], given["secret"], given["service"], given["webhook_configuration"])
    if not all(files):
        raise click.UsageError("--tls-cert-file and --tls-private-key-file are needed, or --self-signed")
    return TlsServerSettings(cert_file=files[0], key_file=files[1])
