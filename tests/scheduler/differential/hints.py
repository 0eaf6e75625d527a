"""Cases of queueing hints: a Pod that fits nowhere, and a change in the cluster that is or is not worth another try."""

from collections.abc import Iterator
from typing import NamedTuple

from .builders import HOST, ZONE, container, node, pod
from .case import Change, Object, merged
from .claims import device_class, resource_claim, slice_of, with_resource_claims
from .storage import capacity, claim, csi_node, storage_class, volume, with_claims

_DRIVER = "a.csi.example"
_TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}


class Scenario(NamedTuple):
    """A Pod that waits in a cluster for a change."""

    profile: str
    objects: list[Object]
    pod: Object
    change: Change


def scenarios() -> list[Scenario]:
    """Plugin by plugin."""
    plugins = (_affinity, _taints, _cordons, _ports, _resources, _spread, _pods, _anti, _binding, _zones)
    return [each for plugin in (*plugins, _restrictions, _limits, _devices, _extended) for each in plugin()]


def _each(profile: str, objects: list[Object], waiting: Object, *changes: Change) -> Iterator[Scenario]:
    for change in changes:
        yield Scenario(profile, objects, waiting, change)


def _labelled(name: str, labels: dict[str, str]) -> Change:
    return Change("patch", node(name), {"metadata": {"labels": labels}})


def _tainted(name: str, taints: list[dict[str, str]]) -> Change:
    return Change("patch", node(name), {"spec": {"taints": taints}})


def _allocatable(name: str, **amounts: str) -> Change:
    return Change("patch", node(name), {"status": {"allocatable": amounts}}, "status")


def _tolerating(waiting: Object, key: str) -> Change:
    return Change("patch", waiting, {"spec": {"tolerations": [{"key": key, "operator": "Exists"}]}})


def _affinity() -> Iterator[Scenario]:
    waiting = pod("p0", nodeSelector={"disk": "nvme"})
    yield from _each(
        "node-affinity",
        [node("n0", labels={"disk": "ssd"}), pod("b0", on="n0")],
        waiting,
        _labelled("n0", {"disk": "nvme"}),
        _labelled("n0", {"other": "nvme"}),
        _tainted("n0", [_TAINT]),
        _allocatable("n0", cpu="64"),
        Change("create", node("n1", labels={"disk": "nvme"})),
        Change("create", node("n1", labels={"disk": "hdd"})),
        Change("delete", pod("b0", on="n0")),
    )


def _taints() -> Iterator[Scenario]:
    waiting = pod("p0")
    yield from _each(
        "taint-toleration",
        [node("n0", taints=[_TAINT])],
        waiting,
        _tainted("n0", []),
        _tainted("n0", [{**_TAINT, "value": "y"}]),
        _tainted("n0", [{**_TAINT, "effect": "PreferNoSchedule"}]),
        _labelled("n0", {"disk": "nvme"}),
        Change("create", node("n1")),
        Change("create", node("n1", taints=[_TAINT])),
        _tolerating(waiting, "dedicated"),
        _tolerating(waiting, "other"),
    )


def _cordons() -> Iterator[Scenario]:
    waiting = pod("p0")
    yield from _each(
        "node-unschedulable",
        [node("n0", unschedulable=True)],
        waiting,
        Change("patch", node("n0"), {"spec": {"unschedulable": None}}),
        _labelled("n0", {"disk": "nvme"}),
        Change("create", node("n1")),
        Change("create", node("n1", unschedulable=True)),
        _tolerating(waiting, "node.kubernetes.io/unschedulable"),
    )


def _ports() -> Iterator[Scenario]:
    port = {"containerPort": 8080, "hostPort": 8080}
    holder = pod("holder", on="n0", containers=[container(ports=[port])])
    other = pod("other", on="n0", containers=[container(ports=[{"containerPort": 9090, "hostPort": 9090}])])
    yield from _each(
        "node-ports",
        [node("n0"), holder, other, pod("plain", on="n0")],
        pod("p0", containers=[container(ports=[port])]),
        Change("delete", holder),
        Change("delete", other),
        Change("delete", pod("plain", on="n0")),
        Change("create", node("n1")),
        _labelled("n0", {"disk": "nvme"}),
    )


def _resources() -> Iterator[Scenario]:
    holder, idle = pod("holder", {"cpu": "3"}, on="n0"), pod("idle", on="n0")
    yield from _each(
        "fit-least",
        [node("n0", cpu="4"), holder, idle],
        pod("p0", {"cpu": "2", "memory": "1Gi"}),
        Change("delete", holder),
        Change("delete", idle),
        _allocatable("n0", cpu="6"),
        _allocatable("n0", cpu="4500m"),
        _allocatable("n0", cpu="1"),
        _allocatable("n0", memory="64Gi"),
        Change("create", node("n1", cpu="4")),
        Change("create", node("n1", cpu="1")),
        Change("create", node("n1", cpu="2", memory="512Mi")),
        _labelled("n0", {"disk": "nvme"}),
        Change("create", pod("b9", on="n0")),
    )


