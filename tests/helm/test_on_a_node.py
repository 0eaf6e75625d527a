"""charts/podtrail on a real node as docs/helm.md says: from an empty cluster to a Pod's story, and back."""

import base64
import contextlib
import itertools
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from podtrail.otlp import read_request
from tests.envtest.control_plane import DEADLINE
from tests.helm.charts import ASSETS, CHART, HELMS, Helm, settings
from tests.node.containerd import NODE_ADDRESS
from tests.node.deployment import podtrail_image, rolled_out
from tests.node.node import ACTOR, Node

pytestmark = [pytest.mark.node, pytest.mark.helm]
ROOT = CHART.parents[1]
PAGE = (ROOT / "docs" / "helm.md").read_text("utf-8")
COMMANDS = "".join(re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[:1])
"""The page's first block: install, trace, why."""
_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def image() -> Path:
    """The archive of podtrail's image; asked for before a node is started."""
    return podtrail_image()


@pytest.fixture(scope="module")
def helm(image: Path, shared_node: Node, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Helm]:
    """The newest Helm on the node, which is one of a control plane; nothing of podtrail is there before and after."""
    node = shared_node
    with node.enclosure.network():
        node.load(image)
        node.kubectl("label", "--overwrite", "node", node.name, "node-role.kubernetes.io/control-plane=")
        helm = Helm(ASSETS / HELMS[-1], tmp_path_factory.mktemp("helm"), node)
        yield helm
        helm.run("uninstall", "podtrail", "--namespace=podtrail", "--ignore-not-found", "--wait")
        node.kubectl("label", "node", node.name, "node-role.kubernetes.io/control-plane-")
        names = "podtrail-gateway,podtrail-stock,podtrail-agent,podtrail-scheduler,podtrail-webhook"
        gone = ("--for=delete", f"--timeout={DEADLINE - 10}s")
        node.kubectl("wait", "pod", "-A", f"--selector=app.kubernetes.io/name in ({names})", *gone)
        kinds = "deploy,ds,svc,cm,secret,sa,job,pod,pdb,netpol,lease,clusterrole,clusterrolebinding"
        left = node.kubectl("get", kinds, "-A", "-o", "name").split()
        assert not [name for name in left if "podtrail" in name]
        node.kubectl("delete", "namespace", "podtrail", "--wait", f"--timeout={DEADLINE - 10}s")


@pytest.fixture
def commands(helm: Helm, node: Node, tmp_path: Path) -> dict[str, str]:
    """The environment of a user who has helm, kubectl and podtrail."""
    for name, program in (("helm", helm.program), ("kubectl", node.assets / "kubectl")):
        (tmp_path / name).symlink_to(program)
    path = f"{tmp_path}:{Path(sys.executable).parent}:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(tmp_path), "KUBECONFIG": str(node.kubeconfig)}


def pod(name: str) -> dict[str, Any]:
    probe = {"httpGet": {"port": 8080}, "periodSeconds": 1}
    container = {"name": "main", "image": ACTOR, "args": ["answer", ":8080"], "readinessProbe": probe}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_three_commands_lead_from_an_empty_cluster_to_a_pods_story(
    commands: dict[str, str], node: Node, tmp_path: Path
) -> None:
    assert COMMANDS.count("\n") == 3
    name = f"web-{next(_numbers)}"
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(pod(name)), "utf-8")
    (tmp_path / "charts").symlink_to(ROOT / "charts")
    *before, why = re.sub(r"\bwhy web\b", f"why {name}", COMMANDS).splitlines()

    def user(command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["bash", "-c", command], cwd=tmp_path, env=commands, capture_output=True, text=True, timeout=5 * DEADLINE
        )

    for command in before:
        done = user(command)
        assert done.returncode == 0, done.stdout + done.stderr
    moments = (f"default/{name} is running", "attempt 1: bound, node-1", "container main started", "ready\n")
    end, said = time.monotonic() + DEADLINE, ""
    while not all(moment in said for moment in moments):  # decided 15 s after it came
        assert time.monotonic() < end, said
        done = user(why)
        said = done.stdout + done.stderr
    node.kubectl("delete", "pod", name, "--wait=false")


def test_helm_test_finds_the_gateway_at_work(helm: Helm, node: Node) -> None:
    helm.run("test", "podtrail", "--namespace=podtrail", "--timeout=5m")


def test_a_wrong_configuration_stops_the_upgrade_with_its_key_and_changes_nothing(helm: Helm, node: Node) -> None:
    before = node.api.get("/apis/apps/v1/namespaces/podtrail/deployments/podtrail-gateway")["metadata"]["generation"]
    wrong = settings('gateway.extraConfig={"processors": {"batch": {"timeoot": "1s"}}}')
    done = helm.run("upgrade", "podtrail", str(CHART), "--namespace=podtrail", *wrong, "--timeout=5m", check=False)
    assert done.returncode != 0
    assert "timeoot" in done.stdout + done.stderr
    after = node.api.get("/apis/apps/v1/namespaces/podtrail/deployments/podtrail-gateway")["metadata"]["generation"]
    assert after == before


