"""Releases of charts/podtrail on a real API server: installed, upgraded, rolled back, and nothing is left of them."""

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.envtest.control_plane import DEADLINE, ControlPlane, Refusal
from tests.helm.charts import ASSETS, CHART, CRDS, HELMS, MODES, Helm, settings

pytestmark = [pytest.mark.control_plane, pytest.mark.helm]
BARE = ("monitoring", "webhook of cert-manager", "all of it")
"""Modes that want what a bare cluster has not, or whose Job no node runs here."""
HERE = "/api/v1/namespaces/podtrail"


@pytest.fixture(scope="module", params=HELMS)
def helm(
    request: pytest.FixtureRequest,
    start_control_plane: Callable[..., ControlPlane],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Helm]:
    """Each Helm with a control plane of its own, as most names in charts are fixed."""
    # Without a controller-manager nothing takes the finalizer of a claim away.
    plane = start_control_plane(apiserver=["--disable-admission-plugins=StorageObjectInUseProtection"])
    plane.api.namespace("podtrail")
    yield Helm(ASSETS / request.param, tmp_path_factory.mktemp("helm"), plane)
    plane.stop()


@pytest.fixture
def cluster(helm: Helm) -> ControlPlane:
    """The control plane of Helm."""
    assert helm.cluster is not None
    return helm.cluster


@pytest.fixture
def release(helm: Helm, cluster: ControlPlane) -> Iterator[Callable[..., Any]]:
    """Runs install or upgrade with values; what it made is uninstalled, and nothing is left."""
    before = objects(cluster)

    def run(action: str, *values: str, chart: Path = CHART, check: bool = True) -> Any:
        return helm.run(action, "podtrail", str(chart), "--namespace=podtrail", *settings(*values), check=check)

    yield run
    helm.run("uninstall", "podtrail", "--namespace=podtrail", "--ignore-not-found")
    assert objects(cluster) - before == set()


def objects(cluster: ControlPlane) -> set[str]:
    """Return the path of every object that the API server can list, but of Events, which end by themselves."""
    api, found = cluster.api, set()
    groups = [version["groupVersion"] for group in api.get("/apis")["groups"] for version in group["versions"]]
    for base in ("/api/v1", *(f"/apis/{group}" for group in groups)):
        for resource in api.get(base)["resources"] or ():
            if "list" in resource["verbs"] and resource["name"] != "events":
                for each in api.get(f"{base}/{resource['name']}")["items"] or ():
                    found.add(
                        f"{base}/{each['metadata'].get('namespace')}/{resource['name']}/{each['metadata']['name']}"
                    )
    return {path for path in found if "kube-apiserver" not in path}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in BARE])
def test_a_mode_is_installed_upgraded_rolled_back_and_leaves_nothing(
    release: Callable[..., Any], helm: Helm, cluster: ControlPlane, mode: str, tmp_path: Path
) -> None:
    previous = tmp_path / "podtrail"
    shutil.copytree(CHART, previous)
    about = (previous / "Chart.yaml").read_text("utf-8")
    (previous / "Chart.yaml").write_text(about.replace('"0.1.0"', '"0.0.9"').replace(": 0.1.0", ": 0.0.9"), "utf-8")
    values = [value for value in MODES[mode] if "extraConfig" not in value and "autoscaling" not in value]
    said = release("install", *values, chart=previous)
    assert "podtrail 0.0.9 is installed" in said.stdout
    first = images(cluster)
    assert first == {"podtrail:0.0.9"}
    release("upgrade", *values, "image.pullPolicy=Always")
    assert images(cluster) == {"podtrail:0.1.0"}
    helm.run("rollback", "podtrail", "1", "--namespace=podtrail")
    assert images(cluster) == first


def images(cluster: ControlPlane) -> set[str]:
    """Return those of all workloads."""
    lists = (cluster.api.get(f"/apis/apps/v1/{kind}")["items"] for kind in ("daemonsets", "deployments"))
    pods = (each["spec"]["template"]["spec"] for found in lists for each in found)
    return {container["image"] for pod in pods for container in pod["containers"]}


