"""A scheduler on a simulated cluster, stepped by its tests: as few parts as needed, no workload."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from opentelemetry.trace import TracerProvider
from podtrail_instrumentation import start
from podtrail_scheduler.cluster.simulated.api_server import PodPlan, SimulatedApiServer
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.cycles.attempt import AttemptRecord, ScoreExplanation
from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.cycles.scheduler import Scheduler
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import Plugin
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.nominator import Nominator
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.status import Status
from podtrail_scheduler.framework.trial import FilterTrial
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import SECOND
from podtrail_scheduler.plugins.registry import default_profile
from podtrail_scheduler.runtime.framework import Framework
from podtrail_scheduler.runtime.profile import Enabled, Profile

ROOMY = {"cpu": 64_000, "memory": 64 * 1024**3, "pods": 110}
PLAN = PodPlan(None, SECOND, 0, "")


class Binder:
    """Sorts the queue and binds nobody: what a profile needs."""

    name = "Binder"

    def sort_key(self, entry: QueuedPod) -> tuple[int, ...]:
        return (entry.queued_at,)

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        return None


def framework(*plugins: Plugin, nodes: Sequence[Node] = ()) -> Framework:
    """The extension points of these plugins, over these nodes."""
    cache = Cache()
    for node in nodes:
        cache.set_node(node)
    profile = Profile("test", [*map(Enabled, plugins), Enabled(Binder())])
    timeline = Timeline(0, "test")
    return Framework(profile, timeline, cache.table, Nominator())


def span_of(framework: Framework) -> Any:
    """A span for what is run on its own."""
    return start("cycle", clock=framework.clock.now)


class Bench:
    """A scheduler with a default profile and these plugins behind it, and its cluster."""

    made: ClassVar[list["Bench"]] = []
    """Those of the test that runs, to be closed behind it."""

    def __init__(
        self,
        *plugins: Plugin,
        nodes: Sequence[Node] = (Node("n1", allocatable=ROOMY),),
        provider: TracerProvider | None = None,
        profile: Callable[[Handle], Profile] | None = None,
        another: Callable[[Handle], Profile] | None = None,
        bind_takes: int = SECOND,
        **changes: Any,
    ) -> None:
        self.made.append(self)
        self.timeline = Timeline(0, "test")
        self.api_server = SimulatedApiServer(self.timeline, bind_takes)
        self.cache = Cache()
        self.handle = Handle(self.timeline, self.api_server, self.cache.nodes)
        self.records: list[AttemptRecord] = []
        self.explanations: dict[str, ScoreExplanation] = {}
        made = profile(self.handle) if profile is not None else default_profile(self.handle, plugins)
        profiles = [(made, self.handle)]
        if another is not None:
            own = replace(self.handle, trial=FilterTrial())
            profiles.append((another(own), own))
        self.scheduler = Scheduler(
            profiles,
            self.cache,
            tracer=None if provider is None else provider.get_tracer("test"),
            on_attempt=self.records.append,
            explain=lambda pod, explanation: self.explanations.update({pod.uid: explanation}),
            **changes,
        )
        self.api_server.watch.watcher = self.scheduler
        for node in nodes:
            self.api_server.add_node(node)
        self.timeline.spawn(self.scheduler.run())
        self.step_until(lambda: len(self.cache.nodes()) == len(nodes))

    def create(self, pod: Pod) -> None:
        """Somebody creates a Pod."""
        self.api_server.create_pod(pod, PLAN)

    def attempt(self, pod: Pod) -> AttemptRecord:
        """Creates a Pod and returns what its next attempt came to."""
        before = len(self.records)
        self.create(pod)
        self.step_until(lambda: len(self.records) > before)
        return self.records[-1]

    def step_until(self, reached: Callable[[], bool], seconds: int = 3600) -> None:
        """Lets virtual time pass until something is so."""
        limit = self.timeline.now() + seconds * SECOND
        while not reached():
            due = self.timeline.next_time()
            assert due is not None, "nothing happens any more"
            assert due < limit, "it did not happen in time"
            self.timeline.step()

    def pods_on(self, node: str) -> list[str]:
        """The names of the Pods that the scheduler believes to be on a node."""
        info = self.cache.node(node)
        return [] if info is None else [pod.name for pod in info.pods.values()]

    @classmethod
    def close_all(cls) -> None:
        """Ends what is under way on any bench."""
        for bench in cls.made:
            bench.timeline.close()
        cls.made.clear()


def pod(name: str = "a", **fields: Any) -> Pod:
    """A Pod whose uid is its name."""
    requests: Mapping[str, int] = fields.pop("requests", {"cpu": 1000})
    return Pod(name, uid=name, requests=requests, **fields)
