"""Every Pod that the repository shows, in a file or in the text of a page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "docker" / "kubernetes"
SHOWN = ("docker", "docs", "examples")
COLLECTIONS = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "ConfigMap": "/api/v1/namespaces/kube-system/configmaps",
    "Deployment": "/apis/apps/v1/namespaces/kube-system/deployments",
    "Pod": "/api/v1/namespaces/kube-system/pods",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings",
    "ServiceAccount": "/api/v1/namespaces/kube-system/serviceaccounts",
}
"""Where the API server has objects of a kind."""
_KINDS = {
    "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "ConfigMap": ("api/v1", "configmaps"),
    "DaemonSet": ("apis/apps/v1", "daemonsets"),
    "Deployment": ("apis/apps/v1", "deployments"),
    "Job": ("apis/batch/v1", "jobs"),
    "MutatingWebhookConfiguration": ("apis/admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations"),
    "Namespace": ("api/v1", "namespaces"),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims"),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets"),
    "Role": ("apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "Secret": ("api/v1", "secrets"),
    "Service": ("api/v1", "services"),
    "ServiceAccount": ("api/v1", "serviceaccounts"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
}


def collection_of(document: dict[str, Any]) -> str:
    """Where the API server has objects of that kind, in the namespace of this one."""
    namespace = document["metadata"].get("namespace", "kube-system")
    if namespace == "kube-system" and document["kind"] in COLLECTIONS:
        return COLLECTIONS[document["kind"]]
    group, resources = _KINDS[document["kind"]]
    return (
        f"/{group}/namespaces/{namespace}/{resources}"
        if "namespace" in document["metadata"]
        else f"/{group}/{resources}"
    )


class Manifest(NamedTuple):
    """A Pod, or what makes Pods."""

    place: str
    text: str
    """What it stands in, comments and all."""
    document: dict[str, Any]
    spec: dict[str, Any]
    """The Pod's own."""

    @property
    def podtrail(self) -> dict[str, Any]:
        """The container that podtrail runs in."""
        (found,) = (each for each in self.spec["containers"] if is_podtrail(each))
        return dict(found)

    @property
    def others(self) -> list[dict[str, Any]]:
        """The containers whose work podtrail watches."""
        return [each for each in self.spec["containers"] if not is_podtrail(each)]


def is_podtrail(container: dict[str, Any]) -> bool:
    """Whether a container runs podtrail: its image also has podtrail-scheduler, by another command."""
    name = container.get("image", "").rpartition("/")[2].partition(":")[0]
    return name == "podtrail" and "command" not in container


def manifests() -> list[Manifest]:
    """All of them."""
    return [
        Manifest(place, text, document, spec)
        for place, text in _texts()
        for document in yaml.safe_load_all(text)
        for spec in _pods(document)
    ]


def beside_schedulers() -> list[Manifest]:
    """Those with podtrail in them, and not alone."""
    found = [(each, list(_containers(each.spec))) for each in manifests()]
    return [each for each, containers in found if len(containers) > 1 and any(map(is_podtrail, containers))]


def with_store(text: str) -> str:
    """Return a manifest with its lines about a store, which stand in comments behind one that names their page."""
    return re.sub(
        r"^( *#[^\n]*\(docs/reliability\.md\):\n)((?: *# (?![^\n]*\(docs/reliability\.md\):)[^\n]*\n)+)",
        lambda block: block[1] + re.sub(r"^( *)# ", r"\1", block[2], flags=re.MULTILINE),
        text,
        flags=re.MULTILINE,
    )


def stores() -> dict[str, str]:
    """Return the manifests that can be given a store, with it, by their paths."""
    shown = {path: path.read_text(encoding="utf-8") for path in sorted(KUBERNETES.rglob("*.yaml"))}
    changed = {str(path.relative_to(ROOT)): (text, with_store(text)) for path, text in shown.items()}
    return {place: stored for place, (text, stored) in changed.items() if stored != text}


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects of a file."""
    return [document for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]


def _containers(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kind in ("initContainers", "containers"):
        yield from spec.get(kind, ())


def _texts() -> Iterator[tuple[str, str]]:
    yield from ((f"{place} with a store", text) for place, text in stores().items())
    for path in sorted(path for room in SHOWN for path in (ROOT / room).rglob("*") if path.suffix in (".yaml", ".md")):
        text = path.read_text(encoding="utf-8")
        place = str(path.relative_to(ROOT))
        if path.suffix == ".yaml":
            yield place, text
            continue
        for block in re.finditer(r"^```yaml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            if "ontainers:" in block[1]:
                yield f"{place}:{text.count(chr(10), 0, block.start()) + 1}", block[1]


def _pods(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if isinstance(value.get("containers"), list) or isinstance(value.get("initContainers"), list):
            yield value
        for each in value.values():
            yield from _pods(each)
    elif isinstance(value, list):
        for each in value:
            yield from _pods(each)
