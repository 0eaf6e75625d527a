"""Volumes, claims and devices for tests on a real API server, and the part of the controllers that is not there."""

from collections.abc import Iterable
from typing import Any

VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
RESOURCE = "/apis/resource.k8s.io/v1"


def claims_of(namespace: str) -> str:
    """The path of a namespace's claims for volumes."""
    return f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"


def storage_class(name: str, provisioner: str = "kubernetes.io/no-provisioner") -> dict[str, Any]:
    """A class whose claims wait for a Pod."""
    return {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}


def claim(storage_class_name: str) -> dict[str, Any]:
    """The claim `data`."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": "data"}, "spec": {"storageClassName": storage_class_name, **wanted}}


def volume(name: str, storage_class_name: str, host: str) -> dict[str, Any]:
    """A volume on one node."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
    spec = {
        "storageClassName": storage_class_name,
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def local_volume(api: Any, namespace: str, host: str) -> Any:
    """Creates a class, a volume on a node and the claim `data` for it; the first two have the namespace's name."""
    api.create(CLASSES, storage_class(namespace))
    api.create(VOLUMES, volume(namespace, namespace, host))
    api.patch(f"{VOLUMES}/{namespace}/status", {"status": {"phase": "Available"}})
    return api.create(claims_of(namespace), claim(namespace))


def controller_binds(api: Any, namespace: str) -> None:
    """What the volume controller does once the volume of `data` is known."""
    claims, phase = claims_of(namespace), {"status": {"phase": "Bound"}}
    completed = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    api.patch(f"{claims}/data", {"metadata": completed, "spec": {"volumeName": namespace}})
    api.patch(f"{VOLUMES}/{namespace}/status", phase)
    api.patch(f"{claims}/data/status", phase)


def using_volume(pod: dict[str, Any]) -> dict[str, Any]:
    """A Pod, with the claim `data`."""
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return pod


def devices(
    api: Any, namespace: str, node: str, names: Iterable[str], claims: Iterable[str] = (), **fields: Any
) -> None:
    """Creates a class of the namespace's name, large devices of these names on a node, and claims for one each."""
    driver = f"{namespace}.example.com"
    made = [{"name": name, "attributes": {"size": {"string": "large"}}} for name in names]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": made}
    api.create(f"{RESOURCE}/resourceslices", {"metadata": {"name": namespace}, "spec": spec})
    of_driver = {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}], **fields}
    api.create(f"{RESOURCE}/deviceclasses", {"metadata": {"name": namespace}, "spec": of_driver})
    large = {"cel": {"expression": f"device.attributes['{driver}'].size == 'large'"}}
    request = {"name": "r", "exactly": {"deviceClassName": namespace, "selectors": [large]}}
    for name in claims:
        wanted = {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}
        api.create(f"{RESOURCE}/namespaces/{namespace}/resourceclaims", wanted)


def asking_for(pod: dict[str, Any], resource: str) -> dict[str, Any]:
    """A Pod, with one of an extended resource."""
    pod["spec"]["containers"][0]["resources"]["limits"] = {resource: "1"}
    return pod
