"""--wait on a control plane without nodes: the tests write what scheduler, kubelet and controllers would."""

import asyncio
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from podtrail_extensions.viewer import FACTORY

from podtrail.component import Context
from podtrail.testing.attempts import MadeAttempt
from tests.cli.trace.conftest import Done, Start, manifest, pod, until
from tests.envtest.control_plane import ControlPlane, Refusal

pytestmark = pytest.mark.control_plane
Trace = Callable[..., Done]


class Cluster:
    """What controllers and kubelets do, in a namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self.api = plane.api
        self.namespace = namespace
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.apps = f"/apis/apps/v1/namespaces/{namespace}"

    def there(self, path: str) -> Any:
        """An object, once it is there."""

        def read() -> Any:
            try:
                return self.api.get(path)
            except Refusal as refusal:
                if refusal.code != 404:
                    raise
                return None

        return until(read)

    def bind(self, name: str) -> None:
        """As a scheduler does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": "node-of-tests"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        self.api.create(f"{self.pods}/{name}/binding", body)

    def tell(self, name: str, ready: bool = False, **status: Any) -> None:
        """As a kubelet does."""
        condition = {"type": "Ready", "status": str(ready)}
        running = {"name": "c", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "ready": ready}
        rest = {"image": "i", "imageID": "i", "restartCount": 0}
        whole = {"conditions": [condition], "containerStatuses": [running | rest]} | status
        self.api.patch(f"{self.pods}/{name}/status", {"status": whole})

    def own(self, owner: Any, collection: str, body: dict[str, Any]) -> Any:
        """As a controller does: makes an object for another."""
        reference = {key: owner["metadata"][key] for key in ("name", "uid")} | {"controller": True}
        reference |= {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
        body["metadata"]["ownerReferences"] = [reference]
        return self.api.create(collection, body)


@pytest.fixture
def cluster(plane: ControlPlane, place: str) -> Cluster:
    return Cluster(plane, place)


@pytest.fixture
def made(start: Start, kubectl: Path, place: str, tmp_path: Path) -> Callable[..., Any]:
    """Starts the creation of objects with --wait."""

    def it(*objects: Any, timeout: str = "60s", options: tuple[object, ...] = (), environ: Any = None) -> Any:
        path = manifest(tmp_path / "x.json", *objects)
        given = ("--wait", "--timeout", timeout, *options)
        return start(*given, "--", kubectl, "-n", place, "create", "-f", path, environ=environ)

    return it


def ended(process: Any) -> Done:
    out, told = process.communicate(timeout=120)
    return Done(process.returncode, out, told)


def deployment(replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def replica_set(of: dict[str, Any]) -> dict[str, Any]:
    spec = {key: of["spec"][key] for key in ("replicas", "selector", "template")}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1"}, "spec": spec}


def test_it_ends_when_the_pod_is_ready_and_tells_each_step(made: Any, cluster: Cluster) -> None:
    process = made(pod("web"))
    cluster.there(f"{cluster.pods}/web")
    cluster.bind("web")
    cluster.tell("web")
    cluster.tell("web", ready=True)
    done = ended(process)
    assert done.code == 0, done.told
    steps = r"\(created [\d.]+ s, scheduled on node-of-tests [\d.]+ s, started [\d.]+ s\)"
    said = rf"podtrail: {cluster.namespace}/web ready [\d.]+ s after the command began {steps}\n"
    assert re.search(said, done.told), done.told


def test_a_pod_that_has_done_its_work_is_as_good_as_a_ready_one(made: Any, cluster: Cluster) -> None:
    process = made(pod("once"))
    cluster.there(f"{cluster.pods}/once")
    cluster.bind("once")
    cluster.tell("once", phase="Succeeded")
    done = ended(process)
    assert done.code == 0, done.told
    assert "/once succeeded " in done.told


def test_pods_of_a_deployment_are_found_through_its_replica_set_and_no_others(made: Any, cluster: Cluster) -> None:
    process = made(deployment(2))
    web = cluster.there(f"{cluster.apps}/deployments/web")
    stranger = replica_set(web)
    stranger["metadata"]["name"] = "stranger"
    other = cluster.api.create(f"{cluster.apps}/replicasets", stranger)
    cluster.own(other, cluster.pods, pod("not-ours"))
    cluster.api.create(cluster.pods, pod("of-nobody"))
    middle = cluster.own(web, f"{cluster.apps}/replicasets", replica_set(web))
    uids = {}
    for name in ("web-1-a", "web-1-b"):
        uids[name] = cluster.own(middle, cluster.pods, pod(name))["metadata"]["uid"]
        cluster.bind(name)
        cluster.tell(name, ready=True)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
    cluster.api.patch(f"{cluster.apps}/deployments/web/status", {"status": counts | {"observedGeneration": 1}})
    done = ended(process)
    assert done.code == 0, done.told
    owner = f"Deployment {cluster.namespace}/web"
    listed = re.findall(r"  Pod (\S+)  uid (\S+)  of (.*)", done.told)
    assert sorted(listed) == [(f"{cluster.namespace}/{name}", uid, owner) for name, uid in sorted(uids.items())]
    assert "not-ours" not in done.told
    assert "of-nobody" not in done.told


def test_a_pod_that_failed_and_was_replaced_keeps_nobody_waiting(made: Any, cluster: Cluster) -> None:
    template = {"spec": {**pod("")["spec"], "restartPolicy": "Never"}}
    process = made(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": {"template": template}}
    )
    jobs = f"/apis/batch/v1/namespaces/{cluster.namespace}/jobs"
    job = cluster.there(f"{jobs}/job")
    for name, phase in (("job-a", "Failed"), ("job-b", "Succeeded")):
        cluster.own(job, cluster.pods, pod(name))
        cluster.bind(name)
        cluster.tell(name, phase=phase)
    counts = {"failed": 1, "succeeded": 1, "startTime": "2026-01-01T00:00:00Z"}
    cluster.api.patch(f"{jobs}/job/status", {"status": counts})
    done = ended(process)
    assert done.code == 0, done.told
    assert "/job-a failed " in done.told
    assert "/job-b succeeded " in done.told


def test_a_pod_that_is_deleted_and_made_again_under_its_name_is_waited_for(made: Any, cluster: Cluster) -> None:
    spec = {key: deployment(1)["spec"][key] for key in ("replicas", "selector", "template")}
    process = made({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec})
    path = f"{cluster.apps}/statefulsets/web"
    owner = cluster.there(path)
    first = cluster.own(owner, cluster.pods, pod("web-0"))["metadata"]["uid"]
    cluster.api.delete(f"{cluster.pods}/web-0?gracePeriodSeconds=0")
    second = cluster.own(owner, cluster.pods, pod("web-0"))["metadata"]["uid"]
    cluster.bind("web-0")
    cluster.tell("web-0", ready=True)
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    cluster.api.patch(f"{path}/status", {"status": counts | {"observedGeneration": 1}})
    done = ended(process)
    assert done.code == 0, done.told
    assert first != second
    assert f"  Pod {cluster.namespace}/web-0  uid {second}  of StatefulSet {cluster.namespace}/web\n" in done.told


def test_an_api_server_that_restarts_meanwhile_is_asked_again(
    start: Start, start_control_plane: Callable[..., ControlPlane], kubectl: Path, tmp_path: Path
) -> None:
    mortal = start_control_plane()
    here = Cluster(mortal, mortal.api.namespace("restarts"))
    x = manifest(tmp_path / "x.json", pod("web"))
    environ = {"KUBECONFIG": str(mortal.kubeconfig)}
    process = start("--wait", "--", kubectl, "-n", here.namespace, "create", "-f", x, environ=environ)
    assert process.stdout is not None
    assert process.stdout.readline() == "pod/web created\n"
    mortal.stop_one("kube-apiserver", kill=True)
    mortal.start_apiserver()
    here.bind("web")
    here.tell("web", ready=True)
    done = ended(process)
    assert done.code == 0, done.told
    assert f"{here.namespace}/web ready " in done.told
    mortal.stop()


def test_without_wait_the_pods_that_come_at_once_are_told(
    start: Start, kubectl: Path, cluster: Cluster, tmp_path: Path
) -> None:
    x = manifest(tmp_path / "x.json", deployment(1))
    # The command lasts until its Pod is there, so that this doesn't depend on how fast anything is.
    script = f'"$@"; while ! {kubectl} -n {cluster.namespace} get pod web-1-a; do sleep 0.1; done'
    process = start("--", "sh", "-c", script, "sh", kubectl, "-n", cluster.namespace, "create", "-f", x)
    web = cluster.there(f"{cluster.apps}/deployments/web")
    middle = cluster.own(web, f"{cluster.apps}/replicasets", replica_set(web))
    uid = cluster.own(middle, cluster.pods, pod("web-1-a"))["metadata"]["uid"]
    done = ended(process)
    assert f"  Pod {cluster.namespace}/web-1-a  uid {uid}  of Deployment {cluster.namespace}/web\n" in done.told


def test_what_is_not_ready_in_time_is_told_with_what_it_waits_for_and_the_last_warning(
    made: Any, cluster: Cluster
) -> None:
    process = made(pod("big"), deployment(3), timeout="4s")
    big = cluster.there(f"{cluster.pods}/big")
    message = "0/3 nodes are available: 3 Insufficient cpu."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    cluster.api.patch(f"{cluster.pods}/big/status", {"status": {"conditions": [condition]}})
    involved = {"kind": "Pod", "namespace": cluster.namespace, "name": "big", "uid": big["metadata"]["uid"]}
    event = {"metadata": {"name": "big.1"}, "involvedObject": involved, "type": "Warning", "reason": "FailedScheduling"}
    cluster.api.create(f"/api/v1/namespaces/{cluster.namespace}/events", event | {"message": "said\x1b[31m otherwise"})
    done = ended(process)
    assert done.code == 1
    assert f"podtrail: {cluster.namespace}/big waits: Unschedulable: {message}\n" in done.told
    assert f"    not ready: Unschedulable: {message}\n" in done.told
    assert f"Deployment {cluster.namespace}/web: 0 of 3 Pods seen so far" in done.told
    assert "    last warning: FailedScheduling: said\\x1b[31m otherwise\n" in done.told
    assert f"Deployment {cluster.namespace}/web does not have all its Pods ready yet" in done.told


@pytest.mark.parametrize("end", ["failed", "deleted"])
def test_a_pod_that_never_will_be_ready_ends_the_wait_at_once(end: str, made: Any, cluster: Cluster) -> None:
    process = made(pod("bad"), timeout="10m")
    cluster.there(f"{cluster.pods}/bad")
    cluster.bind("bad")
    container = {"name": "c", "image": "i", "imageID": "i", "restartCount": 0, "ready": False}
    cluster.tell("bad", containerStatuses=[container | {"state": {"waiting": {"reason": "ImagePullBackOff"}}}])
    while "/bad waits: " not in process.stderr.readline():  # until it follows the Pod
        assert process.poll() is None
    if end == "failed":
        state = {"terminated": {"exitCode": 3, "reason": "Error"}}
        cluster.tell("bad", phase="Failed", containerStatuses=[container | {"state": state}])
    else:
        cluster.api.delete(f"{cluster.pods}/bad")
    done = ended(process)
    assert done.code == 1
    assert f"/bad {end} " in done.told
    assert ("    not ready: container c: exit code 3" if end == "failed" else "    not ready: ") in done.told


def test_a_failed_command_is_not_waited_for(made: Any, cluster: Cluster) -> None:
    cluster.api.create(cluster.pods, pod("twice"))
    done = ended(made(pod("fresh"), pod("twice"), timeout="90s"))
    assert done.code == 1
    assert "AlreadyExists" in done.told
    assert f"  Pod {cluster.namespace}/fresh  uid " in done.told


def test_ctrl_c_ends_the_wait_and_tells_what_is_known(made: Any, cluster: Cluster) -> None:
    process = made(pod("slow"), timeout="90s")
    assert process.stdout.readline() == "pod/slow created\n"
    assert process.stderr.readline().startswith("podtrail: trace ")
    process.send_signal(signal.SIGINT)
    done = ended(process)
    assert done.code == 130
    assert "    not ready: " in done.told


def test_who_may_create_but_not_watch_is_told_so(made: Any, plane: ControlPlane, cluster: Cluster) -> None:
    role = {"metadata": {"name": "creates"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]}]}
    of_roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{cluster.namespace}"
    cluster.api.create(f"{of_roles}/roles", role)
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "maker"}
    to = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "creates"}
    cluster.api.create(f"{of_roles}/rolebindings", {"metadata": {"name": "creates"}, "roleRef": to, "subjects": [user]})
    process = made(pod("web"), timeout="3s", environ={"KUBECONFIG": str(plane.user("maker"))})
    done = ended(process)
    assert done.code == 1
    assert f'not known: {cluster.pods}: pods is forbidden: User "maker" cannot list resource "pods"' in done.told
    assert "Traceback" not in done.told