def test_an_upgrade_keeps_the_token_the_certificate_and_the_lease(
    release: Callable[..., Any], cluster: ControlPlane
) -> None:
    values = ("webhook.enabled=true", "scheduler.enabled=true")
    release("install", *values)
    token = cluster.api.get(f"{HERE}/secrets/podtrail-gateway")["data"]["token"]
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/podtrail-scheduler"
    hooks = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/podtrail-webhook"
    # What the webhook and a leader write while they run.
    cluster.api.patch(f"{HERE}/secrets/podtrail-webhook", {"data": {"tls.crt": "YQ=="}})
    written = {"name": "webhook.trace-context.podtrail", "clientConfig": {"caBundle": certificate(cluster)}}
    cluster.api.patch(hooks, {"webhooks": [written]}, "strategic-merge")
    cluster.api.patch(lease, {"spec": {"holderIdentity": "one"}})
    release("upgrade", *values, "webhook.replicas=3")
    assert cluster.api.get(f"{HERE}/secrets/podtrail-gateway")["data"]["token"] == token
    assert cluster.api.get("/api/v1/namespaces/kube-system/secrets/podtrail-gateway")["data"]["token"] == token
    assert cluster.api.get(f"{HERE}/secrets/podtrail-webhook")["data"]["tls.crt"] == "YQ=="
    assert cluster.api.get(hooks)["webhooks"][0]["clientConfig"]["caBundle"]
    assert cluster.api.get(lease)["spec"]["holderIdentity"] == "one"


def certificate(cluster: ControlPlane) -> str:
    """Return the cluster's authority, as a caBundle is written."""
    config = yaml.safe_load(cluster.kubeconfig.read_text("utf-8"))
    return str(config["clusters"][0]["cluster"]["certificate-authority-data"])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("gateway.replica=2",), "/gateway': additional properties 'replica' not allowed"),
        (("monitoring.enabled=true",), "the cluster has no monitoring.coreos.com/v1"),
        (("webhook.enabled=true", "webhook.certManager=true"), "the cluster has no cert-manager.io/v1"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_installed_leaves_nothing_and_is_one_line(
    release: Callable[..., Any], cluster: ControlPlane, values: tuple[str, ...], said: str
) -> None:
    before = objects(cluster)
    done = release("install", *values, check=False)
    assert done.returncode != 0
    assert said in done.stderr
    assert objects(cluster) == before


def test_who_may_not_install_is_told_what_is_missing(cluster: ControlPlane, helm: Helm) -> None:
    user = f"--kubeconfig={cluster.user('nobody-in-particular')}"
    done = helm.run("install", "podtrail", str(CHART), "--namespace=podtrail", user, check=False)
    assert done.returncode != 0
    assert 'User "nobody-in-particular" cannot' in done.stderr


@pytest.fixture
def operators(cluster: ControlPlane) -> None:
    """The custom resources of the Prometheus operator and of cert-manager, which stay until the cluster ends."""
    made = []
    for name in CRDS:
        text = (ASSETS / "crds" / f"{name}.yaml").read_text("utf-8")
        cluster.api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.load(text, yaml.CSafeLoader))
        group, plural = name.split("_")
        made.append(f"/apis/{group}/v1/{plural}")
    until(lambda: all(served(cluster, path) for path in made))


def until(done: Callable[[], bool]) -> None:
    """Return once it is done."""
    end = time.monotonic() + DEADLINE
    while not done():
        assert time.monotonic() < end


def served(cluster: ControlPlane, path: str) -> bool:
    """Return whether objects of a new kind can be listed: 404 and 429 come first."""
    try:
        return bool(cluster.api.get(path))
    except Refusal:
        return False


@pytest.mark.usefixtures("operators")
def test_with_their_operators_monitoring_and_certificates_are_what_these_expect(
    release: Callable[..., Any], cluster: ControlPlane
) -> None:
    release("install", "monitoring.enabled=true", "webhook.enabled=true", "webhook.certManager=true")
    monitor = cluster.api.get("/apis/monitoring.coreos.com/v1/namespaces/podtrail/servicemonitors/podtrail")
    wanted = monitor["spec"]["selector"]["matchLabels"]
    services = cluster.api.get("/api/v1/services")["items"]
    labels = [each["metadata"].get("labels", {}) for each in services]
    assert sum(wanted.items() <= each.items() for each in labels) == 3  # gateway, stock, webhook