def _spread() -> Iterator[Scenario]:
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "minDomains": 2,
    }
    web, db = pod("b0", on="n0", labels={"app": "web"}), pod("b1", on="n0", labels={"app": "db"})
    waiting = pod("p0", labels={"app": "web"}, topologySpreadConstraints=[constraint])
    yield from _each(
        "spread",
        [node("n0", labels={ZONE: "z0"}), node("n1"), web, db],
        waiting,
        Change("delete", web),
        Change("delete", db),
        Change("patch", web, {"metadata": {"labels": {"app": "db"}}}),
        Change("patch", db, {"metadata": {"labels": {"app": "web"}}}),
        Change("patch", db, {"metadata": {"labels": {"tier": "x"}}}),
        Change("create", pod("b2", on="n0", labels={"app": "web"})),
        Change("create", pod("b2", on="n0", labels={"app": "db"})),
        Change("create", node("n2", labels={ZONE: "z1"})),
        Change("create", node("n2")),
        _labelled("n1", {ZONE: "z1"}),
        _labelled("n1", {"disk": "nvme"}),
        _labelled("n0", {ZONE: "z7"}),
        Change("patch", waiting, {"metadata": {"labels": {"app": "db"}}}),
        Change("patch", waiting, {"metadata": {"labels": {"tier": "x"}}}),
    )


def _pods() -> Iterator[Scenario]:
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    db = pod("b0", on="n0", labels={"app": "db"})
    yield from _each(
        "affinity",
        [node("n0", labels={ZONE: "z0"}), node("n1"), db],
        pod("p0", labels={"app": "x"}, affinity=affinity),
        Change("create", pod("b1", on="n0", labels={"app": "web"})),
        Change("create", pod("b1", on="n0", labels={"app": "db"})),
        Change("create", pod("b1", on="n0", namespace="team-a", labels={"app": "web"})),
        Change("patch", db, {"metadata": {"labels": {"app": "web"}}}),
        Change("patch", db, {"metadata": {"labels": {"tier": "web"}}}),
        Change("delete", db),
        Change("create", node("n2", labels={ZONE: "z1"})),
        Change("create", node("n2")),
        _labelled("n1", {ZONE: "z0"}),
        _labelled("n1", {"disk": "nvme"}),
    )


def _anti() -> Iterator[Scenario]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    web, db = pod("b0", on="n0", labels={"app": "web"}), pod("b1", on="n0", labels={"app": "db"})
    yield from _each(
        "affinity",
        [node("n0"), web, db],
        pod("p0", labels={"app": "x"}, affinity=anti),
        Change("delete", web),
        Change("delete", db),
        Change("patch", web, {"metadata": {"labels": {"app": "db"}}}),
        Change("patch", db, {"metadata": {"labels": {"app": "web"}}}),
        Change("create", node("n1")),
        _labelled("n0", {"disk": "nvme"}),
    )
    waiting = pod("p0", labels={"app": "web"})
    yield from _each(
        "affinity",
        [node("n0"), pod("b0", on="n0", affinity=anti), db],
        waiting,
        Change("delete", pod("b0", on="n0", affinity=anti)),
        Change("delete", db),
        Change("patch", waiting, {"metadata": {"labels": {"app": "db"}}}),
    )


def _binding() -> Iterator[Scenario]:
    yield from _each(
        "volume-binding",
        [node("n0", labels={ZONE: "z0"}), storage_class("counted", "b.csi.example")],
        pod("p0", **with_claims("wanted")),
        Change("create", claim("wanted", storageClassName="counted")),
        Change("create", claim("other", storageClassName="counted")),
        Change("create", storage_class("more", _DRIVER)),
        Change("create", volume("pv-hint")),
    )
    waits = claim("waits", storageClassName="static")
    somewhere = [{"key": HOST, "operator": "In", "values": ["n1"]}]
    elsewhere = volume("pv-elsewhere", nodes=somewhere, storageClassName="static")
    yield from _each(
        "volume-binding",
        [node("n0", labels={ZONE: "z0"}), storage_class("static", "kubernetes.io/no-provisioner"), waits, elsewhere],
        pod("p0", **with_claims("waits")),
        Change("create", volume("pv-here", storageClassName="static")),
        Change("create", node("n1")),
        Change("create", claim("other", storageClassName="static")),
        Change("patch", waits, {"metadata": {"annotations": {"some": "thing"}}}),
        Change("create", storage_class("more", _DRIVER)),
        Change("create", csi_node("n0", {_DRIVER: 3})),
        Change("create", capacity("cap-hint", "static", "z0", "10Gi")),
        _labelled("n0", {"disk": "nvme"}),
        _allocatable("n0", cpu="64"),
    )