def test_a_running_page_tells_the_stories(start: Start, kubectl: Path, cluster: Cluster, tmp_path: Path) -> None:
    async def with_a_page() -> None:
        settings = FACTORY.Config.model_validate({"endpoint": "localhost:0", "otlp_endpoint": "localhost:0"})
        async with FACTORY.create(settings, Context(id="viewer")) as viewer:
            x = manifest(tmp_path / "x.json", pod("web"))
            options = ("--wait", "--endpoint", viewer.page)
            process = start(*options, "--", kubectl, "-n", cluster.namespace, "create", "-f", x)
            uid = (await asyncio.to_thread(cluster.there, f"{cluster.pods}/web"))["metadata"]["uid"]
            made = MadeAttempt(uid=uid, namespace=cluster.namespace, name="web", start=time.time_ns())
            viewer.observe("traces", made.batch())
            await asyncio.to_thread(cluster.bind, "web")
            await asyncio.to_thread(cluster.tell, "web", ready=True)
            done = await asyncio.to_thread(ended, process)
            assert done.code == 0, done.told
            assert f"  {cluster.namespace}/web was scheduled on node-07" in done.told
            assert f"  podtrail why pod {uid} --endpoint {viewer.page}\n" in done.told
            assert f"  {viewer.page.rstrip('/')}/pods/{uid}\n" in done.told

    asyncio.run(with_a_page())


def test_a_page_that_is_not_there_is_told_and_changes_no_exit_code(made: Any, cluster: Cluster) -> None:
    process = made(pod("web"), options=("--endpoint", "http://127.0.0.1:9"))
    cluster.there(f"{cluster.pods}/web")
    cluster.bind("web")
    cluster.tell("web", ready=True)
    done = ended(process)
    assert done.code == 0, done.told
    assert "no podtrail page at http://127.0.0.1:9" in done.told
