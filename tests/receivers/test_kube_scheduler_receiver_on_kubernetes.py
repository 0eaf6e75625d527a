"""The `scheduler` receiver beside a real kube-scheduler: its log, watches with a real API server, its metrics."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from podtrail_receivers.scheduler import FACTORY

from podtrail.component import Context
from podtrail.otlp import Batch, SpanView, split
from podtrail.reconstruction import read_attempts

pytestmark = pytest.mark.control_plane
DEADLINE = 120.0
PODS = "/api/v1/namespaces/default/pods"


class Story:
    """The roots of all attempts that came, in their order."""

    def __init__(self) -> None:
        self.roots: list[Mapping[str, Any]] = []
        self.traces: list[bytes] = []
        self._changed = asyncio.Condition()

    async def __call__(self, batch: Batch) -> None:
        async with self._changed:
            for group in batch.groups:
                views = map(SpanView, split(group.spans))
                self.roots += [dict(view.attributes) for view in views if view.name == "SchedulePod"]
                self.traces.append(group.trace_id)
            self._changed.notify_all()

    @property
    def results(self) -> Counter[str]:
        return Counter(str(root["scheduler.result"]) for root in self.roots)

    def of(self, name: str) -> list[Mapping[str, Any]]:
        return [root for root in self.roots if root["k8s.pod.name"] == name]

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(done)


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
async def beside(cluster: Cluster, story: Story, context: Context, **settings: Any) -> AsyncIterator[None]:
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
def test_what_a_stock_scheduler_does_is_told_while_it_does_it(cluster: Cluster) -> None:
    async def main() -> None:
        gates: list[Any] = []
        story, context = Story(), Context(id="s", tell=gates.append)
        log = {"include": [str(cluster.log)]}
        async with beside(cluster, story, context, log=log, watch={}):
            uids = await asyncio.to_thread(populate, cluster)
            bound = [name for name in uids if name not in ("giant", "picky", "gated")]
            await story.until(lambda: all(map(story.of, [*bound, "giant", "picky"])))
            await story.until(lambda: story.results["Success"] >= len(bound))
            assert story.results == await asyncio.to_thread(lambda: cluster.counted)
            for name in bound:
                [root] = story.of(name)
                assert root["k8s.pod.uid"] == uids[name]
                assert root["scheduler.result"] == "Success"
                assert root["scheduler.selected_node"] == await asyncio.to_thread(cluster.node_of, name)
                assert root["scheduler.profile"] == "default-scheduler"
            assert story.of("giant")[0]["scheduler.result"] == "Unschedulable"
            assert not story.of("gated")
            assert [(fact.name, fact.gates) for fact in gates] == [("gated", ("example.com/quota",))]
            assert len(set(story.traces)) == len(story.traces)

    asyncio.run(main())


def test_watches_alone_invent_nothing_and_find_every_bound_pod(cluster: Cluster) -> None:
    async def main() -> None:
        story, context = Story(), Context(id="s")
        async with beside(cluster, story, context, watch={}):
            await _listed(context)
            uids = await asyncio.to_thread(populate, cluster)
            bound = [name for name in uids if name not in ("giant", "picky", "gated")]
            await story.until(lambda: all(map(story.of, [*bound, "giant", "picky"])))
            counted = await asyncio.to_thread(lambda: cluster.counted)
            assert story.results <= counted
            for name in bound:
                [root] = story.of(name)
                assert root["scheduler.selected_node"] == await asyncio.to_thread(cluster.node_of, name)

    asyncio.run(main())


async def _listed(context: Context) -> None:
    name = "podtrail_receiver_kube_scheduler_lines_total"
    async with asyncio.timeout(DEADLINE):
        while not sum(context.metrics.snapshot().get(name, {}).values()) >= 3:  # noqa: ASYNC110 - lists of 3 resources
            await asyncio.sleep(0.02)


def test_a_scheduler_that_dies_and_comes_back_is_told_of_on_and_on(cluster: Cluster) -> None:
    async def main() -> None:
        story, context = Story(), Context(id="s")
        async with beside(cluster, story, context, log={"include": [str(cluster.log)]}, watch={}):
            await asyncio.to_thread(cluster.create, "before")
            await story.until(lambda: bool(story.of("before")))
            await asyncio.to_thread(cluster.plane.stop_one, "kube-scheduler", kill=True)
            await asyncio.to_thread(cluster.create, "between")
            await asyncio.to_thread(cluster.plane.start_scheduler)
            await asyncio.to_thread(cluster.create, "after")
            await story.until(lambda: bool(story.of("between")) and bool(story.of("after")))
        assert story.results == {"Success": 3}

    asyncio.run(main())


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


def test_attempts_say_which_configuration_configz_told_of(cluster: Cluster, tmp_path: Path) -> None:
    async def main() -> None:
        story, context = Story(), Context(id="s")
        page = await asyncio.to_thread(configz, cluster, tmp_path, "reads-configz", "/configz")

        async def generation(but: str) -> str:
            """Of the first attempt that says one, other than this."""
            async with asyncio.timeout(DEADLINE):
                while True:
                    name = f"web-{len(story.roots)}"
                    await asyncio.to_thread(cluster.create, name, "1m")
                    await story.until(partial(lambda name: bool(story.of(name)), name))
                    found = str(story.of(name)[0].get("scheduler.config.generation", but))
                    if found != but:
                        return found

        async with beside(cluster, story, context, log={"include": [str(cluster.log)]}, watch={}, configz=page):
            first = await generation("")
            await asyncio.to_thread(cluster.plane.stop_one, "kube-scheduler")
            await asyncio.to_thread(cluster.plane.start_scheduler, {"percentageOfNodesToScore": 50})
            second = await generation(first)
        assert len(first) == len(second) == 12
        told = [root for root in story.roots if root.get("scheduler.config.generation")]
        assert all(
            "scheduler.config.generation: as /configz said it last" in root["podtrail.inferred"] for root in told
        )

    asyncio.run(main())


def test_who_may_not_read_configz_is_told_and_has_attempts_without_it(
    cluster: Cluster, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        story, context = Story(), Context(id="s")
        page = await asyncio.to_thread(configz, cluster, tmp_path, "reads-nothing")
        async with beside(cluster, story, context, log={"include": [str(cluster.log)]}, watch={}, configz=page):
            await asyncio.to_thread(cluster.create, "web")
            await story.until(lambda: bool(story.of("web")))
            async with asyncio.timeout(DEADLINE):
                while "403" not in caplog.text:  # noqa: ASYNC110, the log tells nobody
                    await asyncio.sleep(0.01)
        assert "scheduler.config.generation" not in story.of("web")[0]
        assert caplog.text.count("can't read https://127.0.0.1") == 1

    asyncio.run(main())
