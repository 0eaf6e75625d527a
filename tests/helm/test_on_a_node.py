"""charts/podtrail on a real node as docs/helm.md says: from an empty cluster to a Pod's story, and back."""

import itertools
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.envtest.control_plane import DEADLINE
from tests.helm.charts import ASSETS, CHART, HELMS, Helm, settings
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


@pytest.fixture(scope="module", params=HELMS)
def helm(
    request: pytest.FixtureRequest, image: Path, shared_node: Node, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Helm]:
    """Each Helm on the node, which is one of a control plane; nothing of podtrail is there before and after."""
    node = shared_node
    with node.enclosure.network():
        node.load(image)
        node.kubectl("label", "--overwrite", "node", node.name, "node-role.kubernetes.io/control-plane=")
        helm = Helm(ASSETS / request.param, tmp_path_factory.mktemp("helm"), node)
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
