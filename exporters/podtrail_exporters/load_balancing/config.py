"""What a user can set of `load_balancing`, in the Collector's words (contrib's loadbalancingexporter)."""

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from podtrail.config.types import (
    MINUTE,
    SECOND,
    DeliverySettings,
    Model,
    NonNegativeDuration,
    PositiveDuration,
    QueueSettings,
    WarningPath,
    client_target,
    host_port,
)
from podtrail.pod_identity import most_bytes_of_keys
from podtrail.transport.client_settings import GrpcChannelSettings

DEFAULT_PORT = 4317
_HIGHEST_PORT = 65_535
_TRACE_BYTES = 70
_NO_EFFECT = "has no effect: what waits for a backend waits in the exporter's own sending_queue, where it may yet move"
_ONE_RESOLVER = "write one of static, dns and k8s"


def dialled(backend: str) -> str:
    """Return where a backend is reached: as it was resolved, with the port for OTLP where it has none.

    Raises:
        ValueError: there can be no such backend.
    """
    complete = backend
    if "://" not in backend:
        bracketed = f"[{backend}]" if backend.count(":") > 1 and not backend.startswith("[") else backend
        complete = bracketed if _has_port(bracketed) else f"{bracketed}:{DEFAULT_PORT}"
    client_target(complete)
    return complete


def _has_port(backend: str) -> bool:
    return ":" in backend and not backend.endswith("]")


class OtlpProtocol(GrpcChannelSettings):
    """How each backend is talked to: the settings of `otlp_grpc`, but for `endpoint`."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **GrpcChannelSettings.of_the_collector,
        "endpoint": "remove it: the resolver says where the backends are",
        "balancer_name": "remove it: each backend has a connection of its own",
    }

    @field_validator("sending_queue")
    @classmethod
    def _refuse_storage(cls, queue: QueueSettings) -> QueueSettings:
        if queue.storage is not None:
            raise ValueError(
                "storage can't be that of a backend: set it in the exporter's own sending_queue, beside protocol"
            )
        return queue

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        idle = self.sending_queue.model_fields_set - {"enabled", "num_consumers", "storage"}
        return [(("sending_queue", key), _NO_EFFECT) for key in sorted(idle)]


class BackendProtocol(Model):
    """The protocol to the backends: OTLP/gRPC."""

    otlp: OtlpProtocol = Field(
        default_factory=OtlpProtocol,
        description="How each backend is talked to: the keys of `otlp_grpc` without `endpoint`. Its `timeout` is that "
        "of one request, `sending_queue::num_consumers` how many may be under way to one backend, `retry_on_failure` "
        "how often one that does not answer is tried again.",
    )


class StaticResolver(Model):
    """Backends that are listed."""

    hostnames: tuple[str, ...] = Field(
        min_length=1, description="The backends, `host` or `host:port`; without a port 4317."
    )

    @field_validator("hostnames")
    @classmethod
    def _check_hostnames(cls, hostnames: tuple[str, ...]) -> tuple[str, ...]:
        for hostname in hostnames:
            dialled(hostname)
        return hostnames

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return what is legal but hardly meant."""
        first: dict[str, int] = {}
        return [
            (("hostnames", at), f"{name!r} stands here twice, which changes nothing")
            for at, name in enumerate(self.hostnames)
            if first.setdefault(name, at) != at
        ]


class DnsResolver(Model):
    """Backends at the addresses of a name, looked up again and again."""

    hostname: str = Field(min_length=1, description="The name whose addresses are the backends: a headless Service's.")
    port: str = Field("", description="The backends' port; without one 4317.")
    interval: NonNegativeDuration = Field(5 * SECOND, description="Look the name up this often; 0s: every 5s.")
    timeout: NonNegativeDuration = Field(SECOND, description="Longest time one look-up may take; 0s: 1s.")

    @field_validator("port", mode="before")
    @classmethod
    def _take_number(cls, port: object) -> object:
        return str(port) if isinstance(port, int) and not isinstance(port, bool) else port

    @field_validator("hostname")
    @classmethod
    def _check_hostname(cls, hostname: str) -> str:
        if ":" in hostname or "/" in hostname:
            raise ValueError(f"{hostname!r} is no name to look up: write the name alone, its port as port")
        return hostname

    @field_validator("port")
    @classmethod
    def _check_port(cls, port: str) -> str:
        if port:
            host_port(f"localhost:{port}")
        return port


