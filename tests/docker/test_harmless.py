"""Whatever becomes of podtrail, the scheduler beside it starts, runs, answers its probes and is not evicted.

Every Pod that the repository shows is looked at, so that a new manifest is, too.
"""

import re
from typing import Any

import pytest
import yaml

from tests.docker.manifests import KUBERNETES, ROOT, Manifest, beside_schedulers, is_podtrail, manifests

ALL = beside_schedulers()


@pytest.fixture(params=ALL, ids=lambda manifest: manifest.place)
def manifest(request: pytest.FixtureRequest) -> Manifest:
    found = request.param
    assert isinstance(found, Manifest)
    return found


def mounted(container: dict[str, Any]) -> set[str]:
    return {mount["name"] for mount in container.get("volumeMounts", ())}


def test_the_manifests_for_schedulers_are_among_those_looked_at() -> None:
    found = {manifest.place for manifest in ALL}
    assert {
        str(path.relative_to(ROOT))
        for path in KUBERNETES.rglob("*.yaml")
        if path.name in ("deployment.yaml", "static-pod.yaml")
    } <= found


def test_no_init_container_is_podtrail() -> None:
    for manifest in manifests():
        assert not [each for each in manifest.spec.get("initContainers", ()) if is_podtrail(each)], manifest.place


def test_podtrail_is_an_ordinary_container_and_is_pulled_and_started_last(manifest: Manifest) -> None:
    *others, last = manifest.spec["containers"]
    assert is_podtrail(last)
    assert others
    assert "restartPolicy" not in last
    assert last["imagePullPolicy"] == "IfNotPresent"  # nor is a restart of the scheduler to wait for a registry


def test_a_comment_at_the_container_says_why(manifest: Manifest) -> None:
    said = re.search(r"((?: *#.*\n)+) *- name: podtrail\n", manifest.text)
    assert said
    assert "ordinary container" in said[1]
    assert "scheduler" in said[1]


def test_only_liveness_is_asked_of_podtrail(manifest: Manifest) -> None:
    assert "livenessProbe" in manifest.podtrail
    assert not {"startupProbe", "readinessProbe"} & manifest.podtrail.keys()
    assert "postStart" not in manifest.podtrail.get("lifecycle", {})


def test_no_volume_of_podtrails_can_keep_the_pod_from_starting(manifest: Manifest) -> None:
    volumes = {volume["name"]: volume for volume in manifest.spec.get("volumes", ())}
    for name in mounted(manifest.podtrail):
        volume = volumes[name]
        if "hostPath" in volume:
            assert "type" not in volume["hostPath"]
        elif "configMap" in volume:
            assert volume["configMap"]["optional"] is True
        elif "secret" in volume:
            assert volume["secret"]["optional"] is True
        else:
            assert "emptyDir" in volume


def test_podtrail_shares_neither_a_volume_nor_a_port_nor_processes_with_the_scheduler(manifest: Manifest) -> None:
    ports = {port["containerPort"] for port in manifest.podtrail.get("ports", ())}
    for other in manifest.others:
        assert not mounted(manifest.podtrail) & mounted(other)
        assert not ports & {port["containerPort"] for port in other.get("ports", ())}
    assert not manifest.spec.get("shareProcessNamespace")
    if manifest.spec.get("hostNetwork"):
        assert not ports  # they would be the host's, and one that is taken keeps the Pod off the node


def test_podtrail_has_a_bound_and_leaves_the_node_its_share(manifest: Manifest) -> None:
    resources = manifest.podtrail["resources"]
    assert resources["requests"].keys() == resources["limits"].keys() == {"cpu", "memory"}


def test_nothing_that_podtrail_fills_gets_the_scheduler_evicted(manifest: Manifest) -> None:
    for volume in manifest.spec.get("volumes", ()):
        assert "sizeLimit" not in (volume.get("emptyDir") or {})
    if manifest.document["kind"] == "Deployment":  # a static Pod is never evicted
        assert manifest.spec["priorityClassName"].startswith("system-")


def test_a_rollout_of_the_scheduler_does_not_wait_for_podtrail(manifest: Manifest) -> None:
    if manifest.document["kind"] == "Deployment":
        assert manifest.document["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] >= 1


def test_a_scheduler_of_compose_waits_for_no_podtrail() -> None:
    compose = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text(encoding="utf-8"))
    assert "depends_on" not in compose["services"]["scheduler"]


def test_podtrail_may_do_nothing_and_says_so_itself(manifest: Manifest) -> None:
    context = manifest.podtrail["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] > 0
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
