"""Cases of clusters that change between one Pod and the next, as the watch tells it."""

from collections.abc import Callable
from itertools import chain
from random import Random

from .builders import NAMESPACE, ZONE, expression, namespaces, service
from .case import Change, Object, identity, merged
from .claims import device_class, resource_claim, slice_of
from .mixed import node_of_a_cluster, pod_of_an_app, resident, storage
from .profiles import DEFAULT
from .storage import DRIVERS, attachment, claim, csi_node, storage_class, volume, with_claims

_NODES = 7
_APPS = ("web", "db", "cache")
_OF_ZONES = ("c0", "c1", "c2")
_LATE = ("late0", "late1")
"""Claims that are bound in the course of events."""


class Changing:
    """A cluster, and before each Pod some things that happen to it."""

    profile = DEFAULT

    def __init__(self, rng: Random, pods: int = 6, *, reports: bool = True) -> None:
        """With `reports` the kubelet of every node reports before each Pod, as it does every few minutes.

        For kube-scheduler counts on how many nodes an image is when the node that is scored changes, not later.
        """
        self._rng = rng
        self._reports = reports
        self._mark = rng.randrange(10_000)
        self._count = 0
        self._now: dict[tuple[str, str, str], Object] = {}
        for each in (*namespaces(), *storage(rng), *self._of_claims(), *self._nodes()):
            self._put(each)
        for _ in range(rng.randint(0, _NODES)):
            self._put(self._resident())
        self.objects = [*self._now.values()]
        self.pods: list[Object] = []
        self.between: list[tuple[Change, ...]] = []
        for number in range(pods):
            self.between.append(tuple(self._happens()) if number else ())
            self.pods.append(self._waiting(f"p{number}"))
            self._put(self.pods[-1])

    def _of_claims(self) -> list[Object]:
        late = [claim(name, storageClassName="now") for name in _LATE]
        slices = [slice_of(self._slice(i), f"n{i}") for i in range(_NODES) if self._rng.random() < 0.5]
        return [
            storage_class("now", DRIVERS[0], waits=False),
            *late,
            device_class("gpu"),
            resource_claim("d0", "gpu"),
            resource_claim("d1", "gpu"),
            *slices,
        ]

    def _nodes(self) -> list[Object]:
        count = self._rng.randint(2, _NODES - 2)
        limited = [csi_node(f"n{i}", {DRIVERS[0]: self._rng.randint(0, 2)}) for i in range(count)]
        return [*limited, *(node_of_a_cluster(self._rng, i) for i in range(count))]

    def _waiting(self, name: str) -> Object:
        rng = self._rng
        built = pod_of_an_app(rng, name, resident=False)
        spec = built["spec"]
        spec["priority"] = 0  # nobody gives way
        if rng.random() < 0.3:
            spec |= with_claims(rng.choice((*_OF_ZONES, *_LATE)))
        if rng.random() < 0.3:
            spec["resourceClaims"] = [{"name": "r0", "resourceClaimName": rng.choice(("d0", "d1"))}]
            spec["containers"][0].setdefault("resources", {})["claims"] = [{"name": "r0"}]
        return built

    def _resident(self) -> Object:
        self._count += 1
        return resident(self._rng, self._count, f"n{self._rng.randrange(_NODES)}")

    def _happens(self) -> list[Change]:
        kinds: tuple[Callable[[], list[Change]], ...] = (
            *(self._node_goes, self._node_comes, self._node_comes, self._relabelled, self._tainted, self._resized),
            *(self._pulled, self._pulled, self._pod_comes, self._pod_ends, self._pod_goes, self._pod_relabelled),
            *(self._volume_binds, self._attached, self._limited, self._devices_change, self._claim_released),
            self._service_changes,
        )
        changes = [change for kind in self._rng.choices(kinds, k=self._rng.randint(1, 7)) for change in kind()]
        if not self._reports:
            return changes
        self._count += 1
        report = {"type": "Ready", "status": "True", "message": f"report {self._count}"}
        return [*changes, *chain(*(self._patch_status(node, {"conditions": [report]}) for node in self._all("Node")))]

    def _node_goes(self) -> list[Change]:
        nodes = self._all("Node")
        return [self._delete(self._rng.choice(nodes))] if len(nodes) > 1 else []

    def _node_comes(self) -> list[Change]:
        names = [node["metadata"]["name"] for node in self._all("Node")]
        new = [number for number in range(_NODES) if f"n{number}" not in names]
        return [self._create(node_of_a_cluster(self._rng, self._rng.choice(new)))] if new else []

    def _like_another(self) -> tuple[Object, Object]:
        """A node, and how it may be soon."""
        node = self._rng.choice(self._all("Node"))
        return node, node_of_a_cluster(self._rng, int(node["metadata"]["name"][1:]))

    def _relabelled(self) -> list[Change]:
        node, other = self._like_another()
        return self._patch(node, {"metadata": {"labels": {ZONE: None, **other["metadata"]["labels"]}}})

    def _tainted(self) -> list[Change]:
        node, other = self._like_another()
        return self._patch(node, {"spec": {"taints": None, "unschedulable": None, **other["spec"]}})

    def _resized(self) -> list[Change]:
        node, other = self._like_another()
        room = {"example.com/gpu": None, **other["status"]["allocatable"]}
        return self._patch_status(node, {"allocatable": room, "capacity": room})

    def _pulled(self) -> list[Change]:
        node, other = self._like_another()
        return self._patch_status(node, {"images": other["status"].get("images")})

    def _pod_comes(self) -> list[Change]:
        return [self._create(self._resident())]

    def _pod_ends(self) -> list[Change]:
        changes = []
        for pod in self._some_pod():
            changes += self._patch_status(pod, {"phase": "Succeeded"})
            self._forget(pod)
        return changes

    def _pod_goes(self) -> list[Change]:
        return [self._delete(pod) for pod in self._some_pod()]

    def _pod_relabelled(self) -> list[Change]:
        labels = {"app": self._rng.choice(_APPS)}
        return [change for pod in self._some_pod() for change in self._patch(pod, {"metadata": {"labels": labels}})]

    def _some_pod(self) -> list[Object]:
        """One, if there is any."""
        pods = self._all("Pod")
        return [self._rng.choice(pods)] if pods else []

    def _volume_binds(self) -> list[Change]:
        name = self._rng.choice(_LATE)
        waiting = self._now["PersistentVolumeClaim", NAMESPACE, name]
        if waiting["spec"].get("volumeName"):
            return []
        where = [expression(ZONE, "In", f"z{self._rng.randrange(3)}")]
        bound = volume(f"pv{self._mark}-{name}", name, nodes=where, storageClassName="now")
        binding = {
            "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": bound["metadata"]["name"]},
        }
        return [self._create(bound), *self._patch(waiting, binding)]

    def _attached(self) -> list[Change]:
        """A volume is attached to a node where nobody uses it, or detached."""
        bound = self._rng.choice(self._all("PersistentVolume"))["metadata"]["name"]
        new = attachment(f"{bound}-attached", bound, f"n{self._rng.randrange(_NODES)}")
        old = self._now.get(identity(new))
        return [self._create(new)] if old is None else [self._delete(old)]

    def _limited(self) -> list[Change]:
        known = self._rng.choice(self._all("CSINode"))
        changed = csi_node(known["metadata"]["name"], {DRIVERS[0]: self._rng.randint(0, 2)})
        return [self._delete(known), self._create(changed)]

    def _devices_change(self) -> list[Change]:
        number = self._rng.randrange(_NODES)
        old = self._now.get(("ResourceSlice", "", self._slice(number)))
        return [self._create(slice_of(self._slice(number), f"n{number}"))] if old is None else [self._delete(old)]

    def _slice(self, number: int) -> str:
        return f"s{self._mark}-{number}"

    def _claim_released(self) -> list[Change]:
        used = self._now["ResourceClaim", NAMESPACE, self._rng.choice(("d0", "d1"))]
        return [Change("patch", _named(used), {"status": {"allocation": None, "reservedFor": None}}, "status")]

    def _service_changes(self) -> list[Change]:
        app = self._rng.choice(_APPS)
        old = self._now.get(("Service", NAMESPACE, app))
        return [self._create(service(app, {"app": app}))] if old is None else [self._delete(old)]

    def _all(self, kind: str) -> list[Object]:
        return [each for each in self._now.values() if each["kind"] == kind]

    def _put(self, obj: Object) -> None:
        self._now[identity(obj)] = obj

    def _forget(self, obj: Object) -> None:
        self._now.pop(identity(obj), None)

    def _create(self, obj: Object) -> Change:
        self._put(obj)
        return Change("create", obj)

    def _patch(self, obj: Object, patch: Object, subresource: str = "") -> list[Change]:
        """None where all is so already."""
        patched = merged(obj, patch)
        if patched == obj:
            return []
        self._put(patched)
        return [Change("patch", _named(obj), patch, subresource)]

    def _patch_status(self, obj: Object, patch: Object) -> list[Change]:
        return self._patch(obj, {"status": patch}, "status")

    def _delete(self, obj: Object) -> Change:
        self._forget(obj)
        return Change("delete", _named(obj))


def _named(obj: Object) -> Object:
    """What says which object it is."""
    names = {key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": names}