class K8sResolver(Model):
    """Backends at the ready endpoints of a Service, by its EndpointSlices."""

    service: str = Field(
        min_length=1,
        description="The Service: `name.namespace`, or `name` in the namespace that podtrail runs in. Who asks needs "
        "get, list and watch on endpointslices (`discovery.k8s.io`) there.",
    )
    ports: tuple[int, ...] = Field((), description="Their ports, each a backend of its own; without any 4317.")
    timeout: PositiveDuration = Field(
        MINUTE,
        description="The start waits this long for the endpoints; then podtrail runs without, and goes on asking.",
    )
    return_hostnames: bool = Field(
        False, description="Go by the Pods' hostnames instead of addresses: of a StatefulSet behind a headless Service."
    )
    kubeconfig: str = Field(
        "", description="A kubeconfig's path; empty: $KUBECONFIG, else the Pod's ServiceAccount, else ~/.kube/config."
    )

    @field_validator("service")
    @classmethod
    def _check_service(cls, service: str) -> str:
        labels = service.removesuffix(".").split(".")
        if not all(labels) or "/" in service or ":" in service or (len(labels) > 2 and labels[2] != "svc"):
            raise ValueError(f"{service!r} is no Service: write name.namespace")
        return service

    @field_validator("ports")
    @classmethod
    def _check_ports(cls, ports: tuple[int, ...]) -> tuple[int, ...]:
        for port in ports:
            if not 0 < port <= _HIGHEST_PORT:
                raise ValueError(f"{port} is no port: write one from 1 to {_HIGHEST_PORT}")
        return ports

    @property
    def name_and_namespace(self) -> tuple[str, str]:
        """The Service's name and its namespace; "" for the one that podtrail runs in."""
        name, _, rest = self.service.partition(".")
        return name, rest.partition(".")[0]


class ResolverSettings(Model):
    """Where the backends are."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "aws_cloud_map": "use dns: Cloud Map answers DNS queries for the service as well",
    }

    static: StaticResolver | None = Field(None, description="Backends that are listed.")
    dns: DnsResolver | None = Field(None, description="Backends at the addresses of a name.")
    k8s: K8sResolver | None = Field(None, description="Backends at the ready endpoints of a Service of Kubernetes.")

    @model_validator(mode="after")
    def _check_one(self) -> Self:
        given = sorted(self.model_fields_set)
        if len(given) != 1:
            raise ValueError(f"names {' and '.join(given) or 'no resolver'}: {_ONE_RESOLVER}")
        return self


class ExporterQueue(QueueSettings):
    """The queue in front of the exporter."""

    num_consumers: int = Field(
        100,
        gt=0,
        description="Batches under way at once: more than to one backend, so that a slow one holds up no other.",
    )


class Config(DeliverySettings):
    """Sends each trace to one of several backends, always the same one."""

    lingers: ClassVar[float] = 0.25
    """What leaves together is parted among the backends, into as many requests."""

    protocol: BackendProtocol = Field(default_factory=BackendProtocol, description="How the backends are talked to.")
    resolver: ResolverSettings = Field(description="Where the backends are: one of `static`, `dns`, `k8s`.")
    routing_key: Literal["traceID", "service", "attributes", "pod"] = Field(
        "traceID",
        description="What goes together: spans of a trace (`traceID`), of a service (`service.name`), with the same "
        "`routing_attributes`, or about a `pod`: its attempts and what API server, kubelet and runtime did for it. "
        "Spans about no Pod go by their trace then.",
    )
    routing_attributes: tuple[str, ...] = Field(
        (),
        description="With `attributes`: names of attributes, looked for in resource, scope and span; `span.name` and "
        "`span.kind` are the span's own.",
    )
    grace: NonNegativeDuration = Field(
        MINUTE,
        description="When backends come and go, traces under way stay where they began for this long: longer than "
        "the backends wait before they decide. 0s: they follow the ring at once, as in the Collector.",
    )
    grace_traces: int = Field(
        1_000_000, gt=0, description="Traces remembered for that, about 70 bytes each; the oldest are forgotten early."
    )
    timeout: NonNegativeDuration = Field(
        0, description="Longest time one try may take for all backends together; 0s: that of the requests alone."
    )
    sending_queue: ExporterQueue = Field(
        default_factory=ExporterQueue,
        description="The queue in front of the exporter, of all backends: what one could not take moves to the next.",
    )

    def memory_bounds(self, budget: int) -> Mapping[str, int]:
        """Return the bytes of the queue, of traces under way, and of what is known of Pods."""
        by_pod = self.routing_key == "pod"
        return {
            **super().memory_bounds(budget),
            "grace_traces": self.grace_traces * _TRACE_BYTES if self.grace else 0,
            "routing_key": most_bytes_of_keys(budget) if by_pod else 0,
        }

    @model_validator(mode="after")
    def _check_attributes(self) -> Self:
        if self.routing_key == "attributes" and not self.routing_attributes:
            raise ValueError("routing_key: attributes needs routing_attributes, the names of attributes to go by")
        if self.routing_key != "attributes" and self.routing_attributes:
            raise ValueError("routing_attributes are for routing_key: attributes only")
        return self