def test_an_upgrade_from_the_previous_chart_loses_nothing_that_a_durable_gateway_holds(
    helm: Helm, node: Node, tmp_path: Path
) -> None:
    previous, volume = tmp_path / "podtrail", tmp_path / "volume"
    shutil.copytree(CHART, previous)
    about = (previous / "Chart.yaml").read_text("utf-8")
    (previous / "Chart.yaml").write_text(about.replace("version: 0.1.0", "version: 0.0.9"), "utf-8")
    volume.mkdir()
    volume.chmod(0o777)
    spec = {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": str(volume)}}
    spec |= {"claimRef": {"namespace": "podtrail", "name": "podtrail-gateway"}}
    node.api.create("/api/v1/persistentvolumes", {"metadata": {"name": "volume"}, "spec": spec})
    with backend(NODE_ADDRESS) as (address, came):
        # Nothing is decided before the upgrade: what is sent now is pending then.
        waits = 'gateway.extraConfig={"processors": {"tail_sampling": {"decision_wait": "45s", "policies": %s}}}'
        keeps = waits % '[{"name": "all", "type": "always_sample"}]'
        values = settings("gateway.persistence.enabled=true", f"backend.endpoint={address}", keeps)
        command = ("--namespace=podtrail", *values, "--wait", "--timeout=8m")
        helm.run("upgrade", "podtrail", str(previous), *command)
        service = node.api.get("/api/v1/namespaces/podtrail/services/podtrail-gateway")["spec"]["clusterIP"]
        token = node.api.get("/api/v1/namespaces/podtrail/secrets/podtrail-gateway")["data"]["token"]
        sent = {send(service, base64.b64decode(token).decode()) for _ in range(100)}
        assert not sent & set(came.queue)
        helm.run("upgrade", "podtrail", str(CHART), *command, "--set=gateway.resources.requests.cpu=101m")
        while sent:
            sent.discard(came.get(timeout=DEADLINE))
    helm.run("rollback", "podtrail", "1", "--namespace=podtrail", "--wait", "--timeout=8m")
    node.api.delete("/api/v1/persistentvolumes/volume")


@contextlib.contextmanager
def backend(host: str) -> Iterator[tuple[str, "queue.Queue[str]"]]:
    """The address of an OTLP server, and the ids of traces that come to it."""
    came: queue.Queue[str] = queue.Queue()

    def take(request: bytes, _: grpc.ServicerContext) -> bytes:
        for group in read_request(request).groups:
            came.put(group.trace_id.hex())
        return b""

    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(take)
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
    port = server.add_insecure_port(f"{host}:0")
    server.start()
    try:
        yield f"http://{host}:{port}", came
    finally:
        server.stop(None).wait()


def send(host: str, token: str) -> str:
    """Send a span of a new trace to a gateway, and return the trace's id."""
    trace, now = os.urandom(16).hex(), str(time.time_ns())
    span = {"traceId": trace, "spanId": os.urandom(8).hex(), "name": "pending", "startTimeUnixNano": now}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span | {"endTimeUnixNano": now}]}]}]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"http://{host}:4318/v1/traces", body, headers)
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        assert answer.status == 200
    return trace


def test_all_modes_run_and_a_rollback_takes_them_away(helm: Helm, node: Node) -> None:
    node.release_tracing()  # the agent's port
    modes = [f"{mode}.enabled=true" for mode in ("agent", "scheduler", "webhook")]
    extra = 'scheduler.extraConfig={"processors": {"batch": {"timeout": "1s"}}}'
    command = ("upgrade", "podtrail", str(CHART), "--namespace=podtrail", *settings(*modes, extra))
    helm.run(*command, "--wait", "--timeout=8m")
    rolled_out(node, "kube-system", "daemonset/podtrail-agent", "deployment/podtrail-scheduler")
    rolled_out(node, "podtrail", "deployment/podtrail-webhook")
    name = f"ours-{next(_numbers)}"
    wanted = pod(name)
    wanted["spec"]["schedulerName"] = "podtrail-scheduler"
    node.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(wanted))
    node.kubectl("wait", f"pod/{name}", "--for=condition=Ready", f"--timeout={DEADLINE - 10}s")
    node.kubectl("delete", "pod", name, "--wait=false")
    helm.run("rollback", "podtrail", "1", "--namespace=podtrail", "--wait", "--timeout=8m")
    left = node.kubectl("get", "deploy,ds", "-A", "-o", "name").split()
    assert sorted(each for each in left if "podtrail" in each) == [
        "daemonset.apps/podtrail-stock",
        "deployment.apps/podtrail-gateway",
    ]
