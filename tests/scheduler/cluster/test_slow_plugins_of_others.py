"""Plugins of others that take their time, or never return, on the clock and event loop of a real cluster.

They block on events that the tests set, and fail where nobody sets them.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.trace import TracerProvider
from podtrail_instrumentation import provider_around
from podtrail_scheduler.cluster.kubernetes.clock import AsyncioClock
from podtrail_scheduler.cluster.kubernetes.plugin_handle import handle_of_others
from podtrail_scheduler.cluster.kubernetes.plugin_threads import PluginThreads
from podtrail_scheduler.cluster.simulated.traced_simulation import CollectingSpanProcessor
from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.cycles.scheduler import Scheduler
from podtrail_scheduler.framework.client import PodCondition
from podtrail_scheduler.framework.events import NODE_ADD, Hint, Registration
from podtrail_scheduler.framework.extension_points import PermitResult, PostFilterResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.status import SKIP, Code, Status, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import MILLISECOND, SECOND
from podtrail_scheduler.plugins.registry import default_profile

from tests.scheduler.bench import ROOMY, pod

DEADLINE = 120
NODES = [Node(f"n{number}", allocatable=ROOMY) for number in range(2)]


class Gate:
    """Where a plugin stands until the test lets it go on; the first time only."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._entered = asyncio.Event()
        self._open = threading.Event()
        self.threads: set[int] = set()

    def pass_through(self) -> None:
        self.threads.add(threading.get_ident())
        self._loop.call_soon_threadsafe(self._entered.set)
        if not self._open.wait(DEADLINE):
            raise TimeoutError("nobody opened the gate: the event loop stands still")

    async def reached(self) -> None:
        """Returns when a plugin stands there."""
        async with asyncio.timeout(DEADLINE):
            await self._entered.wait()

    def open(self) -> None:
        self._open.set()


class Cluster:
    """An API server in memory, with the scheduler that watches it."""

    def __init__(
        self,
        make: Callable[[Handle], Any],
        nodes: Sequence[Node] = NODES,
        provider: TracerProvider | None = None,
        patience: float = DEADLINE,
    ) -> None:
        self.threads = PluginThreads(patience)
        self.clock = AsyncioClock()
        self.cache = Cache()
        handle = Handle(self.clock, self, self.cache.nodes)
        plugin = make(handle_of_others(handle, self.threads))
        self.pods: dict[str, Pod] = {}
        self.attempts: list[AttemptRecord] = []
        self._changed = asyncio.Condition()
        self.bindings: dict[str, asyncio.Event] = {}
        """Bindings that the API server answers when the event is set."""
        self.scheduler = Scheduler(
            [(default_profile(handle, [plugin]), handle)],
            self.cache,
            tracer=None if provider is None else provider.get_tracer("test"),
            on_attempt=self.attempts.append,
            aside=self.threads,
        )
        for node in nodes:
            self.scheduler.node_added(node)

    def create(self, *names: str, **fields: Any) -> None:
        for name in names:
            self.pods[name] = pod(name, **fields)
            self.scheduler.pod_added(self.pods[name])

    async def bound(self, *names: str) -> None:
        """Returns when these Pods have a node."""
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: all(self.pods[name].node_name for name in names))

    def get_pod(self, uid: str) -> Pod | None:
        return self.pods.get(uid)

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        if pod.name in self.bindings:
            await self.bindings[pod.name].wait()
        old = self.pods[pod.uid]
        self.pods[pod.uid] = old.on(node_name)
        self.scheduler.pod_updated(old, self.pods[pod.uid])
        async with self._changed:
            self._changed.notify_all()

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        pass

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        pass

    async def delete_pod(self, pod: Pod) -> None:
        self.scheduler.pod_deleted(self.pods.pop(pod.uid))

    async def patch_pod_extended_claim(self, pod: Pod, claim: Any) -> None:
        pass

    async def create_object(self, manifest: Mapping[str, Any]) -> Any:
        pass

    async def delete_object(self, gone: Any) -> None:
        pass

    async def patch(self, changed: Any, patch: Mapping[str, Any], subresource: str = "") -> Any:
        return changed


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(test())


