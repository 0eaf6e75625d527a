"""The webhook's manifests fit each other, the command and what its configuration promises."""

from pathlib import Path
from typing import Any

import click
import pytest
from podtrail_webhook.command import command
from podtrail_webhook.running import GRACE_SECONDS
from podtrail_webhook.server import PATH

from tests.docker.manifests import KUBERNETES, documents

FOLDER = KUBERNETES / "webhook"
DEPLOYED = [FOLDER / "self-signed.yaml", FOLDER / "cert-manager.yaml"]


@pytest.fixture(params=DEPLOYED, ids=lambda path: path.stem)
def objects(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What a manifest has, by kind."""
    path = request.param
    assert isinstance(path, Path)
    return {each["kind"]: each for each in documents(path)}


@pytest.fixture
def container(objects: dict[str, Any]) -> dict[str, Any]:
    (found,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    return dict(found)


def webhook() -> dict[str, Any]:
    (found,) = documents(FOLDER / "configuration.yaml")[0]["webhooks"]
    return dict(found)


def given(container: dict[str, Any]) -> click.Context:
    """The command as the container calls it."""
    name, *arguments = container["args"]
    assert name == "webhook"
    return command.make_context("webhook", list(arguments))


def test_the_command_knows_the_arguments(container: dict[str, Any]) -> None:
    parameters = given(container).params
    assert parameters["self_signed"] != bool(parameters["tls_cert_file"])


def test_api_servers_reach_the_port_and_path_that_it_listens_on(
    objects: dict[str, Any], container: dict[str, Any]
) -> None:
    service = webhook()["clientConfig"]["service"]
    assert service["path"] == PATH
    assert service["name"] == objects["Service"]["metadata"]["name"]
    assert service["namespace"] == objects["Service"]["metadata"]["namespace"]
    (port,) = objects["Service"]["spec"]["ports"]
    assert port["port"] == service["port"]
    ports = {each["name"]: each["containerPort"] for each in container["ports"]}
    parameters = given(container).params
    assert ports[port["targetPort"]] == int(parameters["endpoint"].rpartition(":")[2])
    assert parameters["health_endpoint"] == f":{ports['health']}"  # of every interface, IPv4 and IPv6
    assert parameters["metrics_endpoint"] == f":{ports['metrics']}"
    assert container["readinessProbe"]["httpGet"]["port"] == "health"


def test_what_the_certificate_is_kept_under_is_what_the_rights_are_for() -> None:
    objects = {each["kind"]: each for each in documents(DEPLOYED[0])}
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    parameters = given(container).params
    (secrets,) = objects["Role"]["rules"]
    (configurations,) = objects["ClusterRole"]["rules"]
    assert secrets["resourceNames"] == [parameters["secret"]] == [objects["Secret"]["metadata"]["name"]]
    assert objects["Secret"]["metadata"]["namespace"] == parameters["namespace"]
    (shipped,) = documents(FOLDER / "configuration.yaml")
    assert configurations["resourceNames"] == [parameters["webhook_configuration"]] == [shipped["metadata"]["name"]]
    assert parameters["service"] == objects["Service"]["metadata"]["name"]
    assert (sorted(secrets["verbs"]), sorted(configurations["verbs"])) == (["get", "update"], ["get", "patch"])


def test_cert_managers_certificate_is_for_the_service_and_is_what_is_mounted_and_injected() -> None:
    objects = {each["kind"]: each for each in documents(DEPLOYED[1])}
    certificate = objects["Certificate"]
    service = webhook()["clientConfig"]["service"]
    assert f"{service['name']}.{service['namespace']}.svc" in certificate["spec"]["dnsNames"]
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    assert pod["volumes"][0]["secret"]["secretName"] == certificate["spec"]["secretName"]
    (shipped,) = documents(FOLDER / "configuration.yaml")
    named = f"{certificate['metadata']['namespace']}/{certificate['metadata']['name']}"
    assert shipped["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == named
    parameters = given(pod["containers"][0]).params
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert {str(Path(parameters[name]).parent) for name in ("tls_cert_file", "tls_private_key_file")} == {
        mount["mountPath"]
    }
    assert not pod["automountServiceAccountToken"]
    assert not {"Role", "ClusterRole"} & objects.keys()


def test_a_webhook_that_is_gone_costs_no_pod_and_no_more_than_a_second() -> None:
    assert webhook()["failurePolicy"] == "Ignore"
    assert webhook()["timeoutSeconds"] == 1
    assert webhook()["sideEffects"] == "None"


def test_neither_the_webhook_nor_kube_system_waits_for_the_webhook(objects: dict[str, Any]) -> None:
    excluded = webhook()["namespaceSelector"]["matchExpressions"][0]
    assert excluded["operator"] == "NotIn"
    assert {"kube-system", objects["Deployment"]["metadata"]["namespace"]} <= set(excluded["values"])


def test_the_container_can_write_nothing_and_is_nobody(objects: dict[str, Any], container: dict[str, Any]) -> None:
    security = container["securityContext"]
    assert security["readOnlyRootFilesystem"]
    assert security["runAsNonRoot"]
    assert security["runAsUser"]
    assert not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert security["seccompProfile"] == {"type": "RuntimeDefault"}
    assert objects["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    assert objects["Deployment"]["spec"]["replicas"] > objects["PodDisruptionBudget"]["spec"]["minAvailable"]


def test_it_is_given_the_time_to_answer_what_is_under_way(objects: dict[str, Any], container: dict[str, Any]) -> None:
    _, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    grace = objects["Deployment"]["spec"]["template"]["spec"].get("terminationGracePeriodSeconds", 30)
    assert grace > GRACE_SECONDS + int(seconds)
