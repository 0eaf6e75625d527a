"""Cases of volumes. A Pod whose claims wait for it comes last: nobody binds them afterwards."""

from random import Random

from .builders import HOST, REGION, ZONE, expression, node, pod
from .case import Object
from .nodes import Made
from .storage import (
    DRIVERS,
    EBS,
    attachment,
    capacity,
    claim,
    csi_driver,
    csi_node,
    storage_class,
    volume,
    with_claims,
)


def volume_restrictions(rng: Random) -> Made:
    """Disks that only one Pod of a node may have, and claims that only one Pod may have."""
    nodes = [node(f"n{i}") for i in range(rng.randint(1, 5))]
    claims = [claim(f"c{i}", accessModes=["ReadWriteOncePod" if rng.random() < 0.7 else "ReadWriteOnce"]) for i in "01"]
    bound = [
        pod(f"b{i}", on=rng.choice(nodes)["metadata"]["name"], volumes=[_disk(rng, "d")])
        for i in range(rng.randint(1, 6))
    ]
    if rng.random() < 0.6:
        bound.append(pod("holder", on="n0", **with_claims("c0")))
    pods = []
    for i in range(3):
        spec = with_claims(*rng.sample(("c0", "c1", "absent"), 1)) if rng.random() < 0.4 else {"volumes": []}
        spec["volumes"] += [_disk(rng, f"d{j}") for j in range(rng.randint(0, 2))]
        pods.append(pod(f"p{i}", **spec))
    return "volume-restrictions", [*nodes, *claims, *bound], pods


def _disk(rng: Random, name: str) -> Object:
    kind, read_only = rng.randrange(4), rng.random() < 0.5
    which = rng.choice("xy")
    source: Object
    if kind == 0:
        source = {"gcePersistentDisk": {"pdName": which, "readOnly": read_only}}
    elif kind == 1:
        source = {"awsElasticBlockStore": {"volumeID": which}}
    elif kind == 2:
        portal = {"targetPortal": f"10.0.0.{rng.randint(1, 2)}:3260", "lun": rng.randint(0, 1)}
        source = {"iscsi": {"iqn": f"iqn.2020-01.example:{which}", "readOnly": read_only, **portal}}
    else:
        monitors = rng.sample(("m1", "m2", "m3"), 2)
        image = {"image": which, "pool": rng.choice(("rbd", "other")), "user": "admin", "keyring": "/etc/ceph/keyring"}
        source = {"rbd": {"monitors": monitors, "readOnly": read_only, **image}}
    return {"name": name, **source}


def node_volume_limits(rng: Random) -> Made:
    """How many volumes of a driver a node takes, told by its CSINode; one volume used twice counts once."""
    mark = rng.randrange(10_000)
    nodes = [node(f"n{i}") for i in range(rng.randint(1, 5))]
    csi_nodes = [_limited(rng, each["metadata"]["name"]) for each in nodes if rng.random() < 0.9]
    volumes, claims = [], []
    for i in range(6):
        handle = f"h{rng.randrange(5)}"
        name = f"pv{mark}-{i}"
        if rng.random() < 0.2:
            volumes.append(volume(name, f"c{i}", awsElasticBlockStore={"volumeID": f"vol-{rng.randrange(3)}"}))
        else:
            volumes.append(volume(name, f"c{i}", driver=rng.choice(DRIVERS), handle=handle))
        claims.append(claim(f"c{i}", name))
    classes = [storage_class("slow", DRIVERS[0]), storage_class("fast", DRIVERS[1])]
    claims += [claim("w0", storageClassName="slow"), claim("w1", storageClassName="fast")]
    bound = [
        pod(f"b{i}", on=rng.choice(nodes)["metadata"]["name"], **with_claims(f"c{rng.randrange(6)}"))
        for i in range(rng.randint(3, 10))
    ]
    attached = [
        _attachment(rng, f"a{mark}-{i}", rng.choice(nodes), rng.choice(volumes)) for i in range(rng.randint(0, 2))
    ]
    names = [each["metadata"]["name"] for each in claims] + (["absent"] if rng.random() < 0.2 else [])
    pods = [pod(f"p{i}", **with_claims(*rng.sample(names, rng.randint(1, 4)))) for i in range(3)]
    for each in (*bound, *pods):
        if rng.random() < 0.1:
            disk = {"name": "inline", "awsElasticBlockStore": {"volumeID": f"vol-{rng.randrange(3)}"}}
            each["spec"]["volumes"].append(disk)
    return "volume-limits", [*classes, *volumes, *claims, *attached, *csi_nodes, *nodes, *bound], pods


def _attachment(rng: Random, name: str, node: Object, volume: Object) -> Object:
    driver = volume["spec"].get("csi", {}).get("driver", EBS)
    built = attachment(name, volume["metadata"]["name"], node["metadata"]["name"], driver)
    return {**built, "status": {"attached": rng.random() < 0.5}}


def _limited(rng: Random, name: str) -> Object:
    limits = {}
    for driver in (*DRIVERS, EBS):
        if rng.random() < 0.85:
            limits[driver] = rng.choice((0, 1, 1, 2)) if rng.random() < 0.85 else None
    return csi_node(name, limits)