class Scheduling:
    """The scheduler runs while it is entered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def __aenter__(self) -> Cluster:
        self._task = asyncio.create_task(self._cluster.scheduler.run())
        return self._cluster

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        await self._cluster.clock.stop()
        self._cluster.threads.close()


def plugin(**methods: Any) -> Any:
    """A plugin of others with these methods, without `self`."""
    return type("Theirs", (), {"name": "Theirs", **{name: staticmethod(each) for name, each in methods.items()}})()


ANSWERS: Mapping[str, Any] = {
    "filter_key": lambda pod: pod.uid,
    "score": 1,
    "score_key": lambda pod: pod.uid,
    "normalize": lambda state, pod, nodes, scores: scores,
}
BESIDES: Mapping[str, Mapping[str, Any]] = {
    "filter_key": {"filter": lambda state, pod, node: None},
    "score_key": {"score": lambda state, pod, node: 1},
    "normalize": {"score": lambda state, pod, node: 1},
    "pre_bind_pre_flight": {"pre_bind": lambda state, pod, node: None},
    "reserve": {"unreserve": lambda state, pod, node: None},
}


@pytest.mark.parametrize(
    "point",
    [
        "pre_enqueue",
        "pre_filter",
        "filter",
        "filter_key",
        "pre_score",
        "score",
        "score_key",
        "normalize",
        "reserve",
        "permit",
        "pre_bind_pre_flight",
        "pre_bind",
        "post_bind",
    ],
)
async def test_a_plugin_that_takes_its_time_stops_nothing_but_its_attempt(point: str) -> None:
    gate = Gate()

    def method(*args: Any) -> Any:
        if any(getattr(each, "name", "") == "slow" for each in args):
            gate.pass_through()
        answer = ANSWERS.get(point)
        return answer(*args) if callable(answer) else answer

    cluster = Cluster(lambda _: plugin(**{point: method}, **BESIDES.get(point, {})))
    cluster.bindings["first"] = asyncio.Event()
    async with Scheduling(cluster):
        cluster.create("first")
        await until(lambda: cluster.cache.is_assumed("first"))
        cluster.create("slow")
        await gate.reached()
        cluster.bindings["first"].set()
        await cluster.bound("first")
        if point in ("pre_bind_pre_flight", "pre_bind", "post_bind"):
            cluster.create("next")
            await cluster.bound("next")
        gate.open()
        await cluster.bound("slow")
        assert threading.get_ident() not in gate.threads


async def until(true: Callable[[], Any]) -> None:
    """Returns when that is so."""
    async with asyncio.timeout(DEADLINE):
        while not true():  # noqa: ASYNC110, nobody says so
            await asyncio.sleep(0)


@pytest.mark.parametrize("coroutine", [False, True])
async def test_a_post_filter_that_takes_its_time_stops_nothing_but_its_attempt(coroutine: bool) -> None:
    gate = Gate()

    def make_room(state: Any, pod: Pod, refusals: Any) -> PostFilterResult:
        gate.pass_through()
        return PostFilterResult(unschedulable("no room"))

    async def make_room_later(state: Any, pod: Pod, refusals: Any) -> PostFilterResult:
        return make_room(state, pod, refusals)  # blocks its loop, which it should not

    cluster = Cluster(lambda _: plugin(post_filter=make_room_later if coroutine else make_room))
    cluster.bindings["first"] = asyncio.Event()
    async with Scheduling(cluster):
        cluster.create("first")
        await until(lambda: cluster.cache.is_assumed("first"))
        cluster.create("large", requests={"cpu": 65_000})
        await gate.reached()
        cluster.bindings["first"].set()
        await cluster.bound("first")
        gate.open()
        await until(lambda: len(cluster.attempts) == 2)
        assert "no room" in cluster.attempts[1].message
        assert threading.get_ident() not in gate.threads


async def test_an_order_and_a_hint_that_take_their_time_stop_no_binding() -> None:
    gate = Gate()

    def hint(pod: Pod, happening: Any) -> Hint:
        gate.pass_through()
        return Hint.QUEUE

    refusing = [True]

    def fits(state: Any, pod: Pod, node: Any) -> Status | None:
        return unschedulable("not yet") if pod.name == "refused" and refusing[0] else None

    theirs = plugin(filter=fits, events_to_register=lambda: [Registration(NODE_ADD, hint)])
    cluster = Cluster(lambda _: theirs)
    cluster.bindings["first"] = asyncio.Event()
    async with Scheduling(cluster):
        cluster.create("first", "refused")
        await until(lambda: cluster.attempts and cluster.cache.is_assumed("first"))
        refusing[0] = False
        cluster.scheduler.node_added(Node("n9", allocatable=ROOMY))
        await gate.reached()
        cluster.bindings["first"].set()
        await cluster.bound("first")
        gate.open()
        await cluster.bound("refused")
        assert threading.get_ident() not in gate.threads


async def test_a_pod_that_waits_for_permission_and_is_deleted_waits_no_more_whatever_another_does() -> None:
    gate = Gate()

    def fits(state: Any, pod: Pod, node: Any) -> None:
        if pod.name == "slow":
            gate.pass_through()

    def permit(state: Any, pod: Pod, node_name: str) -> PermitResult | None:
        return PermitResult(Status(Code.WAIT), 600 * SECOND) if pod.name == "waits" else None

    cluster = Cluster(lambda _: plugin(filter=fits, permit=permit))
    async with Scheduling(cluster):
        cluster.create("waits")
        await until(lambda: cluster.cache.is_assumed("waits"))
        cluster.create("slow")
        await gate.reached()
        await cluster.delete_pod(cluster.pods["waits"])
        await until(lambda: cluster.attempts)
        assert "pod deleted" in cluster.attempts[0].message
        gate.open()
        await cluster.bound("slow")
        assert not cluster.cache.is_assumed("waits")


async def test_a_cycle_finds_the_cluster_as_it_was_when_it_began_and_the_next_one_as_it_is() -> None:
    gate, seen = Gate(), {}

    def fits(state: Any, pod: Pod, node: Any) -> Status | None:
        if pod.name == "slow" and node.name == "n0":
            gate.pass_through()
        return None

    def rate(state: Any, pod: Pod, nodes: Sequence[Any]) -> None:
        seen[pod.name] = {node.name: sorted(each.name for each in node.pods.values()) for node in nodes}

    cluster = Cluster(lambda _: plugin(filter=fits, pre_score=rate), [*NODES, Node("n2", allocatable=ROOMY)])
    async with Scheduling(cluster):
        cluster.create("slow")
        await gate.reached()
        cluster.scheduler.node_deleted(Node("n2"))
        cluster.scheduler.node_added(Node("n3", allocatable=ROOMY))
        cluster.scheduler.pod_added(pod("elsewhere", node_name="n1"))
        gate.open()
        await cluster.bound("slow")
        cluster.create("next")
        await cluster.bound("next")
    assert seen["slow"] == {"n0": [], "n1": [], "n2": []}
    assert set(seen["next"]) == {"n0", "n1", "n3"}
    assert "elsewhere" in seen["next"]["n1"]


async def test_pods_that_preempt_are_tried_beside_slow_filters_of_others_too() -> None:
    gate = Gate()

    def fits(state: Any, incoming: Pod, node: Any) -> Status | None:
        if incoming.name == "urgent" and not node.pods:  # the dry run, without the victim
            gate.pass_through()
        return None

    cluster = Cluster(lambda _: plugin(filter=fits), [Node("n", allocatable={"cpu": 1000, "pods": 9})])
    cluster.bindings["first"] = asyncio.Event()
    async with Scheduling(cluster):
        cluster.create("first")
        await until(lambda: cluster.cache.is_assumed("first"))
        cluster.create("urgent", priority=9)
        await gate.reached()
        cluster.bindings["first"].set()
        await cluster.bound("first")
        gate.open()
        await cluster.bound("urgent")
        assert threading.get_ident() not in gate.threads


def test_a_plugin_that_never_returns_is_told_by_name_and_keeps_nobody(caplog: pytest.LogCaptureFixture) -> None:
    gates = []

    async def test() -> None:
        gate = Gate()
        gates.append(gate)

        def fits(state: Any, pod: Pod, node: Any) -> None:
            gate.pass_through()

        async with Scheduling(Cluster(lambda _: plugin(filter=fits), patience=0.01)) as cluster:
            cluster.create("stuck")
            await until(lambda: len(caplog.messages) >= 2)

    with caplog.at_level(logging.WARNING, "podtrail_scheduler"):
        run(test)
    gates[0].open()
    assert caplog.messages[:2] == [
        f'"A plugin has not returned yet" plugin="Theirs" point="filter" pod="default/stuck" seconds={seconds}'
        for seconds in (0.01, 0.02)
    ]


@pytest.mark.parametrize("point", ["filter", "pre_bind", "permit"])
@pytest.mark.parametrize(
    "raised",
    [
        KeyError("mine"),
        StopIteration("mine"),
        SystemExit("mine"),
        asyncio.CancelledError("mine"),
        KeyboardInterrupt("mine"),
    ],
)
async def test_what_a_plugin_raises_beside_the_scheduler_fails_its_attempt(point: str, raised: BaseException) -> None:
    def method(*_: Any) -> None:
        raise raised

    async def coroutine(*_: Any) -> None:
        raise raised

    methods = {"filter": method, "pre_bind": method, "permit": coroutine}
    async with Scheduling(Cluster(lambda _: plugin(**{point: methods[point]}))) as cluster:
        cluster.create("a")
        await until(lambda: cluster.attempts)
        assert cluster.attempts[0].result == "Error"
        # Python turns a StopIteration of a coroutine into a RuntimeError that names it.
        assert "plugin Theirs raised " in cluster.attempts[0].message
        assert type(raised).__name__ in cluster.attempts[0].message


def test_what_a_plugin_traces_beside_the_scheduler_joins_its_attempt() -> None:
    collector = CollectingSpanProcessor()
    provider = provider_around(collector, Resource({}))
    tracer = provider.get_tracer("theirs")

    def named(name: str) -> Callable[..., None]:
        def method(*_: Any) -> None:
            with tracer.start_as_current_span(name):
                pass

        return method

    async def permit(*_: Any) -> None:
        named("their permit")()

    async def test() -> None:
        theirs = plugin(filter=named("their filter"), pre_bind=named("their pre_bind"), permit=permit)
        async with Scheduling(Cluster(lambda _: theirs, provider=provider)) as cluster:
            cluster.create("a")
            await cluster.bound("a")
            await until(lambda: cluster.attempts)

    run(test)
    spans = collector.drain(2**63)
    by_id = {span.context.span_id: span for span in spans}
    theirs = [span for span in spans if span.name.startswith("their ")]
    assert {span.name for span in theirs} == {"their filter", "their permit", "their pre_bind"}
    for span in theirs:
        assert span.parent is not None
        assert by_id[span.parent.span_id].name == "plugin: Theirs"


class Cooperating:
    """Uses what the handle gives, from whichever thread it is in."""

    name = "Theirs"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self.done: list[str] = []

    def permit(self, state: Any, pod: Pod, node_name: str) -> PermitResult:
        self._handle.clock.spawn(self._allow(pod.uid))
        return PermitResult(Status(Code.WAIT), 60 * SECOND)

    async def _allow(self, uid: str) -> None:
        while uid not in self._handle.waiting:
            await self._handle.clock.sleep(MILLISECOND)
        self._handle.waiting[uid].allow(self.name)
        self.done.append("allowed")

    async def pre_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        said = self._handle.clock.signal()
        threading.Thread(target=said.set).start()
        if await said.wait(60 * SECOND):
            self.done.append("heard")

    async def bind(self, state: Any, pod: Pod, node_name: str) -> Status | None:
        if pod.name == "left to others":
            return SKIP
        await self._handle.client.bind(pod, node_name, {})
        return None

    def post_bind(self, state: Any, pod: Pod, node_name: str) -> None:
        self._handle.event(pod, None, "Normal", "Seen", "Binding", "by them")
        self._handle.activate([pod])
        self.done.append("told")


async def test_plugins_use_their_handle_from_their_threads() -> None:
    made: list[Cooperating] = []

    def make(handle: Handle) -> Cooperating:
        made.append(Cooperating(handle))
        return made[0]

    async with Scheduling(Cluster(make)) as cluster:
        cluster.create("a", "left to others")
        await cluster.bound("a", "left to others")
        await until(lambda: len(cluster.attempts) == 2)
    assert sorted(made[0].done) == sorted(["allowed", "heard", "told"] * 2)


@pytest.mark.parametrize(
    "harm", [lambda loop: loop.stop(), lambda loop: loop.call_soon(sys.exit)], ids=["stop", "SystemExit"]
)
async def test_a_plugin_that_ends_the_event_loop_of_plugins_stops_no_other_pod(
    harm: Callable[[asyncio.AbstractEventLoop], Any],
) -> None:
    async def pre_bind(_: Any, pod: Pod, __: str) -> None:
        if pod.name == "a":
            harm(asyncio.get_running_loop())

    async with Scheduling(Cluster(lambda _: plugin(pre_bind=pre_bind))) as cluster:
        cluster.create("a")
        await cluster.bound("a")
        cluster.create("b", "c")
        await cluster.bound("b", "c")
