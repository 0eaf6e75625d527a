"""Manifests of podtrail-scheduler, and of podtrail beside a stock kube-scheduler: they fit, and ask for little."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from podtrail_receivers.scheduler.kube_scheduler.config import KubeSchedulerConfig
from podtrail_scheduler.configuration.features import parse_feature_gates
from podtrail_scheduler.configuration.load import check, load

from podtrail.config import Document
from podtrail.config.types import host_port
from podtrail.pipeline.settings import Settings, read_settings
from tests.docker.manifests import KUBERNETES, documents, is_podtrail

MANIFESTS = sorted(
    path for room in ("kube-scheduler", "scheduler", "stock") for path in (KUBERNETES / room).glob("*.yaml")
)
ROLES = sorted(path for path in MANIFESTS if path.name == "rbac.yaml")


def of(path: Path, kind: str, name: str = "") -> Iterator[dict[str, Any]]:
    for document in documents(path):
        if document["kind"] == kind and name in ("", document["metadata"]["name"]):
            yield document


def pods() -> Iterator[Any]:
    for path in MANIFESTS:
        for document in documents(path):
            if document["kind"] in ("Pod", "Deployment"):
                spec = document["spec"] if document["kind"] == "Pod" else document["spec"]["template"]["spec"]
                yield pytest.param(spec, id=f"{path.parent.name}/{path.name}")


def settings(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> Settings:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    path = folder / "config.yaml"
    path.write_text(text)
    return read_settings(Document.load([str(path)]))


@pytest.mark.parametrize("path", ROLES, ids=lambda path: path.parent.name)
def test_no_rule_has_a_wildcard_or_reads_secrets(path: Path) -> None:
    rules = [rule for kind in ("ClusterRole", "Role") for role in of(path, kind) for rule in role["rules"]]
    assert rules
    for rule in rules:
        words = [word for values in rule.values() for word in values]
        assert not [word for word in words if "*" in word]
        assert "secrets" not in words


def test_what_podtrail_needs_beside_a_stock_scheduler_gives_no_account_what_a_scheduler_needs() -> None:
    role, binding = documents(KUBERNETES / "stock" / "rbac.yaml")
    assert (role["kind"], binding["kind"]) == ("ClusterRole", "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert [(subject["kind"], subject["name"]) for subject in binding["subjects"]] == [("User", "podtrail")]
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_the_second_scheduler_has_one_account_with_a_schedulers_roles_and_podtrails() -> None:
    path = KUBERNETES / "stock" / "scheduler-rbac.yaml"
    (account,) = (each["metadata"]["name"] for each in of(path, "ServiceAccount"))
    (deployment,) = of(KUBERNETES / "stock" / "deployment.yaml", "Deployment")
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == account
    bindings = [*of(path, "ClusterRoleBinding"), *of(path, "RoleBinding")]
    assert {subject["name"] for binding in bindings for subject in binding["subjects"]} == {account}
    assert {binding["roleRef"]["name"] for binding in bindings} == {
        "system:kube-scheduler",
        "system:volume-scheduler",
        "system:auth-delegator",
        "extension-apiserver-authentication-reader",
        "podtrail",
    }


def test_kube_scheduler_with_spans_has_its_accounts_lease_and_reads_what_is_mounted() -> None:
    folder = KUBERNETES / "kube-scheduler"
    (config,) = of(folder / "deployment.yaml", "ConfigMap", "podtrail-kube-scheduler")
    (deployment,) = of(folder / "deployment.yaml", "Deployment")
    spec = deployment["spec"]["template"]["spec"]
    election = yaml.safe_load(config["data"]["config.yaml"])["leaderElection"]
    (role,) = of(folder / "rbac.yaml", "Role")
    assert (role["metadata"]["namespace"], role["rules"][0]["resourceNames"]) == (
        election["resourceNamespace"],
        [election["resourceName"]],
    )
    bindings = [*of(folder / "rbac.yaml", "ClusterRoleBinding"), *of(folder / "rbac.yaml", "RoleBinding")]
    assert {subject["name"] for binding in bindings for subject in binding["subjects"]} == {spec["serviceAccountName"]}
    of_host = yaml.safe_load((folder / "host" / "tracing.yaml").read_text(encoding="utf-8"))
    assert yaml.safe_load(config["data"]["tracing.yaml"]) == of_host
    (static,) = of(folder / "static-pod.yaml", "Pod")
    for container, names in (
        (spec["containers"][0], config["data"]),
        (static["spec"]["containers"][0], ["tracing.yaml"]),
    ):
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        files = [flag.partition("=")[2] for flag in container["command"] if "config=" in flag]
        assert all(file.startswith(tuple(mounts)) for file in files)
        assert {f"/etc/podtrail-kube-scheduler/{name}" for name in names} <= set(files)


@pytest.mark.parametrize("spec", list(pods()))
def test_containers_of_ours_run_without_privileges_on_a_root_they_cannot_write(spec: dict[str, Any]) -> None:
    inherited = spec.get("securityContext", {})
    ours = [c for c in spec["containers"] if c["image"].startswith("podtrail:")]
    assert ours
    for container in ours:
        context = inherited | container["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] > 0
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("spec", list(pods()))
def test_everything_that_is_mounted_is_a_volume_of_the_pod(spec: dict[str, Any]) -> None:
    volumes = {volume["name"] for volume in spec["volumes"]}
    for container in spec["containers"]:
        assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes


def test_the_schedulers_configuration_is_right_and_elects_by_a_lease_it_may_use(tmp_path: Path) -> None:
    (config,) = of(KUBERNETES / "scheduler" / "config.yaml", "ConfigMap", "podtrail-scheduler")
    path = tmp_path / "config.yaml"
    path.write_text(config["data"]["config.yaml"])
    (deployment,) = of(KUBERNETES / "scheduler" / "deployment.yaml", "Deployment")
    container, _ = deployment["spec"]["template"]["spec"]["containers"]
    flags = [word for word in container["args"] if word.startswith("--feature-gates=")]
    gates = parse_feature_gates(flag.removeprefix("--feature-gates=") for flag in flags)
    configuration, source = load(str(path), gates)
    assert check(configuration, gates, source) == []
    election = configuration.leader_election
    (role,) = of(KUBERNETES / "scheduler" / "rbac.yaml", "Role")
    assert role["metadata"]["namespace"] == election.resource_namespace
    assert role["rules"][1]["resourceNames"] == [election.resource_name]
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"--config={mounts.pop()}/config.yaml" in container["args"]


def test_podtrail_beside_a_static_pod_reads_the_files_that_are_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (KUBERNETES / "stock" / "host" / "config.yaml").read_text()
    (pod,) = of(KUBERNETES / "stock" / "static-pod.yaml", "Pod")
    (sidecar,) = filter(is_podtrail, pod["spec"]["containers"])
    read = settings(text, tmp_path, monkeypatch, **{each["name"]: each["value"] for each in sidecar["env"]})
    stock = read.receivers["scheduler"].config.kube_scheduler
    assert isinstance(stock, KubeSchedulerConfig)
    assert stock.log is not None
    mounted = tuple(f"{mount['mountPath']}/" for mount in sidecar["volumeMounts"])
    assert str(stock.kubernetes.path()).startswith(mounted)
    assert all(pattern.startswith(mounted) for pattern in stock.log.include)
    probe = sidecar["livenessProbe"]["httpGet"]
    assert host_port(read.extensions["health_check"].config.endpoint) == ("localhost", probe["port"])


def test_podtrail_beside_a_deployment_reads_the_log_that_the_kubelet_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = KUBERNETES / "stock" / "deployment.yaml"
    (deployment,), (config,) = of(path, "Deployment"), of(path, "ConfigMap", "podtrail-stock")
    scheduler, sidecar = deployment["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in sidecar["env"]}
    read = settings(config["data"]["config.yaml"], tmp_path, monkeypatch, **environment)
    stock = read.receivers["scheduler"].config.kube_scheduler
    assert isinstance(stock, KubeSchedulerConfig)
    assert stock.log is not None
    pod = f"{deployment['metadata']['namespace']}_{deployment['metadata']['name']}-5d4f-x2k_0b5e-11"
    for name in ("0.log", "0.log.20261122-130000"):
        log = Path("/var/log/pods", pod, scheduler["name"], name)
        assert any(log.match(pattern) for pattern in stock.log.include)
    assert "/var/log/pods" in {mount["mountPath"] for mount in sidecar["volumeMounts"]}
    assert stock.metrics is not None
