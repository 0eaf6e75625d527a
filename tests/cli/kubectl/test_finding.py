"""What is looked for is what the manifests have."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from podtrail.cli.kubectl.client import Kubectl, KubectlError
from podtrail.cli.kubectl.finding import GATEWAYS, SIDECARS, STATIC_PODS, WantedPod, find_podtrail

MANIFESTS = Path(__file__).parents[3] / "docker" / "kubernetes"
_WITHOUT_A_STORY = {"podtrail-pods", "podtrail-topics", "podtrail-webhook"}
"""They watch, make topics, admit: no spans are kept there."""


def pods() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the templates of Pods with a container of podtrail's image, by file."""
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        for one in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if not isinstance(one, dict):  # empty, or a patch
                continue
            pod = one if one.get("kind") == "Pod" else (one.get("spec") or {}).get("template")
            if isinstance(pod, dict) and any(
                str(container.get("image")).startswith("podtrail:") for container in pod["spec"]["containers"]
            ):
                yield f"{path.parent.name}/{path.name}", pod


def selected(labels: Mapping[str, str], selector: str) -> bool:
    """Return whether a selector of one requirement takes labels."""
    if found := re.fullmatch(r"(\S+) in \(([^)]*)\)", selector):
        return labels.get(found[1]) in found[2].split(",")
    key, _, value = selector.partition("=")
    return labels.get(key) == value


@pytest.mark.parametrize(("file", "pod"), [pytest.param(*one, id=one[0]) for one in pods()])
def test_every_pod_of_the_manifests_that_keeps_spans_is_found(file: str, pod: Mapping[str, Any]) -> None:
    labels = pod["metadata"].get("labels") or {}
    if pod["metadata"].get("name") == "kube-scheduler":  # kubeadm labels what lies in its folder
        labels = {"component": "kube-scheduler"}
    if labels.get("app.kubernetes.io/name") in _WITHOUT_A_STORY:
        return
    assert any(selected(labels, selector) for selector in (GATEWAYS, SIDECARS, STATIC_PODS)), labels


class ListedPods(Kubectl):
    """A cluster with one Pod, whatever is asked for."""

    __slots__ = ()

    def get(self, *_: str) -> Mapping[str, Any]:
        spec = {"containers": [{"name": "main", "image": "registry.example/podtrail-viewer:1"}]}
        pod = {"metadata": {"namespace": "n", "name": "p"}, "spec": spec, "status": {"phase": "Running"}}
        return {"items": [pod]}


def test_a_pod_without_podtrail_in_it_is_passed_over_unless_its_labels_were_named() -> None:
    with pytest.raises(KubectlError, match="no running Pod with podtrail found in all namespaces"):
        find_podtrail(ListedPods(), WantedPod())
    assert find_podtrail(ListedPods(), WantedPod(selector="a=b")).place == "n/p"


@pytest.mark.parametrize("pod", ["/name", "namespace/"])
def test_a_pod_is_named_with_both_its_names(pod: str) -> None:
    with pytest.raises(KubectlError, match="--pod is NAMESPACE/NAME"):
        find_podtrail(Kubectl(), WantedPod(pod))
