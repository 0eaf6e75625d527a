"""The `scheduler` receiver beside a real kube-scheduler: its log, watches with a real API server, its metrics."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from podtrail_receivers.scheduler import FACTORY

from podtrail.component import Context, Fact, ObservedPod
from podtrail.reconstruction import read_attempts
from tests.receivers.sink import DEADLINE, Sink, of_pod, until

pytestmark = pytest.mark.control_plane
PODS = "/api/v1/namespaces/default/pods"


class Cluster:
    """A control plane with a stock kube-scheduler, and Pods by name."""

    def __init__(self, plane: Any, log: Path) -> None:
        self.plane = plane
        self.log = log

    @property
    def counted(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for one in read_attempts(self.plane.scheduler_get("/metrics").encode().splitlines()):
            counts[one.result] += one.attempts
        return +counts

    def create(self, name: str, cpu: str = "100m", **spec: Any) -> str:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        pod = {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
        return str(self.plane.api.create(PODS, pod)["metadata"]["uid"])

    def node_of(self, name: str) -> str:
        return str(self.plane.api.get(f"{PODS}/{name}")["spec"].get("nodeName", ""))


@pytest.fixture
def cluster(request: pytest.FixtureRequest, start_control_plane: Callable[..., Any]) -> Iterator[Cluster]:
    form, level = getattr(request, "param", ("text", 2))
    plane = start_control_plane()
    log = plane.start_scheduler(flags=(f"-v={level}", f"--logging-format={form}"))
    for number in range(4):
        plane.api.node(f"n{number}", {"cpu": "2"}, labels={"disk": "ssd" if number % 2 else "hdd"})
    try:
        yield Cluster(plane, log)
    finally:
        plane.stop()


@asynccontextmanager
async def beside(cluster: Cluster, story: Sink, context: Context, **settings: Any) -> AsyncIterator[None]:
    kubernetes = {"auth_type": "kubeConfig", "kubeconfig": str(cluster.plane.kubeconfig)}
    config = FACTORY.Config.model_validate({"kube_scheduler": {"kubernetes": kubernetes, **settings}})
    async with FACTORY.create(config, context) as receiver:
        work = asyncio.create_task(receiver.run(story))
        try:
            yield
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)


def populate(cluster: Cluster) -> dict[str, str]:
    """Creates Pods of all kinds; returns their uids."""
    uids = {f"small-{number}": cluster.create(f"small-{number}") for number in range(20)}
    uids["giant"] = cluster.create("giant", "64")
    uids["picky"] = cluster.create("picky", nodeSelector={"disk": "tape"})
    uids["gated"] = cluster.create("gated", schedulingGates=[{"name": "example.com/quota"}])
    uids["doomed"] = cluster.create("doomed", nodeSelector={"disk": "ssd"}, tolerations=[{"operator": "Exists"}])
    return uids


@pytest.mark.parametrize(
    "cluster", [("text", 2), ("json", 5), ("text", 10)], indirect=True, ids=["v2", "json-v5", "v10"]
)
async def test_what_a_stock_scheduler_does_is_told_while_it_does_it(cluster: Cluster) -> None:
    known: dict[str, ObservedPod] = {}

    def note(fact: Fact) -> None:
        if isinstance(fact, ObservedPod):
            known[fact.name] = fact

    story, context = Sink(), Context(id="s", tell=note)
    log = {"include": [str(cluster.log)]}
    async with beside(cluster, story, context, log=log, watch={}):
        uids = await asyncio.to_thread(populate, cluster)
        bound = [name for name in uids if name not in ("giant", "picky", "gated")]
        await story.until(lambda: all(of_pod(story.roots, name) for name in [*bound, "giant", "picky"]))
        await story.until(lambda: story.results["Success"] >= len(bound))
        assert story.results == await asyncio.to_thread(lambda: cluster.counted)
        for name in bound:
            [root] = of_pod(story.roots, name)
            assert root["k8s.pod.uid"] == uids[name]
            assert root["scheduler.result"] == "Success"
            assert root["scheduler.selected_node"] == await asyncio.to_thread(cluster.node_of, name)
            assert root["scheduler.profile"] == "default-scheduler"
        assert of_pod(story.roots, "giant")[0]["scheduler.result"] == "Unschedulable"
        assert not of_pod(story.roots, "gated")
        assert {name for name, pod in known.items() if not pod.bound} == {"giant", "picky", "gated"}
        assert known["gated"].gates == ("example.com/quota",)
        await asyncio.to_thread(cluster.plane.api.delete, f"{PODS}/giant")
        await until(lambda: known["giant"].deleted > 0)
        assert len(set(story.trace_ids)) == len(story.trace_ids)


async def test_watches_alone_invent_nothing_and_find_every_bound_pod(cluster: Cluster) -> None:
    story, context = Sink(), Context(id="s")
    async with beside(cluster, story, context, watch={}):
        await _listed(context)
        uids = await asyncio.to_thread(populate, cluster)
        bound = [name for name in uids if name not in ("giant", "picky", "gated")]
        await story.until(lambda: all(of_pod(story.roots, name) for name in [*bound, "giant", "picky"]))
        counted = await asyncio.to_thread(lambda: cluster.counted)
        assert story.results <= counted
        for name in bound:
            [root] = of_pod(story.roots, name)
            assert root["scheduler.selected_node"] == await asyncio.to_thread(cluster.node_of, name)


async def _listed(context: Context) -> None:
    name = "podtrail_receiver_kube_scheduler_lines_total"
    await until(lambda: sum(context.metrics.snapshot().get(name, {}).values()) >= 3)  # lists of 3 resources


async def test_a_scheduler_that_dies_and_comes_back_is_told_of_on_and_on(cluster: Cluster) -> None:
    story, context = Sink(), Context(id="s")
    async with beside(cluster, story, context, log={"include": [str(cluster.log)]}, watch={}):
        await asyncio.to_thread(cluster.create, "before")
        await story.until(lambda: bool(of_pod(story.roots, "before")))
        await asyncio.to_thread(cluster.plane.stop_one, "kube-scheduler", kill=True)
        await asyncio.to_thread(cluster.create, "between")
        await asyncio.to_thread(cluster.plane.start_scheduler)
        await asyncio.to_thread(cluster.create, "after")
        await story.until(lambda: bool(of_pod(story.roots, "between")) and bool(of_pod(story.roots, "after")))
    assert story.results == {"Success": 3}


async def test_a_leader_in_another_zone_whose_verbosity_is_lowered_is_told_of_on_and_in_time(
    start_control_plane: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Shanghai")  # nothing but the clock tells it: the log is the process's own
    plane = start_control_plane()
    try:
        log = await asyncio.to_thread(plane.start_scheduler, {"leaderElection": {"leaderElect": True}}, ("-v=2",))
        await asyncio.to_thread(plane.api.node, "n0", {"cpu": "2"})
        cluster, story, context = Cluster(plane, log), Sink(), Context(id="s")
        async with beside(cluster, story, context, log={"include": [str(log)]}, watch={}):
            for lowered in (False, True):
                if lowered:
                    await asyncio.to_thread(plane.scheduler_put, "/debug/flags/v", 0)
                for number in range(5):
                    await asyncio.to_thread(cluster.create, f"{lowered}-{number}".lower())
                await story.until(lambda: story.results["Success"] == (10 if lowered else 5))  # noqa: B023
        assert story.results == await asyncio.to_thread(lambda: cluster.counted)
        late = [abs(time.time_ns() - span.end) for span in story.spans if span.name == "SchedulePod"]
        assert max(late) < 600 * 10**9
    finally:
        plane.stop()


def token(cluster: Cluster, name: str, *paths: str) -> str:
    """A token of an account that may get these paths of a component."""
    api, rbac = cluster.plane.api, "/apis/rbac.authorization.k8s.io/v1"
    api.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    if paths:
        rules = [{"nonResourceURLs": list(paths), "verbs": ["get"]}]
        api.create(f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        binding = {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]}
        api.create(f"{rbac}/clusterrolebindings", binding)
    asked = api.create(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", {"spec": {}})
    return str(asked["status"]["token"])


def configz(cluster: Cluster, folder: Path, name: str, *paths: str) -> dict[str, Any]:
    (folder / name).write_text(token(cluster, name, *paths))
    endpoint = f"https://127.0.0.1:{cluster.plane.scheduler_port}/configz"
    return {"endpoint": endpoint, "token_file": str(folder / name), "collection_interval": "100ms"}


async def test_attempts_say_which_configuration_configz_told_of(cluster: Cluster, tmp_path: Path) -> None:
    story, context = Sink(), Context(id="s")
    page = await asyncio.to_thread(configz, cluster, tmp_path, "reads-configz", "/configz")

    async def generation(but: str) -> str:
        """Of the first attempt that says one, other than this."""
        async with asyncio.timeout(DEADLINE):
            while True:
                name = f"web-{len(story.roots)}"
                await asyncio.to_thread(cluster.create, name, "1m")
                await story.until(partial(lambda name: bool(of_pod(story.roots, name)), name))
                found = str(of_pod(story.roots, name)[0].get("scheduler.config.generation", but))
                if found != but:
                    return found

    async with beside(cluster, story, context, log={"include": [str(cluster.log)]}, watch={}, configz=page):
        first = await generation("")
        await asyncio.to_thread(cluster.plane.stop_one, "kube-scheduler")
        await asyncio.to_thread(cluster.plane.start_scheduler, {"percentageOfNodesToScore": 50})
        second = await generation(first)
    assert len(first) == len(second) == 12
    told = [root for root in story.roots if root.get("scheduler.config.generation")]
    assert all("scheduler.config.generation: as /configz said it last" in root["podtrail.inferred"] for root in told)


async def test_who_may_not_read_configz_is_told_and_has_attempts_without_it(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    story, context = Sink(), Context(id="s")
    page = await asyncio.to_thread(configz, cluster, tmp_path, "reads-nothing")
    async with beside(cluster, story, context, log={"include": [str(cluster.log)]}, watch={}, configz=page):
        await asyncio.to_thread(cluster.create, "web")
        await story.until(lambda: bool(of_pod(story.roots, "web")))
        await until(lambda: "403" in caplog.text)
    assert "scheduler.config.generation" not in of_pod(story.roots, "web")[0]
    assert caplog.text.count("can't read https://127.0.0.1") == 1
