"""The Kubernetes manifests fit the configuration in the image: ports, probes, variables, limits."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podtrail.cli import main
from podtrail.cli.kubectl.arguments import PAGE_PORT
from podtrail.config import Document
from podtrail.config.types import host_port
from podtrail.pipeline.settings import Settings, read_settings
from podtrail.service import SHUTDOWN_SECONDS
from tests.docker.manifests import documents, is_podtrail

DOCKER = Path(__file__).parents[2] / "docker"
MANIFESTS = sorted(
    path
    for room in ("kubernetes", "kubernetes/kube-scheduler")
    for path in (DOCKER / room).glob("*.yaml")
    if path.name != "rbac.yaml"
)
DEFAULT_GRACE = 30


def pod(path: Path) -> dict[str, Any]:
    """Return the Pod's spec in a manifest."""
    (found,) = [document for document in documents(path) if document["kind"] in {"Deployment", "Pod"}]
    spec: dict[str, Any] = found["spec"] if found["kind"] == "Pod" else found["spec"]["template"]["spec"]
    return spec


def sidecar(path: Path) -> dict[str, Any]:
    (found,) = [container for container in pod(path)["containers"] if is_podtrail(container)]
    return dict(found)


def variables(path: Path) -> dict[str, str]:
    """Return the environment of the sidecar."""
    maps = {d["metadata"]["name"]: d["data"] for d in documents(path) if d["kind"] == "ConfigMap"}
    container = sidecar(path)
    given: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        given |= maps[source["configMapRef"]["name"]]
    return given | {entry["name"]: entry["value"] for entry in container.get("env", ())}


@pytest.fixture(params=MANIFESTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def manifest(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


@pytest.fixture
def settings(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The image's configuration as it is read in that Pod."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTLP_HOST", "PROBE_HOST", "MEMORY_LIMIT_MIB"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables(manifest).items():
        monkeypatch.setenv(name, value)
    return read_settings(Document.load([str(DOCKER / "sidecar.yaml")]))


def ports(settings: Settings) -> dict[str, tuple[str, int]]:
    """Return where the configuration listens: host and port."""
    metrics = settings.service.telemetry.metrics.address
    assert metrics is not None
    return {
        "otlp": host_port(settings.receivers["otlp"].config.protocols.grpc.endpoint),
        "health": host_port(settings.extensions["health_check"].config.endpoint),
        "metrics": metrics,
    }


def test_there_are_manifests() -> None:
    assert MANIFESTS


def test_the_configuration_is_right_with_the_variables_that_the_pod_gives(settings: Settings) -> None:
    assert settings.pipelines


def test_named_ports_are_those_that_the_configuration_listens_on(manifest: Path, settings: Settings) -> None:
    for port in sidecar(manifest).get("ports", ()):
        assert port["containerPort"] == ports(settings)[port["name"]][1]


def test_the_probe_reaches_the_health_check(manifest: Path, settings: Settings) -> None:
    container = sidecar(manifest)
    host, health = ports(settings)["health"]
    named = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
    probe = container["livenessProbe"]["httpGet"]
    assert named.get(probe["port"], probe["port"]) == health
    # A probe comes from the kubelet to the Pod's address, unless it says otherwise.
    assert (probe.get("host") == "127.0.0.1") == (host == "localhost")


def test_probes_and_metrics_are_reached_in_pods_of_either_address_family(manifest: Path, settings: Settings) -> None:
    own_network = not pod(manifest).get("hostNetwork", False)
    for name in ("health", "metrics"):
        # Empty is every interface, both families; an address would have to be written differently in each.
        assert ports(settings)[name][0] == ("" if own_network else "localhost")


def test_spans_come_in_on_the_pods_own_loopback_only(settings: Settings) -> None:
    assert ports(settings)["otlp"][0] == "localhost"


def test_kubectl_podtrail_finds_the_page_of_a_sidecar(settings: Settings) -> None:
    is_served_for_port_forwards(settings)


@pytest.mark.parametrize("name", ["deployment.yaml", "host/config.yaml"])
def test_so_it_does_beside_a_stock_scheduler(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://backend.example:4317")
    found = documents(DOCKER / "kubernetes" / "stock" / name)
    (text,) = [
        document.get("data", {}).get("config.yaml") or yaml.safe_dump(document)
        for document in found
        if "receivers" in (yaml.safe_load(document.get("data", {}).get("config.yaml", "{}")) or document)
    ]
    is_served_for_port_forwards(read_settings(Document.from_text(text)))


def is_served_for_port_forwards(settings: Settings) -> None:
    """Assert that there is a page on loopback at the port that `kubectl podtrail` asks, with spans and few of them."""
    assert "viewer" in settings.service.extensions
    viewer = settings.extensions["viewer"].config
    assert host_port(viewer.endpoint) == ("localhost", PAGE_PORT)
    assert viewer.from_pipelines
    assert viewer.max_mib + viewer.max_decisions_mib <= 64


def test_podtrail_refuses_before_the_container_is_killed_for_its_memory(manifest: Path, settings: Settings) -> None:
    limit = sidecar(manifest)["resources"]["limits"]["memory"]
    assert limit.endswith("Mi")
    assert settings.processors["memory_limiter"].config.limit_mib < int(limit.removesuffix("Mi"))


def test_the_end_has_the_time_it_needs(manifest: Path) -> None:
    command, seconds = sidecar(manifest)["lifecycle"]["preStop"]["exec"]["command"]
    assert command == "sleep"
    assert pod(manifest).get("terminationGracePeriodSeconds", DEFAULT_GRACE) > SHUTDOWN_SECONDS + int(seconds)


def test_nothing_is_written_to_a_root_that_is_read_only(settings: Settings) -> None:
    assert not [c for c in settings.exporters.values() if c.factory.type == "file"]


def test_everything_that_is_mounted_is_a_volume_of_the_pod(manifest: Path) -> None:
    spec = pod(manifest)
    volumes = {volume["name"] for volume in spec.get("volumes", ())}
    for container in spec["containers"]:
        assert {mount["name"] for mount in container.get("volumeMounts", ())} <= volumes


@pytest.mark.parametrize("name", ["sidecar.yaml", "kubernetes/stock/deployment.yaml"])
def test_what_the_patch_for_senders_sets_fits_the_configuration_that_podtrail_has_there(
    name: str, tmp_path: Path
) -> None:
    (patch,) = yaml.safe_load_all((DOCKER / "kubernetes" / "gateway" / "sender.patch.yaml").read_text())
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    text = (DOCKER / name).read_text(encoding="utf-8")
    if name.startswith("kubernetes"):
        texts = [one.get("data", {}).get("config.yaml", "") for one in yaml.safe_load_all(text)]
        (text,) = (each for each in texts if "receivers:" in each)
    config = tmp_path / "config.yaml"
    config.write_text(text)
    arguments = [each.replace("/etc/podtrail/config.yaml", str(config)) for each in container["args"]]
    assert arguments.pop(0) == "run"
    environment = {each["name"]: each["value"] for each in container["env"]}
    done = CliRunner().invoke(main, ["validate", *arguments], env=environment)
    assert done.exit_code == 0, done.stderr
    assert "credentials travel to podtrail-gateway.podtrail.svc.cluster.local in plain text" in done.stderr
