# ruff: noqa: RUF009 - `described` makes the field that a dataclass wants there
"""KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1): upstream's fields, each default where it is a constant.

`decoding` fills these from a document, `defaults` completes what depends on other fields or on feature gates.
Durations are nanoseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from podtrail_scheduler.objects.durations import SECOND

from .args import PluginArgs
from .wire import RAW, Base64, Float32, Int32, Int64, Nanoseconds, described

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"
DEFAULT_SCHEDULER_NAME = "default-scheduler"

Args = Annotated[PluginArgs | Mapping[str, Any], RAW]


@dataclass(frozen=True, slots=True)
class Plugin:
    """A plugin in a set."""

    name: str = described("", "Name of the plugin, `*` in `disabled` for all default ones.")
    weight: Int32 = described(0, "What its scores count; 0 is 1. Only for plugins that score.")


@dataclass(frozen=True, slots=True)
class PluginSet:
    """What is enabled and disabled at one extension point, on top of the default plugins."""

    enabled: tuple[Plugin, ...] = described((), "Called after the default plugins, in this order.")
    disabled: tuple[Plugin, ...] = described((), "Default plugins that are not called.")


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugin sets of a profile."""

    pre_enqueue: PluginSet = described(PluginSet(), "Before a Pod enters the active queue.")
    queue_sort: PluginSet = described(PluginSet(), "Orders the active queue; exactly one, the same in all profiles.")
    pre_filter: PluginSet = described(PluginSet(), "Once an attempt, before nodes are filtered.")
    filter: PluginSet = described(PluginSet(), "Rules out nodes.")
    post_filter: PluginSet = described(PluginSet(), "When no node is left.")
    pre_score: PluginSet = described(PluginSet(), "Once an attempt, before nodes are scored.")
    score: PluginSet = described(PluginSet(), "Ranks the nodes that are left.")
    reserve: PluginSet = described(PluginSet(), "Claims resources on the chosen node, and gives them back.")
    permit: PluginSet = described(PluginSet(), "Lets a Pod bind, refuses it or has it wait.")
    pre_bind: PluginSet = described(PluginSet(), "What must be done before binding.")
    bind: PluginSet = described(PluginSet(), "Binds; the first that does not skip.")
    post_bind: PluginSet = described(PluginSet(), "After binding.")
    multi_point: PluginSet = described(PluginSet(), "At every extension point that a plugin serves.")
    placement_generate: PluginSet = described(PluginSet(), "Pod groups; read and written, not served.")
    placement_score: PluginSet = described(PluginSet(), "Pod groups; read and written, not served.")
    pod_group_post_filter: PluginSet = described(PluginSet(), "Pod groups; read and written, not served.")


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """The args of one plugin: typed for a default plugin, the document's mapping for any other."""

    name: str = described("", "Name of the plugin.")
    args: Args | None = described(None, "What the plugin is made with; every plugin's own fields.")


@dataclass(frozen=True, slots=True)
class KubeSchedulerProfile:
    """How Pods of one `spec.schedulerName` are scheduled."""

    scheduler_name: str | None = described(
        None, "Pods with this `spec.schedulerName`; `default-scheduler` when there is one profile only."
    )
    percentage_of_nodes_to_score: Int32 | None = described(None, "Overrides the value for all profiles; 0 to 100.")
    plugins: Plugins = described(Plugins(), "What is enabled and disabled.")
    plugin_config: tuple[PluginConfig, ...] = described((), "Args of plugins.")


@dataclass(frozen=True, slots=True)
class ExtenderTLSConfig:
    """TLS to an extender; the `…Data` fields (PEM in base64) go before the files."""

    insecure: bool = described(False, "Takes any server certificate.")
    server_name: str = described("", "Name to send and to check; empty is the URL's host.")
    cert_file: str = described("", "Client certificate.")
    key_file: str = described("", "Key of the client certificate.")
    ca_file: str = described("", "Certificates that are trusted.", key="caFile")
    cert_data: Base64 = described(b"", "As `certFile`.")
    key_data: Base64 = described(b"", "As `keyFile`.")
    ca_data: Base64 = described(b"", "As `caFile`.", key="caData")


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource:
    """An extended resource that an extender looks after."""

    name: str = described("", "Name of the resource.")
    ignored_by_scheduler: bool = described(False, "NodeResourcesFit does not check it.")


