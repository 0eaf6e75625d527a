"""The example of an operator and its operand: a change of a custom resource becomes what attempts are made with.

All is real but the kubelet: what mounts the ConfigMap is a loop here.
"""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from podtrail.otlp import Group, frame, resource_header, scope_header
from podtrail.story import Library, plain
from tests.built import BUILT
from tests.envtest.control_plane import ControlPlane, Refusal
from tests.scheduler.collector import Collector, attributes

pytestmark = pytest.mark.control_plane

EXAMPLE = Path(__file__).parents[2] / "examples" / "scheduler-operator"
SCHEDULERS = "/apis/podtrail.example.com/v1/namespaces/{}/schedulers"
DEADLINE = 600
PROGRAMS = Path(sys.executable).parent

PLUGINS = """
from podtrail_scheduler.framework.status import unschedulable


class Favourite:
    \"\"\"Likes one node best.\"\"\"

    name = "Favourite"

    def __init__(self, handle, args=None):
        pass

    def score(self, state, pod, node):
        return 100 if node.name.endswith("blue") else 0


class Closed:
    \"\"\"Refuses every node.\"\"\"

    name = "Closed"

    def __init__(self, handle, args=None):
        pass

    def filter(self, state, pod, node):
        return unschedulable("node(s) were closed")
"""


def until(read: Callable[[], Any], true: Callable[[Any], Any] = bool, logs: Sequence[Path] = ()) -> Any:
    """What is read once it is true."""
    deadline = time.monotonic() + DEADLINE
    while not true(found := read()):
        told = "\n".join(f"{log.name}:\n{log.read_text()[-3000:]}" for log in logs)
        assert time.monotonic() < deadline, f"still {found!s:.1000}\n{told}"
        time.sleep(0.05)
    return found