def _zones() -> Iterator[Scenario]:
    zoned = volume("pv-zoned", "bound", labels={ZONE: "z1"})
    yield from _each(
        "volume-zone",
        [node("n0", labels={ZONE: "z0"}), zoned, claim("bound", "pv-zoned")],
        pod("p0", **with_claims("bound")),
        Change("create", node("n1", labels={ZONE: "z1"})),
        Change("create", node("n1", labels={ZONE: "z2"})),
        _labelled("n0", {ZONE: "z1"}),
        _labelled("n0", {"disk": "nvme"}),
        Change("create", volume("pv-more")),
        Change("create", claim("other", "pv-more")),
        Change("create", storage_class("more", _DRIVER)),
    )
    yield from _each(
        "volume-zone",
        [node("n0", labels={ZONE: "z0"})],
        pod("p0", **with_claims("wanted")),
        Change("create", claim("wanted", "pv-more")),
        Change("create", claim("other", "pv-more")),
    )


def _restrictions() -> Iterator[Scenario]:
    once = claim("once", accessModes=["ReadWriteOncePod"])
    holder, other = pod("holder", on="n0", **with_claims("once")), pod("other", on="n0")
    yield from _each(
        "volume-restrictions",
        [node("n0"), once, holder, other],
        pod("p0", **with_claims("once")),
        Change("delete", holder),
        Change("delete", other),
        Change("create", node("n1")),
        Change("create", claim("more")),
        _labelled("n0", {"disk": "nvme"}),
    )


def _limits() -> Iterator[Scenario]:
    objects = [node("n0"), csi_node("n0", {_DRIVER: 1}), claim("own", "pv-own"), claim("used", "pv-used")]
    holder, other = pod("holder", on="n0", **with_claims("used")), pod("other", on="n0")
    more = {"drivers": [{"name": _DRIVER, "nodeID": "n0", "topologyKeys": None, "allocatable": {"count": 2}}]}
    fewer = {"drivers": [{"name": _DRIVER, "nodeID": "n0", "topologyKeys": None, "allocatable": {"count": 0}}]}
    yield from _each(
        "volume-limits",
        [volume("pv-own", "own"), volume("pv-used", "used"), *objects, holder, other],
        pod("p0", **with_claims("own")),
        Change("delete", holder),
        Change("delete", other),
        Change("patch", csi_node("n0", {}), {"spec": more}),
        Change("patch", csi_node("n0", {}), {"spec": fewer}),
        Change("create", csi_node("n1", {_DRIVER: 1})),
        Change("create", claim("more")),
        Change("create", node("n1")),
    )


def _devices() -> Iterator[Scenario]:
    wanted = resource_claim("wanted", "gpu")
    yield from _each(
        "dynamic-resources",
        [node("n0"), device_class("gpu"), wanted],
        with_resource_claims("p0", ["wanted"]),
        Change("create", slice_of("slice-hint", "n0")),
        Change("create", resource_claim("other", "gpu")),
        Change("create", device_class("more")),
        Change("create", node("n1")),
        Change("patch", wanted, {"metadata": {"labels": {"some": "thing"}}}),
        _labelled("n0", {"disk": "nvme"}),
    )
    yield from _each(
        "dynamic-resources",
        [node("n0"), resource_claim("unclassed", "later")],
        with_resource_claims("p0", ["unclassed"]),
        Change("create", device_class("later")),
        Change("create", slice_of("slice-hint", "n0")),
    )


def _extended() -> Iterator[Scenario]:
    accelerator, own = "example.com/accelerator", "deviceclass.resource.kubernetes.io/gpu"
    gpu, slices = device_class("gpu"), slice_of("slice-hint", "n0")
    stands = {"spec": {"extendedResourceName": accelerator}}
    yield from _each(
        "extended",
        [node("n0"), gpu, slices],
        pod("p0", {accelerator: "1"}),
        Change("patch", gpu, stands),
        Change("patch", gpu, {"spec": {"extendedResourceName": "example.com/other"}}),
        Change("create", merged(device_class("more"), stands)),
        Change("create", device_class("more")),
        _labelled("n0", {"disk": "nvme"}),
        _allocatable("n0", **{accelerator: "1"}),
    )
    yield from _each(
        "extended",
        [node("n0"), slices],
        pod("p0", {own: "1"}),
        Change("create", gpu),
        Change("create", device_class("more")),
    )
    yield from _each(
        "extended",
        [node("n0"), gpu],
        pod("p0", {own: "1"}),
        Change("create", slices),
        Change("create", node("n1")),
        Change("patch", gpu, stands),
        _allocatable("n0", **{"example.com/other": "1"}),
        Change("create", resource_claim("other", "gpu")),
    )
