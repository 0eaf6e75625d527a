"""`--self-signed` with the shipped manifests and their rights, two replicas, on a real API server."""

import base64
import contextlib
import json
import socket
import ssl
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from podtrail_webhook.certificates import RENEW_BEFORE, VALIDITY, make_certificate, utc_now

from tests.docker.manifests import collection_of, documents
from tests.envtest.control_plane import ControlPlane, Refusal
from tests.webhook.asking import CONFIGURATIONS, MANIFESTS, TRACE_ID, annotation, configuration, create, until
from tests.webhook.conftest import HOST, TRACEPARENT, RunningWebhook, pod

pytestmark = pytest.mark.control_plane
SECRET = "/api/v1/namespaces/podtrail/secrets/podtrail-webhook"
CONFIGURATION = f"{CONFIGURATIONS}/podtrail-webhook"
NAME = "podtrail-webhook.podtrail.svc"
NAMES = (NAME, f"{NAME}.cluster.local", "podtrail-webhook.podtrail")
Replica = Callable[..., RunningWebhook]


@pytest.fixture
def applied(traced: ControlPlane) -> Iterator[ControlPlane]:
    """An API server with what is shipped, but what runs Pods; afterwards without it."""
    made = []
    shipped = [
        each for each in documents(MANIFESTS / "self-signed.yaml") if each["kind"] not in ("Deployment", "Service")
    ]
    for document in [*shipped, configuration()]:
        path = collection_of(document)
        with contextlib.suppress(Refusal) if document["kind"] == "Namespace" else contextlib.nullcontext():
            traced.api.create(path, document)
        made.append((f"{path}/{document['metadata']['name']}", document["kind"]))
    yield traced
    for path, kind in made:
        if kind != "Namespace":  # nobody here finishes its deletion
            with contextlib.suppress(Refusal):
                traced.api.delete(path)


@pytest.fixture
def replica(applied: ControlPlane, run_webhook: Callable[..., RunningWebhook]) -> Replica:
    """Runs one as its ServiceAccount."""
    account = "system:serviceaccount:podtrail:podtrail-webhook"
    kubeconfig = applied.user(account, "system:serviceaccounts", "system:serviceaccounts:podtrail")

    def run(*arguments: str) -> RunningWebhook:
        return run_webhook("--self-signed", f"--kubeconfig={kubeconfig}", "--tls-reload-interval=50ms", *arguments)

    return run


def authorities(plane: ControlPlane) -> bytes:
    """What API servers trust."""
    (webhook,) = plane.api.get(CONFIGURATION)["webhooks"]
    return base64.b64decode(webhook["clientConfig"].get("caBundle", ""))


def shown(webhook: RunningWebhook, trusted: bytes) -> bytes:
    """The certificate that a client gets to see who trusts these authorities."""

    context = ssl.create_default_context(cadata=trusted.decode())
    with (
        socket.create_connection((HOST, webhook.port), 60) as plain,
        context.wrap_socket(plain, server_hostname=NAME) as connection,
    ):
        der = connection.getpeercert(binary_form=True)
    assert der is not None
    return ssl.DER_cert_to_PEM_cert(der).encode()


def held(plane: ControlPlane) -> dict[str, bytes]:
    """What is in the Secret."""
    return {key: base64.b64decode(value) for key, value in (plane.api.get(SECRET).get("data") or {}).items()}


def write(plane: ControlPlane, **data: bytes) -> None:
    encoded = {key.replace("_", "."): base64.b64encode(value).decode() for key, value in data.items()}
    plane.api.patch(SECRET, {"data": encoded})