class Cluster:
    """A namespace with two nodes, an operator in it, and a scheduler that runs with what the operator writes."""

    def __init__(self, plane: ControlPlane, namespace: str, folder: Path, collector: Collector) -> None:
        self.api = plane.api
        self.plane = plane
        self.namespace = namespace
        self.folder = folder
        self.collector = collector
        self.logs: list[Path] = []
        self.schedulers = SCHEDULERS.format(namespace)

    @contextlib.contextmanager
    def process(self, name: str, *command: str | Path, **environment: str) -> Iterator[Path]:
        """Runs a program and ends it as Kubernetes does; returns its log."""
        log = self.folder / f"{name}.log"
        self.logs.append(log)
        with log.open("wb") as out:
            inherited = {**os.environ, "PYTHONPATH": str(self.folder)}
            started = subprocess.Popen(
                [str(part) for part in command], env=inherited | environment, stdout=out, stderr=out, cwd=self.folder
            )
        try:
            yield log
            assert started.poll() is None, log.read_text()[-3000:]
        finally:
            started.send_signal(signal.SIGTERM)
            try:
                started.wait(DEADLINE)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()

    def spans(self, name: str) -> list[Span]:
        return [span for span in list(self.collector.spans) if span.name == name]

    def reconciled(self, **wanted: str) -> list[Span]:
        """The spans of the operator's handler about this namespace, with these attributes."""
        wanted["k8s.namespace.name"] = self.namespace
        return [span for span in self.spans("reconcile apply") if wanted.items() <= attributes(span).items()]

    def config_map(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self.api.get(f"/api/v1/namespaces/{self.namespace}/configmaps/podtrail")
        except Refusal as refusal:
            if refusal.code != 404:
                raise
            return None
        return found

    def pod(self, name: str) -> dict[str, Any]:
        spec = {
            "schedulerName": self.namespace,
            "containers": [{"name": "c", "image": "i"}],
            "nodeSelector": {"for": self.namespace},
            "tolerations": [{"operator": "Exists"}],
        }
        return {"metadata": {"name": name}, "spec": spec}

    def attempts(self, name: str) -> list[Span]:
        """The roots of the attempts of a Pod."""
        mine = {"k8s.pod.name": name, "k8s.namespace.name": self.namespace}
        return [span for span in self.spans("SchedulePod") if mine.items() <= attributes(span).items()]

    def why(self, name: str) -> list[str]:
        """What `podtrail why pod` says of a Pod from all the spans that came."""
        library = Library()
        for span in list(self.collector.spans):
            raw = frame([span.SerializeToString()])
            group = Group(resource_header({}), scope_header("test"), span.trace_id, raw, 1)
            library.keep([group], span.end_time_unix_nano)
        [pod] = library.find(name, self.namespace)
        told = library.why_pod(pod, library.stories.latest, live=False)
        assert told is not None
        return [plain(line) for line in told.lines]

    def schedule(self, name: str) -> tuple[str, Span]:
        """The node that a new Pod comes to, and the root of its attempt."""
        pods = f"/api/v1/namespaces/{self.namespace}/pods"
        self.api.create(pods, self.pod(name))
        node = until(lambda: self.api.get(f"{pods}/{name}")["spec"].get("nodeName"), logs=self.logs)
        [root] = until(lambda: self.attempts(name), logs=self.logs)
        return str(node), root


def traceparent(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


def links(span: Span) -> dict[str, str]:
    """What a span is linked to, as `trace-span`, by the link's type or source."""
    found = {}
    for link in span.links:
        told = {each.key: each.value.string_value for each in link.attributes}
        kind = told.get("podtrail.link.type") or told["podtrail.link.source"]
        found[kind] = f"{link.trace_id.hex()}-{link.span_id.hex()}"
    return found


def name_of(span: Span) -> str:
    return f"{span.trace_id.hex()}-{span.span_id.hex()}"


@pytest.fixture(scope="module")
def resource(control_plane: ControlPlane) -> None:
    """The custom resource of the example."""
    api = control_plane.api
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", read("crd.yaml")[0])
    path = "/apis/podtrail.example.com/v1/schedulers"

    def served() -> bool:
        try:
            return bool(api.get(path))
        except Refusal:
            return False

    until(served)


def read(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLE / name).read_text("utf-8")))


@pytest.fixture
def collector() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.stop()


@pytest.fixture
def cluster(
    control_plane: ControlPlane, resource: None, namespace: str, tmp_path: Path, collector: Collector
) -> Iterator[Cluster]:
    """With the operator running under its own account, and nothing to manage yet."""
    api = control_plane.api
    for colour in ("red", "blue"):
        api.node(f"{namespace}-{colour}", labels={"for": namespace})
    account, role, binding, wide, wide_binding = read("rbac.yaml")
    api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    rules = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    api.create(f"{rules}/roles", role)
    api.create(f"{rules}/rolebindings", binding)
    # What is not of a namespace is named for this test alone.
    wide["metadata"]["name"] = wide_binding["metadata"]["name"] = wide_binding["roleRef"]["name"] = namespace
    wide_binding["subjects"][0]["namespace"] = namespace
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterroles", wide)
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", wide_binding)
    tokens = f"/api/v1/namespaces/{namespace}/serviceaccounts/scheduler-operator/token"
    token = api.create(tokens, {"spec": {}})["status"]["token"]
    kubeconfig = control_plane.write_kubeconfig(tmp_path / "operator.kubeconfig", {"token": token})
    it = Cluster(control_plane, namespace, tmp_path, collector)
    (tmp_path / "plugins.py").write_text(PLUGINS)
    with it.process(
        "operator",
        *(PROGRAMS / "kopf", "run", "--standalone", "--namespace", namespace, EXAMPLE / "scheduler_operator.py"),
        KUBECONFIG=str(kubeconfig),
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.endpoint,
        OTEL_BSP_SCHEDULE_DELAY="50",
    ):
        yield it


