"""charts/podtrail by itself: what Helm makes of it is valid, confined and right, and what is wrong is refused."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from podtrail.cli import main
from tests.helm.charts import ASSETS, CHART, MODES, SCHEMAS, Helm, pods
from tools.docs import manifests

pytestmark = pytest.mark.helm
WRONG = {
    "gateway.replica=2": "/gateway': additional properties 'replica' not allowed",
    "agent.resources.limits.memory=lots": "/agent/resources/limits/memory'",
    "image.digest=sha256:1": "/image/digest'",
    "image.pullPolicy=Sometimes": "/image/pullPolicy'",
    "gateway.extraConfig.procesors.batch.x=1": "/gateway/extraConfig': additional properties 'procesors' not allowed",
    "stock.extraConfig.exporters.otlp_grpc=1": "/stock/extraConfig/exporters/otlp_grpc'",
    "backend.endpoint=otel:4317": "/backend/endpoint'",
    "scheduler.schedulerName=default-scheduler": "/scheduler/schedulerName'",
    "webhook.replicas=1": "/webhook/replicas'",
    "systemNamespace=Kube_System": "/systemNamespace'",
    "token.value=short": "/token/value'",
    "agents.enabled=true": "additional properties 'agents' not allowed",
    "monitoring.enabled=true": "monitoring.enabled: the cluster has no monitoring.coreos.com/v1",
    "webhook.enabled=true,webhook.certManager=true": "webhook.certManager: the cluster has no cert-manager.io/v1",
    "scheduler.enabled=true,gateway.enabled=false": "backend.endpoint: a scheduler without a gateway needs",
    "gateway.autoscaling.enabled=true": "gateway.autoscaling.enabled: several gateways share a load only by Kafka",
    "gateway.replicas=2": "gateway.replicas: several gateways share a load only by Kafka",
}


def test_lint_finds_nothing(helm: Helm) -> None:
    helm.run("lint", "--strict", str(CHART))


@pytest.mark.parametrize("mode", MODES)
def test_the_objects_of_a_mode_fit_the_schemas_of_three_minor_releases(helm: Helm, mode: str, tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    path.write_text(yaml.safe_dump_all(helm.template(*MODES[mode])), "utf-8")
    for version in SCHEMAS:
        location = f"-schema-location={ASSETS / 'schemas' / version}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
        foreign = "-skip=ServiceMonitor,PrometheusRule,Certificate,Issuer"
        command = [str(ASSETS / "kubeconform"), "-strict", location, foreign, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("mode", MODES)
def test_the_configuration_of_a_mode_is_right(helm: Helm, mode: str, tmp_path: Path) -> None:
    environment = {"NODE_NAME": "node-1", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://otel.example:4317"}
    for each in helm.template(*MODES[mode]):
        text = each.get("data", {}).get("config.yaml", "") if each["kind"] == "ConfigMap" else ""
        if "pipelines:" not in text:
            continue
        path = tmp_path / "config.yaml"
        path.write_text(text, "utf-8")
        done = CliRunner().invoke(main, ["validate", "--config", str(path)], env=environment)
        assert done.exit_code == 0, done.output
        if "store" in mode:
            assert yaml.safe_load(text)["service"]["pipelines"]["traces"]["durable"] == "file_storage"


@pytest.mark.parametrize("mode", MODES)
def test_every_container_is_confined_as_pod_security_restricted_demands(helm: Helm, mode: str) -> None:
    found = pods(helm.template(*MODES[mode]))
    assert found
    for pod in found:
        assert not pod.get("initContainers")  # a scheduler would wait for one
        for container in pod["containers"]:
            security = {**pod["securityContext"], **container["securityContext"]}
            assert security["runAsNonRoot"]
            assert security["readOnlyRootFilesystem"]
            assert not security["allowPrivilegeEscalation"]
            assert security["capabilities"] == {"drop": ["ALL"]}
            assert security["seccompProfile"] == {"type": "RuntimeDefault"}
            assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize(("values", "said"), WRONG.items(), ids=str)
def test_wrong_values_are_refused_with_their_key(helm: Helm, values: str, said: str) -> None:
    done = helm.run("template", "podtrail", str(CHART), f"--set={values}", check=False)
    assert done.returncode != 0
    assert said in done.stderr


def test_an_image_by_digest_is_the_image_of_every_container_of_ours(helm: Helm) -> None:
    digest = f"sha256:{'0a' * 32}"
    values = ("image.repository=registry.example/podtrail", f"image.digest={digest}", "image.tag=ignored")
    found = pods(helm.template(*MODES["all of it"], *values))
    images = {container["image"] for pod in found for container in pod["containers"]}
    assert images == {f"registry.example/podtrail@{digest}"}


def test_a_scheduler_starts_though_all_that_podtrail_wants_is_missing(helm: Helm) -> None:
    values = (*MODES["scheduler with a gateway"], 'scheduler.extraConfig={"processors": {"batch": {"x": 1}}}')
    (deployment,) = (
        each
        for each in helm.template(*values)
        if each["kind"] == "Deployment" and each["metadata"]["name"] == "podtrail-scheduler"
    )
    pod = deployment["spec"]["template"]["spec"]
    scheduler, podtrail = pod["containers"]
    mounted = {mount["name"] for mount in scheduler["volumeMounts"]}
    assert [each["name"] for each in pod["volumes"] if each["name"] in mounted] == ["config"]
    for volume in pod["volumes"]:
        source = volume.get("configMap") or volume.get("secret")
        assert volume["name"] in mounted or source["optional"]
    assert "--config=/etc/podtrail-extra/config.yaml" in podtrail["args"]
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 1


def test_the_token_is_one_and_a_given_one_is_kept(helm: Helm) -> None:
    def tokens(*values: str) -> list[Any]:
        found = (each for each in helm.template(*values) if each["kind"] == "Secret")
        return [(each["metadata"]["namespace"], each["data"]["token"]) for each in found if "data" in each]

    (here, random), (there, same) = tokens()
    assert (here, there) == ("podtrail", "kube-system")
    assert random == same
    assert len(tokens("systemNamespace=podtrail")) == 1
    assert {token for _, token in tokens(f"token.value={'t' * 32}")} == {"dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHR0dHQ="}
    assert tokens("token.create=false") == []


def test_in_another_namespace_every_address_leads_there(helm: Helm) -> None:
    modes = ("agent", "scheduler", "webhook", "monitoring")
    values = [f"--set={mode}.enabled=true" for mode in modes]
    apis = ("--api-versions=monitoring.coreos.com/v1", "--api-versions=cert-manager.io/v1")
    for more in ("webhook.certManager=false", "webhook.certManager=true"):
        said = helm.run("template", "other", str(CHART), "-n=tracing", *values, f"--set={more}", *apis).stdout
        written = re.sub(r"\$\{env:GATEWAY:-[^}]*\}", "", said)  # what it is where GATEWAY is not set
        assert not re.findall(r"namespace: podtrail\b|\.podtrail\.svc|podtrail/podtrail-webhook", written)
        assert said.count("http://podtrail-gateway.tracing.svc.cluster.local:4317") == 3


def test_runbooks_and_dashboards_are_those_of_docker_monitoring(helm: Helm) -> None:
    found = helm.template("monitoring.enabled=true", "monitoring.runbooks=https://git.example/runbooks/")
    (rule,) = (each for each in found if each["kind"] == "PrometheusRule")
    urls = re.findall(r"https://\S+?\.md", json.dumps(rule))
    assert urls
    assert all(url.startswith("https://git.example/runbooks/") and "//" not in url[8:] for url in urls)
    (boards,) = (each for each in found if each["metadata"]["name"] == "podtrail-dashboards")
    assert sorted(boards["data"]) == sorted(path.name for path in (CHART / "files" / "dashboards").iterdir())


def test_the_manifests_of_docker_are_what_the_chart_makes(helm: Helm) -> None:
    root = CHART.parents[1]
    for path, text in manifests.rendered(root, helm.program).items():
        assert path.read_text("utf-8") == text, f"{path.relative_to(root)} is stale, run: ./dev docs"
