"""Pods that wait for permission, and what happens when it is refused."""

from podtrail_scheduler.attempt import AttemptRecord
from podtrail_scheduler.cache import Cache
from podtrail_scheduler.cluster.simulated.api_server import PodPlan, SimulatedApiServer
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.durations import SECOND
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PermitResult
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.status import Code, Status, unschedulable
from podtrail_scheduler.framework.waiting import WaitingPod
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.plugins.registry import default_profile
from podtrail_scheduler.scheduler import Scheduler

WAIT = PermitResult(Status(Code.WAIT), 5 * SECOND)


class Guard:
    """Answers as told, keeps a reservation."""

    name = "Guard"

    def __init__(self, answer: PermitResult) -> None:
        self.answer = answer
        self.reserved: list[str] = []

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        self.reserved.append(pod.name)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        self.reserved.remove(pod.name)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitResult:
        return self.answer


class Bench:
    """A scheduler with one node, one Pod and a guard, stepped by hand."""

    def __init__(self, answer: PermitResult) -> None:
        self.guard = Guard(answer)
        self.timeline = Timeline(0, "test")
        self.api_server = SimulatedApiServer(self.timeline, bind_takes=SECOND)
        self.cache = Cache()
        self.handle = Handle(self.timeline, self.api_server, self.cache.nodes)
        self.records: list[AttemptRecord] = []
        profile = default_profile(self.handle, [self.guard])
        self.scheduler = Scheduler(profile, self.handle, self.cache, tracer=None, on_attempt=self.records.append)
        self.scheduler.node_added(Node("n1", allocatable={"cpu": 1000, "pods": 5}))
        self.pod = Pod("a", uid="a", requests={"cpu": 1000})
        self.api_server.watcher = self.scheduler
        self.scheduler.pod_added(self.pod)
        attempt = self.scheduler.next_attempt()
        assert attempt is not None
        self.attempt = attempt

    def finish(self) -> AttemptRecord:
        for _ in self.attempt:
            pass
        [record] = self.records
        return record

    def wait(self) -> WaitingPod:
        next(self.attempt)
        waiting = next(self.attempt)
        assert isinstance(waiting, WaitingPod)
        return waiting


def test_who_is_refused_permission_leaves_no_trace_on_the_node() -> None:
    bench = Bench(PermitResult(unschedulable("no quota")))
    record = bench.finish()
    assert (record.result, record.message) == ("Unschedulable", "0/1 nodes are available: 1 no quota.")
    assert record.refused_by == {"Guard"}
    assert bench.guard.reserved == []
    assert not bench.cache.nodes()[0].pods


def test_who_is_allowed_goes_on_to_bind() -> None:
    bench = Bench(WAIT)
    waiting = bench.wait()
    assert bench.handle.waiting == {"a": waiting}
    waiting.allow("Guard")
    assert waiting.decided
    record = bench.finish()
    assert record.message == 'running Bind plugin "DefaultBinder": pods "a" not found'  # nobody created it
    assert bench.handle.waiting == {}


def test_who_is_rejected_while_waiting_gives_everything_back() -> None:
    bench = Bench(WAIT)
    bench.wait().reject("Guard", "gang incomplete")
    record = bench.finish()
    assert (record.result, record.message) == ("Unschedulable", "0/1 nodes are available: 1 gang incomplete.")
    assert bench.guard.reserved == []
    assert not bench.cache.nodes()[0].pods


def test_a_waiting_pod_counts_on_its_node() -> None:
    bench = Bench(WAIT)
    bench.wait()
    assert list(bench.cache.nodes()[0].pods) == ["a"]


def test_a_pod_that_is_deleted_while_waiting_is_given_up() -> None:
    bench = Bench(WAIT)
    bench.wait()
    bench.scheduler.pod_deleted(bench.pod)
    record = bench.finish()
    assert record.message == "0/1 nodes are available: 1 pod deleted."
    assert not any(bench.scheduler.queue.pending().values())


def test_patience_ends_with_a_text_that_names_the_plugin() -> None:
    waiting = WaitingPod("a", 10, {"Guard": 900 * SECOND, "Other": 5 * SECOND})
    assert waiting.deadlines() == [10 + 900 * SECOND, 10 + 5 * SECOND]
    waiting.expire(5 * SECOND)
    assert not waiting.decided
    waiting.expire(10 + 5 * SECOND)
    assert waiting.status == unschedulable("rejected due to timeout after waiting 5s at plugin Other")
    waiting.expire(900 * SECOND)
    assert waiting.refused_by == "Other"


def test_a_pod_that_is_deleted_while_it_is_bound_leaves_its_room() -> None:
    bench = Bench(PermitResult(None))
    bench.api_server.create_pod(bench.pod, PodPlan(None, 0, 0, ""))
    bench.timeline.step()
    for _ in range(2):
        next(bench.attempt)
    bench.api_server.delete_pod(bench.pod, "test")
    next(bench.attempt)
    while bench.timeline.next_time() is not None:
        bench.timeline.step()
    assert bench.finish().result == "Success"
    assert not bench.cache.nodes()[0].pods