@contextlib.contextmanager
def mounted(cluster: Cluster) -> Iterator[Path]:
    """The ConfigMap as files, as the kubelet mounts it: another folder each time, and a link that is swapped."""
    volume, over = cluster.folder / "volume", threading.Event()
    volume.mkdir()
    (volume / "scheduler.yaml").symlink_to("..data/scheduler.yaml")
    written: dict[str, Any] = {}

    def mount() -> None:
        data = (cluster.config_map() or {}).get("data")
        if data and data != written:
            folder = volume / f"..{len(list(volume.iterdir()))}"
            folder.mkdir()
            (folder / "scheduler.yaml").write_text(data["scheduler.yaml"])
            (volume / "..new").symlink_to(folder.name)
            (volume / "..new").replace(volume / "..data")
            written.update(data)

    def follow() -> None:
        while not over.wait(0.05):
            mount()

    until(cluster.config_map, logs=cluster.logs)
    mount()
    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield volume / "scheduler.yaml"
    finally:
        over.set()
        thread.join(DEADLINE)


def scheduler(namespace: str, cluster: Cluster, plugins: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    [example] = read("scheduler.yaml")
    tracing = {"endpoint": cluster.collector.endpoint, "samplingRatePerMillion": 1_000_000}
    connection = {"kubeconfig": str(cluster.plane.kubeconfig)}
    fields = {"leaderElection": {"leaderElect": False}, "tracing": tracing, "clientConnection": connection}
    example["spec"] = {"schedulerName": namespace, "scorePlugins": list(plugins), "configuration": fields}
    example["metadata"]["annotations"] = {"tracing.k8s.io/traceparent": traceparent(1)}
    return dict(example)


@contextlib.contextmanager
def scheduling(cluster: Cluster) -> Iterator[Path]:
    with (
        mounted(cluster) as file,
        cluster.process(
            "scheduler",
            *(sys.executable, "-m", "podtrail_scheduler.command.main", "--config", file, "--secure-port=0"),
            *("--config-reload-period=50ms", "--bind-address=127.0.0.1"),
            *("--plugin=Favourite=plugins:Favourite", "--plugin=Closed=plugins:Closed"),
            "--feature-gates=SchedulerTracing=true,AsyncTraceContextPropagation=true",
            OTEL_BSP_SCHEDULE_DELAY="50",
        ) as log,
    ):
        until(log.read_text, lambda text: "scheduling begins" in text, cluster.logs)
        yield log


def test_a_score_plugin_that_the_operator_adds_is_what_the_next_attempt_is_made_with(cluster: Cluster) -> None:
    api, namespace = cluster.api, cluster.namespace
    made = api.create(cluster.schedulers, scheduler(namespace, cluster))
    [created] = until(lambda: cluster.reconciled(**{"kopf.reason": "create"}), logs=cluster.logs)
    assert attributes(created)["k8s.object.uid"] == made["metadata"]["uid"]
    assert links(created) == {"annotation": traceparent(1)[3:52]}

    with scheduling(cluster) as log:
        _, before = cluster.schedule("before")
        assert links(before) == {"configuration": name_of(created)}

        change = {
            "metadata": {"annotations": {"tracing.k8s.io/traceparent": traceparent(2)}},
            "spec": {"scorePlugins": [{"name": "Favourite", "weight": 100}]},
        }
        api.patch(f"{cluster.schedulers}/podtrail", change)
        [updated] = until(lambda: cluster.reconciled(**{"kopf.reason": "update"}), logs=cluster.logs)
        assert links(updated) == {"annotation": traceparent(2)[3:52]}
        until(log.read_text, lambda text: '"Configuration reloaded"' in text, cluster.logs)
        node, after = cluster.schedule("after")

    assert node == f"{namespace}-blue"
    assert links(after) == {"configuration": name_of(updated)}
    generations = [attributes(span)["scheduler.config.generation"] for span in (before, after)]
    assert generations[0] != generations[1]
    annotation = (cluster.config_map() or {})["metadata"]["annotations"]["tracing.k8s.io/traceparent"]
    assert annotation == f"00-{name_of(updated)}-01"


def test_why_says_that_the_configuration_changed_and_who_changed_it(cluster: Cluster) -> None:
    api, pods = cluster.api, f"/api/v1/namespaces/{cluster.namespace}/pods"
    api.create(cluster.schedulers, scheduler(cluster.namespace, cluster, [{"name": "Closed"}]))
    with scheduling(cluster):
        api.create(pods, cluster.pod("web"))
        refused = until(lambda: cluster.attempts("web"), logs=cluster.logs)[0]
        assert attributes(refused)["scheduler.result"] == "Unschedulable"
        api.patch(f"{cluster.schedulers}/podtrail", {"spec": {"scorePlugins": []}})
        until(lambda: api.get(f"{pods}/web")["spec"].get("nodeName"), logs=cluster.logs)
        results = until(
            lambda: {attributes(span)["scheduler.result"]: attributes(span) for span in cluster.attempts("web")},
            lambda found: "Success" in found,
            cluster.logs,
        )
    last = results["Success"]["scheduler.attempts"]
    old, new = (str(results[each]["scheduler.config.generation"])[:6] for each in ("Unschedulable", "Success"))
    [updated] = cluster.reconciled(**{"kopf.reason": "update"})
    [told] = [line for line in cluster.why("web") if "configuration" in line]
    assert told == (
        f"The scheduler's configuration changed between attempt {last - 1} and {last} ({old} → {new}), "
        f"by reconcile apply of Scheduler {cluster.namespace}/podtrail, trace {updated.trace_id.hex()}."
    )


def test_a_plugin_that_there_is_not_is_refused_and_the_old_configuration_stays(cluster: Cluster) -> None:
    cluster.api.create(cluster.schedulers, scheduler(cluster.namespace, cluster, [{"name": "Favourite", "weight": 9}]))
    with scheduling(cluster) as log:
        change = {"spec": {"scorePlugins": [{"name": "Missing"}]}}
        cluster.api.patch(f"{cluster.schedulers}/podtrail", change)
        text = until(log.read_text, lambda text: '"Configuration refused"' in text, cluster.logs)
        assert "Missing" in text
        node, attempt = cluster.schedule("web")
    assert node == f"{cluster.namespace}-blue"
    [created] = cluster.reconciled(**{"kopf.reason": "create"})
    assert links(attempt) == {"configuration": name_of(created)}


def test_what_changes_nothing_leaves_the_config_map_as_it_is(cluster: Cluster) -> None:
    cluster.api.create(cluster.schedulers, scheduler(cluster.namespace, cluster))
    first = until(cluster.config_map, logs=cluster.logs)
    cluster.api.patch(f"{cluster.schedulers}/podtrail", {"spec": {"scorePlugins": None}})
    until(lambda: cluster.reconciled(**{"kopf.reason": "update"}), logs=cluster.logs)
    assert cluster.config_map() == first


def test_what_the_operator_cannot_do_is_an_error_of_its_span(cluster: Cluster) -> None:
    wrong = scheduler(cluster.namespace, cluster)
    wrong["spec"]["configuration"]["profiles"] = []
    wrong["metadata"]["annotations"] = {"tracing.k8s.io/traceparent": "00-" + "x" * 200_000}
    cluster.api.create(cluster.schedulers, wrong)
    [failed] = until(lambda: cluster.reconciled(**{"kopf.outcome": "failed"}), logs=cluster.logs)
    assert (failed.status.code, len(failed.links)) == (2, 0)
    assert "the operator writes it" in failed.status.message


def test_what_the_api_server_refuses_for_good_is_an_error_of_its_span(cluster: Cluster) -> None:
    taken = {"metadata": {"name": "podtrail"}, "data": {"scheduler.yaml": "somebody's"}, "immutable": True}
    cluster.api.create(f"/api/v1/namespaces/{cluster.namespace}/configmaps", taken)
    cluster.api.create(cluster.schedulers, scheduler(cluster.namespace, cluster))
    [failed] = until(lambda: cluster.reconciled(**{"kopf.outcome": "failed"}), logs=cluster.logs)
    assert failed.status.message.startswith("422 ")
    assert (cluster.config_map() or {})["data"] == taken["data"]


def test_what_it_may_not_yet_do_is_tried_again_linked_with_the_time_before(cluster: Cluster) -> None:
    role = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{cluster.namespace}/roles/scheduler-operator"
    rules = cluster.api.get(role)["rules"]
    cluster.api.patch(role, {"rules": [rule for rule in rules if rule["resources"] != ["configmaps"]]})
    cluster.api.create(cluster.schedulers, scheduler(cluster.namespace, cluster))
    first = until(lambda: cluster.reconciled(**{"kopf.outcome": "retry"}), logs=cluster.logs)[0]
    assert (attributes(first)["kopf.retry"], attributes(first)["kopf.retry.delay"]) == (0, 2.0)
    assert (first.status.code, first.events[0].name) == (0, "retry")
    cluster.api.patch(role, {"rules": rules})
    [done] = until(lambda: cluster.reconciled(**{"kopf.outcome": "succeeded"}), logs=cluster.logs)
    calls = sorted(cluster.reconciled(**{"kopf.reason": "create"}), key=lambda span: span.start_time_unix_nano)
    assert calls[-1] == done
    for before, after in itertools.pairwise(calls):
        assert links(after) == {"annotation": traceparent(1)[3:52], "previous-attempt": name_of(before)}


def test_why_says_who_changed_the_configuration_of_kube_scheduler_with_spans(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = BUILT / "kube-scheduler-traced-1.37" / "podtrail-kube-scheduler"
    if not binary.exists():
        pytest.skip("podtrail-kube-scheduler is not built: instrumentation/go/build.sh")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
    api, namespace = cluster.api, cluster.namespace
    wanted = scheduler(namespace, cluster)
    tracing = {"tracing": wanted["spec"]["configuration"].pop("tracing")}
    gates = dict.fromkeys(("SchedulerTracing", "AsyncTraceContextPropagation"), True)
    file = cluster.folder / "tracing.yaml"
    head = {"apiVersion": "podtrail/v1alpha1", "kind": "SchedulerTracing", "featureGates": gates}
    file.write_text(yaml.safe_dump(head | tracing))
    api.create(cluster.schedulers, wanted)
    pod = cluster.pod("web")
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1000"}}
    api.create(f"/api/v1/namespaces/{namespace}/pods", pod)

    def attempted(mount: Path, times: int) -> None:
        """Runs it as long as it takes: it reads its configuration at its start, as its Deployment would restart it."""
        command: list[str | Path] = [binary, f"--config={mount}", f"--tracing-config={file}", "--secure-port=0"]
        with cluster.process(f"kube-scheduler-{times}", *command):
            until(lambda: len(cluster.attempts("web")) >= times, logs=cluster.logs)

    with mounted(cluster) as mount:
        attempted(mount, 1)
        api.patch(f"{cluster.schedulers}/podtrail", {"spec": {"configuration": {"percentageOfNodesToScore": 50}}})
        [updated] = until(lambda: cluster.reconciled(**{"kopf.reason": "update"}), logs=cluster.logs)
        until(mount.read_text, lambda text: updated.trace_id.hex() in text)
        attempted(mount, len(cluster.attempts("web")) + 1)
    assert links(cluster.attempts("web")[-1])["configuration"] == name_of(updated)
    first, last = (str(attributes(cluster.attempts("web")[at])["scheduler.config.generation"]) for at in (0, -1))
    [told] = [line for line in cluster.why("web") if "configuration changed" in line]
    assert f"({first[:6]} → {last[:6]}), by reconcile apply of Scheduler {namespace}/podtrail" in told