@dataclass(frozen=True, slots=True)
class Extender:
    """An HTTP service that filters, ranks, preempts or binds for the scheduler. An empty verb is not supported."""

    url_prefix: str = described("", "URL in front of the verbs.")
    filter_verb: str = described("", "Filters nodes after the plugins.")
    preempt_verb: str = described("", "Filters the candidates of preemption.")
    prioritize_verb: str = described("", "Scores nodes, 0 to 10 each.")
    weight: Int64 = described(0, "What its scores count; positive with `prioritizeVerb`.")
    bind_verb: str = described("", "Binds in place of the plugins; one extender only.")
    enable_https: bool = described(False, "Speaks TLS.", key="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = described(None, "Certificates and keys.")
    http_timeout: Nanoseconds = described(0, "Longest a call may take; 0 is 5s.")
    node_cache_capable: bool = described(False, "Is sent names of nodes, not the nodes.")
    managed_resources: tuple[ExtenderManagedResource, ...] = described(
        (), "It is only asked about Pods that request one of these; empty: about all."
    )
    ignorable: bool = described(False, "Its failures do not fail the Pod.")


@dataclass(frozen=True, slots=True)
class LeaderElectionConfiguration:
    """How one of several running schedulers is elected."""

    leader_elect: bool = described(True, "Takes part in an election and schedules only when elected.")
    lease_duration: Nanoseconds = described(15 * SECOND, "Others wait this long after the last renewal.")
    renew_deadline: Nanoseconds = described(10 * SECOND, "The leader gives up when it could not renew this long.")
    retry_period: Nanoseconds = described(2 * SECOND, "Between attempts.")
    resource_lock: str = described("leases", "Kind of the lock; only `leases`.")
    resource_name: str = described("kube-scheduler", "Name of the Lease.")
    resource_namespace: str = described("kube-system", "Namespace of the Lease.")


@dataclass(frozen=True, slots=True)
class ClientConnectionConfiguration:
    """The connection to the API server."""

    kubeconfig: str = described("", "Path of a kubeconfig; empty: the Pod's ServiceAccount.")
    accept_content_types: str = described("", "Read and written; requests are always JSON.")
    content_type: str = described("application/vnd.kubernetes.protobuf", "Read and written; requests are always JSON.")
    qps: Float32 = described(50.0, "Requests a second.")
    burst: Int32 = described(100, "Requests at once.")


@dataclass(frozen=True, slots=True)
class Tracing:
    """Where spans go and how many are sampled (component-base's TracingConfiguration, KEP-5927)."""

    endpoint: str | None = described(None, "OTLP/gRPC address, without TLS; unset: localhost:4317.")
    sampling_rate_per_million: Int32 | None = described(
        None, "How many of a million attempts are sampled; unset and 0: a connection, and none."
    )


@dataclass(frozen=True, slots=True)
class KubeSchedulerConfiguration:
    """The whole file."""

    parallelism: Int32 = described(16, "Read and written; this scheduler filters and scores on one thread.")
    leader_election: LeaderElectionConfiguration = described(LeaderElectionConfiguration(), "Leader election.")
    client_connection: ClientConnectionConfiguration = described(ClientConnectionConfiguration(), "API server.")
    enable_profiling: bool = described(True, "Read and written; there is no profiling endpoint.")
    enable_contention_profiling: bool | None = described(None, "Read and written; as `enableProfiling`.")
    percentage_of_nodes_to_score: Int32 = described(
        0, "Stop looking for feasible nodes at this percentage; 0 picks one by the cluster's size."
    )
    pod_initial_backoff_seconds: Int64 = described(1, "First back-off of a Pod that could not be scheduled.")
    pod_max_backoff_seconds: Int64 = described(10, "Longest back-off.")
    profiles: tuple[KubeSchedulerProfile, ...] = described((), "Profiles; empty is one, `default-scheduler`.")
    extenders: tuple[Extender, ...] = described((), "HTTP extenders, for all profiles.")
    delay_cache_until_active: bool = described(False, "With leader election: fill the caches only when elected.")
    tracing: Tracing | None = described(None, "Tracing (KEP-5927); needs the feature gate `SchedulerTracing`.")
