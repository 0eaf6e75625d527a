"""podtrail-scheduler as a service on the control plane of the session, in the process of the tests."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from podtrail_scheduler.cluster.kubernetes.assembly import SchedulerPlan
from podtrail_scheduler.cluster.kubernetes.service import SchedulerSettings, run
from podtrail_scheduler.cluster.kubernetes.serving import Serving
from podtrail_scheduler.configuration.expansion import resolve
from podtrail_scheduler.configuration.features import parse_feature_gates
from podtrail_scheduler.configuration.load import check, read
from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.extenders import ExtenderChain, HTTPExtender, WatchedManifests
from podtrail_scheduler.plugins.registry import available, extension_points

from tests.scheduler.collector import Collector

DEADLINE = 120


@dataclass
class Service:
    """One that runs: the port it serves, the attempts it has made, its end."""

    stop: asyncio.Event = field(default_factory=asyncio.Event)
    attempts: list[AttemptRecord] = field(default_factory=list)
    port: int = 0
    task: asyncio.Task[None] | None = None
    told: bool = False
    """Whether the test knows how it ended."""

    async def ended(self) -> None:
        """Returns when it has ended by itself. Raises what it raised."""
        assert self.task is not None
        self.told = True
        await asyncio.wait_for(asyncio.shield(self.task), DEADLINE)


Running = Callable[..., AbstractAsyncContextManager[Service]]


def settings(
    service: Service, kubeconfig: Path, name: str, plugins: Mapping[str, Any], gates: str, fields: Mapping[str, Any]
) -> SchedulerSettings:
    features = parse_feature_gates([gates] if gates else [])
    sets = {"multiPoint": {"enabled": [{"name": each} for each in plugins]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
        "profiles": [{"schedulerName": name, "plugins": sets}],
    }
    configuration, source = read(json.dumps({**document, **fields}), "", features)
    check(configuration, features, source)
    makers = available() | dict(plugins)
    profiles = resolve(configuration, extension_points(makers), features, source)
    plan = SchedulerPlan(configuration, profiles, makers, features, on_attempt=service.attempts.append)
    return SchedulerSettings(plan, "0", serving=Serving("127.0.0.1", 0))


@pytest.fixture(autouse=True)
def spans_leave_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schedulers export ten times a second, not every five seconds."""
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")


@pytest.fixture(scope="session")
def cluster_collector() -> Iterator[Collector]:
    """Takes what the traced API server exports, and the schedulers beside it."""
    it = Collector()
    yield it
    it.stop()


@pytest.fixture(scope="session")
def traced_control_plane(
    start_control_plane: Any, cluster_collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """A control plane whose API server is traced, with one node."""
    path = tmp_path_factory.mktemp("tracing") / "tracing.json"
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "TracingConfiguration"}
    path.write_text(json.dumps(kind | {"endpoint": cluster_collector.endpoint, "samplingRatePerMillion": 1_000_000}))
    it = start_control_plane(apiserver=[f"--tracing-config-file={path}"])
    it.api.node("n")
    return it


@pytest.fixture
def kube_scheduler(control_plane: Any) -> Iterator[Callable[..., None]]:
    """Starts the real kube-scheduler for the Pods that name it, with fields of its configuration; the test ends it."""

    with ExitStack() as stack:

        def start(name: str, **fields: Any) -> None:
            stack.callback(control_plane.stop_one, "kube-scheduler")
            control_plane.start_scheduler({"profiles": [{"schedulerName": name}], **fields}, flags=["-v=2"])

        yield start


@pytest.fixture(scope="session")
def running(control_plane: Any) -> Running:
    """Runs a service while entered: `running(name)` schedules the Pods that name it.

    Besides: `kubeconfig`, `plugins` (more of them: classes by name), `gates`, and fields of KubeSchedulerConfiguration.
    """

    @asynccontextmanager
    async def enter(
        name: str,
        *,
        kubeconfig: Path | None = None,
        plugins: Mapping[str, Any] | None = None,
        gates: str = "",
        **fields: Any,
    ) -> AsyncIterator[Service]:
        service, started = Service(), asyncio.get_running_loop().create_future()
        asked = settings(service, kubeconfig or control_plane.kubeconfig, name, plugins or {}, gates, fields)
        async with AsyncExitStack() as stack:
            if extenders := asked.plan.configuration.extenders:
                session = await stack.enter_async_context(aiohttp.ClientSession())
                manifests = WatchedManifests()
                chain = ExtenderChain([HTTPExtender(each, session, manifests) for each in extenders])
                asked = replace(asked, plan=replace(asked.plan, extenders=chain, manifests=manifests))
            service.task = asyncio.create_task(run(asked, service.stop, started.set_result))
            await asyncio.wait((service.task, started), return_when=asyncio.FIRST_COMPLETED)
            if service.task.done():
                service.task.result()
            service.port = started.result()
            try:
                yield service
            finally:
                service.stop.set()
                await asyncio.wait([service.task], timeout=DEADLINE)
                if not service.told and service.task.done():
                    service.task.result()

    return enter


@pytest.fixture(scope="session")
def until() -> Callable[..., Any]:
    """`await until(read, true)`: what `read` returns once it is `true`; read in a thread, again and again."""

    async def wait(read: Callable[[], Any], true: Callable[[Any], Any] = bool) -> Any:
        found = None
        try:
            async with asyncio.timeout(DEADLINE):
                while True:
                    found = await asyncio.to_thread(read)
                    if true(found):
                        return found
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"still {json.dumps(found)[:2000]}") from None

    return wait


@pytest.fixture(scope="session")
def make_pod() -> Callable[..., dict[str, Any]]:
    """A Pod for a scheduler: name, `schedulerName`, CPU and further fields of its spec."""

    def make(name: str, scheduler: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        whole = {"schedulerName": scheduler, "containers": [container], "terminationGracePeriodSeconds": 0} | spec
        return {"metadata": {"name": name}, "spec": whole}

    return make
