"""Makes a `Pod` of the JSON of a v1 Pod."""

from collections.abc import Mapping

from podtrail_scheduler.objects.node import Toleration
from podtrail_scheduler.objects.pod import (
    Affinity,
    ContainerRequests,
    ExtendedClaim,
    HostPort,
    Pod,
    PodResourceClaim,
    RequestMapping,
    Volume,
)
from podtrail_scheduler.objects.quantities import amount, may_be_devices

from .affinity import affinity, spread_constraint
from .owners import controller
from .reading import Json, flag, inner, items, labels, moment, part, text, whole
from .resources import ContainerDemand, container, demand

_NO_AFFINITY = Affinity()
_NO_FEATURES: frozenset[str] = frozenset()
_DEFAULT_GRACE = 30
# Sources that no plugin looks at.
_OF_NO_CONCERN = frozenset(
    ("configMap", "secret", "emptyDir", "projected", "downwardAPI", "hostPath", "nfs", "gitRepo")
)


def decode_pod(pod: Json) -> Pod:
    """A Pod of the API's JSON.

    Raises:
        ValueError: with the path of what scheduling needs and cannot read.
    """
    metadata = part(pod, "metadata")
    spec = part(pod, "spec")
    status = part(pod, "status")
    containers = items(spec, "containers", container, "spec")
    init = items(spec, "initContainers", container, "spec") if "initContainers" in spec else ()
    wanted = demand(spec, status, containers, init)
    volumes = items(spec, "volumes", _volume, "spec")
    return Pod(
        name=text(metadata, "name", "metadata"),
        namespace=text(metadata, "namespace", "metadata", "default"),
        uid=text(metadata, "uid", "metadata"),
        labels=labels(metadata, "labels", "metadata"),
        annotations=labels(metadata, "annotations", "metadata"),
        creation_timestamp=moment(metadata, "creationTimestamp", "metadata") or 0,
        deletion_timestamp=moment(metadata, "deletionTimestamp", "metadata"),
        requests=wanted.requests,
        node_selector=labels(spec, "nodeSelector", "spec"),
        tolerations=items(spec, "tolerations", _toleration, "spec"),
        affinity=inner(spec, "affinity", affinity, "spec") or _NO_AFFINITY,
        host_ports=_host_ports(spec),
        images=_images(spec),
        priority=whole(spec, "priority", "spec") or 0,
        preemption_policy=text(spec, "preemptionPolicy", "spec", "PreemptLowerPriority"),
        scheduling_gates=items(spec, "schedulingGates", _name, "spec") if "schedulingGates" in spec else (),
        node_name=text(spec, "nodeName", "spec"),
        nominated_node_name=text(status, "nominatedNodeName", "status"),
        scheduler_name=text(spec, "schedulerName", "spec", "default-scheduler"),
        resource_version=text(metadata, "resourceVersion", "metadata"),
        owner=controller(metadata),
        nonzero_requests=wanted.nonzero,
        topology_spread=items(spec, "topologySpreadConstraints", spread_constraint, "spec"),
        volumes=tuple(each for each in volumes if each.claim_name or each.ephemeral or each.kind),
        resource_claims=items(spec, "resourceClaims", _claim, "spec"),
        claim_statuses=dict(items(status, "resourceClaimStatuses", _claim_status, "status")),
        phase=text(status, "phase", "status", "Pending"),
        start_time=moment(status, "startTime", "status") or 0,
        termination_grace_period=_grace(spec),
        conditions=_conditions(status),
        host_network=flag(spec, "hostNetwork", "spec"),
        required_node_features=_required_features(spec),
        container_requests=wanted.of_containers,
        containers=_each(containers, init) if any(map(may_be_devices, wanted.requests)) else (),
        extended_claim=inner(status, "extendedResourceClaimStatus", _extended_claim, "status"),
    )


def _each(containers: tuple[ContainerDemand, ...], init: tuple[ContainerDemand, ...]) -> tuple[ContainerRequests, ...]:
    early = (ContainerRequests(each.name, _amounts(each), not each.restartable) for each in init)
    return (*early, *(ContainerRequests(each.name, _amounts(each)) for each in containers))