def test_two_replicas_agree_on_one_certificate_and_the_api_server_calls_them_by_their_service(
    applied: ControlPlane, replica: Replica
) -> None:
    replicas = [replica(), replica()]
    ports = [each.port for each in replicas]
    certificate = held(applied)["tls.crt"]
    assert {shown(each, authorities(applied)) for each in replicas} == {certificate}
    assert authorities(applied) == held(applied)["ca.crt"]
    made = [line for each in replicas for line in each.log if "made a certificate into the Secret" in line]
    assert len(made) == 1

    # There is no kube-proxy: the Service leads to this machine by name. Else the configuration is as it is shipped.
    service = {"metadata": {"name": "podtrail-webhook"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    path = "/api/v1/namespaces/podtrail/services"
    applied.api.create(path, service)
    (webhook,) = applied.api.get(CONFIGURATION)["webhooks"]
    webhook["clientConfig"]["service"]["port"] = ports[1]
    applied.api.patch(CONFIGURATION, {"webhooks": [webhook]})
    namespace = applied.api.namespace("self-signed")

    def annotated() -> bool:
        found = annotation(create(applied.api, namespace, pod(), traceparent=TRACEPARENT))
        applied.api.delete(f"/api/v1/namespaces/{namespace}/pods/web-0")
        return found is not None and TRACE_ID in found

    until(annotated)
    applied.api.delete(f"{path}/podtrail-webhook")


def test_a_certificate_is_renewed_before_it_ends_and_the_former_authority_stays_trusted(
    applied: ControlPlane, replica: Replica
) -> None:
    replicas = [replica(), replica()]
    for each in replicas:
        assert each.port
    old = make_certificate(NAMES, utc_now() - VALIDITY + RENEW_BEFORE + timedelta(seconds=-1))
    write(applied, tls_crt=old.certificate, tls_key=old.key, ca_crt=old.authorities)
    replicas[0].said("took up the certificate", times=2)
    replicas[1].said("took up the certificate", times=2)
    now = held(applied)
    assert now["tls.crt"] != old.certificate
    assert now["ca.crt"].endswith(old.authorities)
    assert authorities(applied) == now["ca.crt"]
    assert {shown(each, now["ca.crt"]) for each in replicas} == {now["tls.crt"]}


def test_what_somebody_writes_over_is_mended(applied: ControlPlane, replica: Replica) -> None:
    webhook = replica()
    assert webhook.port
    bundle = authorities(applied)
    path = "/webhooks/0/clientConfig/caBundle"
    applied.api.request("PATCH", CONFIGURATION, [{"op": "remove", "path": path}], "application/json-patch+json")
    until(lambda: authorities(applied) == bundle)
    write(applied, tls_crt=b"rubbish")
    webhook.said("it can't be read: ")
    webhook.said("took up the certificate", times=2)
    assert shown(webhook, authorities(applied)) == held(applied)["tls.crt"]


def test_without_its_rights_it_waits_says_why_and_is_not_ready(applied: ControlPlane, replica: Replica) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/podtrail/rolebindings"
    binding = applied.api.get(f"{roles}/podtrail-webhook")
    applied.api.delete(f"{roles}/podtrail-webhook")
    webhook = replica()
    webhook.said('cannot get resource .*"secrets', times=2)
    assert webhook.get(webhook.health_port, "/")[0] == 503
    binding["metadata"] = {"name": binding["metadata"]["name"]}
    applied.api.create(roles, binding)
    assert webhook.port
    assert webhook.get(webhook.health_port, "/")[0] == 200


def test_a_secret_that_is_gone_is_not_made_with_the_shipped_rights_and_what_is_shown_serves_on(
    applied: ControlPlane, replica: Replica
) -> None:
    webhook = replica()
    bundle = authorities(applied) if webhook.port else b""
    before = shown(webhook, bundle)
    applied.api.delete(SECRET)
    webhook.said("cannot create resource")
    assert shown(webhook, bundle) == before


def test_who_may_create_the_secret_creates_it_and_the_slower_replica_takes_it(
    applied: ControlPlane, replica: Replica
) -> None:
    applied.api.delete(SECRET)
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/podtrail/roles/podtrail-webhook"
    more = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}
    applied.api.patch(role, {"rules": [*applied.api.get(role)["rules"], more]})
    replicas = [replica(), replica(), replica()]
    assert all(each.port for each in replicas)
    assert len({shown(each, authorities(applied)) for each in replicas}) == 1


def test_the_account_may_do_nothing_else(applied: ControlPlane) -> None:
    api = applied.api_as(
        "system:serviceaccount:podtrail:podtrail-webhook", "system:serviceaccounts", "system:serviceaccounts:podtrail"
    )
    forbidden: list[tuple[str, str, Any]] = [
        ("GET", "/api/v1/namespaces/podtrail/secrets", None),
        ("GET", "/api/v1/namespaces/podtrail/secrets/another", None),
        ("GET", "/api/v1/namespaces/default/pods", None),
        ("GET", CONFIGURATIONS, None),
        ("DELETE", CONFIGURATION, {}),
        ("PATCH", f"{CONFIGURATIONS}/another", {}),
    ]
    for method, path, body in forbidden:
        with pytest.raises(Refusal) as refused:
            api.request(method, path, body, "application/merge-patch+json" if method == "PATCH" else "application/json")
        assert refused.value.code == 403, json.dumps(refused.value.body)