def volume_zone(rng: Random) -> Made:
    """Volumes with zone labels, several zones in one of them, nodes with and without; claims that are not bound."""
    mark = rng.randrange(10_000)
    nodes = []
    for i in range(rng.randint(2, 6)):
        zone = rng.randrange(3)
        labelled = rng.random() < 0.8
        nodes.append(node(f"n{i}", labels={ZONE: f"z{zone}", REGION: f"r{zone // 2}"} if labelled else {}))
    volumes, claims = [], []
    for i in range(3):
        labels = {rng.choice((ZONE, "failure-domain.beta.kubernetes.io/zone")): rng.choice(("z0", "z1", "z0__z2"))}
        if rng.random() < 0.5:
            labels[REGION] = rng.choice(("r0", "r1"))
        volumes.append(volume(f"pv{mark}-{i}", f"c{i}", labels=labels))
        claims.append(claim(f"c{i}", f"pv{mark}-{i}"))
    claims += [
        claim("waits", storageClassName="slow"),
        claim("now", storageClassName="now"),
        claim("classless", storageClassName=""),
        claim("unknown", storageClassName="unknown"),
        claim("dangling", "gone"),
    ]
    classes = [storage_class("slow", DRIVERS[0]), storage_class("now", DRIVERS[0], waits=False)]
    usual = ("c0", "c1", "c2", "c0", "c1", "c2", "waits")
    odd = ("now", "classless", "unknown", "dangling", "absent")
    pods = []
    for i in range(3):
        names = {rng.choice(usual if rng.random() < 0.8 else odd) for _ in range(rng.randint(1, 2))}
        pods.append(pod(f"p{i}", **with_claims(*sorted(names))))
    return "volume-zone", [*classes, *volumes, *claims, *nodes], pods


def volume_binding(rng: Random) -> Made:
    """Bound claims and where their volumes are; then a Pod whose claims find volumes or are provisioned for."""
    mark = rng.randrange(10_000)
    nodes = [
        node(f"n{i}", labels={ZONE: f"z{rng.randrange(3)}", "disk": rng.choice(("ssd", "hdd"))})
        for i in range(rng.randint(2, 7))
    ]
    objects, pods = _bound_claims(rng, mark, len(nodes))
    waiting, last = _waiting_claims(rng, mark, len(nodes))
    return "volume-binding", [*objects, *waiting, *nodes], [*pods, last]


def _somewhere(rng: Random, nodes: int) -> list[Object]:
    if rng.random() < 0.4:
        return [expression(HOST, "In", *(f"n{i}" for i in range(nodes) if rng.random() < 0.6), "nowhere")]
    if rng.random() < 0.5:
        return [expression(ZONE, rng.choice(("In", "NotIn")), f"z{rng.randrange(3)}")]
    return [expression("disk", "In", "ssd"), expression(ZONE, "Exists")]


_SMALL = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _bound_claims(rng: Random, mark: int, nodes: int) -> tuple[list[Object], list[Object]]:
    objects, pods = [], []
    for i in range(3):
        where = _somewhere(rng, nodes) if rng.random() < 0.9 else None
        objects.append(volume(f"pv{mark}-b{i}", f"b{i}", nodes=where))
        objects.append(claim(f"b{i}", f"pv{mark}-b{i}"))
    lost = {**claim("lost", "gone"), "status": {"phase": "Lost"}}
    objects += [claim("dangling", "gone"), claim("now", storageClassName="now"), lost]
    for i in range(2):
        names = rng.sample(("b0", "b1", "b2"), rng.randint(1, 2))
        if rng.random() < 0.25:
            names.append(rng.choice(("dangling", "now", "absent", "lost")))
        spec = with_claims(*names)
        if rng.random() < 0.1:
            spec["volumes"].append({"name": "own", "ephemeral": {"volumeClaimTemplate": {"spec": _SMALL}}})
        pods.append(pod(f"p{i}", **spec))
    return objects, pods


def _waiting_claims(rng: Random, mark: int, nodes: int) -> tuple[list[Object], Object]:
    zones = tuple(sorted({f"z{rng.randrange(3)}" for _ in range(2)})) if rng.random() < 0.5 else ()
    objects = [
        storage_class("static", "kubernetes.io/no-provisioner"),
        storage_class("dynamic", DRIVERS[0], zones=zones),
        storage_class("counted", DRIVERS[1]),
        storage_class("now", DRIVERS[0], waits=False),
        csi_driver(DRIVERS[1]),
    ]
    for i in range(rng.randint(1, 6)):
        size = rng.choice(("1Gi", "2Gi", "5Gi"))
        labels = {"grade": rng.choice(("gold", "iron"))}
        extra = {"storageClassName": rng.choice(("static", "static", "dynamic"))}
        where = _somewhere(rng, nodes)
        objects.append(volume(f"pv{mark}-s{i}", size=size, labels=labels, nodes=where, **extra))
    objects += [_capacity(rng, f"cap{i}") for i in range(rng.randint(0, 3))]
    names = []
    for i in range(rng.randint(1, 3)):
        spec: Object = {"storageClassName": rng.choice(("static", "static", "dynamic", "counted"))}
        if rng.random() < 0.25:
            spec["selector"] = {"matchLabels": {"grade": "gold"}}
        if rng.random() < 0.15:
            spec["accessModes"] = ["ReadWriteMany"]
        objects.append(claim(f"w{i}", size=rng.choice(("500Mi", "2Gi", "3Gi")), **spec))
        names.append(f"w{i}")
    return objects, pod("last", **with_claims(*names, *(["b0"] if rng.random() < 0.3 else [])))


def _capacity(rng: Random, name: str) -> Object:
    built = capacity(name, "counted", f"z{rng.randrange(3)}", rng.choice(("1Gi", "10Gi")))
    if rng.random() < 0.3:
        built["maximumVolumeSize"] = "1Gi"
    return built
