"""kube-scheduler's flags, those that mean something here, under its names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from podtrail_scheduler.configuration.types import ClientConnectionConfiguration, LeaderElectionConfiguration
from podtrail_scheduler.objects.durations import MINUTE

from .flags import GoBool, GoDuration, Verbosity

_LEADER = LeaderElectionConfiguration()
_CLIENT = ClientConnectionConfiguration()
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - probes and Prometheus come from elsewhere
_IGNORED = "Ignored with --config."


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags as given, durations in nanoseconds; what is None was not."""

    config: str | None
    config_reload_period: int
    write_config_to: str | None
    master: str | None
    kubeconfig: str | None
    kube_api_qps: float | None
    kube_api_burst: int | None
    bind_address: str
    secure_port: int
    tls_cert_file: str
    tls_private_key_file: str
    leader_elect: bool | None
    leader_elect_lease_duration: int | None
    leader_elect_renew_deadline: int | None
    leader_elect_retry_period: int | None
    leader_elect_resource_lock: str | None
    leader_elect_resource_name: str | None
    leader_elect_resource_namespace: str | None
    pod_max_in_unschedulable_pods_duration: int
    feature_gates: tuple[str, ...]
    plugin: tuple[str, ...]
    v: int


OPTIONS = [
    click.option("--config", metavar="FILE", help="The configuration: a KubeSchedulerConfiguration."),
    click.option(
        "--config-reload-period",
        type=GoDuration(),
        default=0,
        show_default="0s",
        help="How often to look whether --config has changed, and take it up; 0: only at SIGHUP.",
    ),
    click.option(
        "--write-config-to", metavar="FILE", help="Write the configuration, every default filled in, and end."
    ),
    click.option("--master", metavar="URL", help="Address of the API server; goes before the kubeconfig's."),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        help="How to reach the API server, where --config names no kubeconfig. Neither: the Pod's ServiceAccount.",
    ),
    click.option(
        "--kube-api-qps", type=float, help=f"Requests a second to the API server. [{_CLIENT.qps:g}] {_IGNORED}"
    ),
    click.option("--kube-api-burst", type=int, help=f"Requests at once. [{_CLIENT.burst}] {_IGNORED}"),
    click.option(
        "--bind-address",
        default=EVERY_ADDRESS,
        show_default=True,
        help="Address to serve probes and metrics on.",
    ),
    click.option(
        "--secure-port",
        type=click.IntRange(0, 65535),
        default=10259,
        show_default=True,
        help="Port to serve on; 0 takes a free one.",
    ),
    click.option("--tls-cert-file", default="", metavar="FILE", help="Serve HTTPS with this; without: plain HTTP."),
    click.option("--tls-private-key-file", default="", metavar="FILE", help="Key of --tls-cert-file."),
    click.option(
        "--leader-elect",
        type=GoBool(),
        is_flag=False,
        flag_value="true",
        help="Take part in an election and schedule only when elected. [true]",
    ),
    click.option("--leader-elect-lease-duration", type=GoDuration(), help="Others wait this long. [15s]"),
    click.option("--leader-elect-renew-deadline", type=GoDuration(), help="The leader gives up after this. [10s]"),
    click.option("--leader-elect-retry-period", type=GoDuration(), help="Between attempts. [2s]"),
    click.option("--leader-elect-resource-lock", help=f"Kind of the lock. [{_LEADER.resource_lock}]"),
    click.option("--leader-elect-resource-name", help=f"Name of the Lease. [{_LEADER.resource_name}]"),
    click.option("--leader-elect-resource-namespace", help=f"Its namespace. [{_LEADER.resource_namespace}]"),
    click.option(
        "--pod-max-in-unschedulable-pods-duration",
        type=GoDuration(),
        default=5 * MINUTE,
        show_default="5m",
        help="After this a Pod that could not be scheduled is tried again, whatever happened.",
    ),
    click.option(
        "--feature-gates", multiple=True, metavar="NAME=true|false,...", help="Feature gates; see the documentation."
    ),
    click.option(
        "--plugin",
        multiple=True,
        metavar="NAME=MODULE:CLASS",
        help="A plugin that profiles may enable, besides the installed ones; a module of this folder is found, too.",
    ),
    click.option("-v", "--v", type=Verbosity(), default=0, help="How much is logged: klog's levels, 0 to 10. [0]"),
]


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with every flag, in the order of the list."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