def _amounts(each: ContainerDemand) -> Mapping[str, int]:
    return {name: amount(name, billionths) for name, billionths in each.requests.items()}


def _name(each: Json) -> str:
    return text(each, "name")


def _grace(spec: Json) -> int:
    found = whole(spec, "terminationGracePeriodSeconds", "spec")
    return _DEFAULT_GRACE if found is None else found


def _toleration(each: Json) -> Toleration:
    return Toleration(
        text(each, "key"),
        text(each, "operator") or "Equal",
        text(each, "value"),
        text(each, "effect"),
        whole(each, "tolerationSeconds"),
    )


def _host_ports(spec: Json) -> tuple[HostPort, ...]:
    """Of sidecars and containers: other init containers are gone when the Pod runs."""
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    return tuple(
        port
        for each in (*sidecars, *(spec.get("containers") or ()))
        if "ports" in each
        for port in items(each, "ports", _port, "spec.containers")
        if port.port > 0
    )


def _port(each: Json) -> HostPort:
    return HostPort(whole(each, "hostPort") or 0, text(each, "protocol") or "TCP", text(each, "hostIP"))


def _images(spec: Json) -> tuple[str, ...]:
    return (
        *(text(each, "image") for each in spec.get("initContainers") or ()),
        *(text(each, "image") for each in spec.get("containers") or ()),
        *(text(part(each, "image"), "reference") for each in spec.get("volumes") or () if each.get("image")),
    )


def _volume(each: Json) -> Volume:
    name = text(each, "name")
    kind = next((key for key, source in each.items() if key != "name" and source is not None), "")
    if kind in _OF_NO_CONCERN:
        return Volume(name)
    source = part(each, kind)
    if kind == "persistentVolumeClaim":
        return Volume(name, claim_name=text(source, "claimName", kind), read_only=flag(source, "readOnly", kind))
    if kind == "ephemeral":
        return Volume(name, ephemeral=True)
    return Volume(name, kind=kind, source=source)


def _claim(each: Json) -> PodResourceClaim:
    return PodResourceClaim(
        text(each, "name"), text(each, "resourceClaimName"), text(each, "resourceClaimTemplateName")
    )


def _claim_status(each: Json) -> tuple[str, str]:
    return text(each, "name"), text(each, "resourceClaimName")


def _extended_claim(each: Json) -> ExtendedClaim:
    return ExtendedClaim(text(each, "resourceClaimName"), items(each, "requestMappings", _mapping))


def _mapping(each: Json) -> RequestMapping:
    return RequestMapping(text(each, "containerName"), text(each, "resourceName"), text(each, "requestName"))


def _conditions(status: Json) -> Mapping[str, tuple[str, str, str]]:
    return dict(items(status, "conditions", _condition, "status"))


def _condition(each: Json) -> tuple[str, tuple[str, str, str]]:
    return text(each, "type"), (text(each, "status"), text(each, "reason"), text(each, "message"))


def _required_features(spec: Json) -> frozenset[str]:
    """The features of a node that a Pod needs (KEP-5328), as kube-scheduler 1.37 infers them from its specification.

    By the names that nodes declare them under in `status.declaredFeatures`.
    """
    found = set()
    if spec.get("hostNetwork") is True and spec.get("hostUsers") is False:
        found.add("UserNamespacesHostNetworkSupport")
    for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if "RestartAllContainers" in items(each, "restartPolicyRules", _action, "spec.containers"):
            found.add("RestartAllContainersOnContainerExits")
        if any(items(each, "volumeMounts", _has_bind_options, "spec.containers")):
            found.add("VolumeBindMountOptions")
    return frozenset(found) if found else _NO_FEATURES


def _action(rule: Json) -> str:
    return text(rule, "action")


def _has_bind_options(mount: Json) -> bool:
    return bool(mount.get("bindMountOptions"))
