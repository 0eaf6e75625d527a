"""Pods that wait for permission, and what happens when it is refused."""

from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PermitResult
from podtrail_scheduler.framework.status import Code, Status, unschedulable
from podtrail_scheduler.framework.waiting import WaitingPod
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import SECOND

from tests.scheduler.bench import Bench, pod

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


def bench_with(answer: PermitResult) -> tuple[Bench, Guard]:
    guard = Guard(answer)
    return Bench(guard), guard


def waiting_on(bench: Bench) -> WaitingPod:
    bench.create(pod())
    bench.step_until(lambda: bool(bench.handle.waiting))
    return bench.handle.waiting["a"]


def finish(bench: Bench) -> AttemptRecord:
    bench.step_until(lambda: bool(bench.records))
    [record] = bench.records
    return record


def test_who_is_refused_permission_leaves_no_trace_on_the_node() -> None:
    bench, guard = bench_with(PermitResult(unschedulable("no quota")))
    record = bench.attempt(pod())
    assert (record.result, record.message) == ("Unschedulable", "0/1 nodes are available: 1 no quota.")
    assert record.refused_by == {"Guard"}
    assert guard.reserved == []
    assert bench.pods_on("n1") == []


def test_who_is_allowed_goes_on_to_bind() -> None:
    bench, _ = bench_with(WAIT)
    waiting = waiting_on(bench)
    waiting.allow("Guard")
    assert waiting.decided
    record = finish(bench)
    assert (record.result, record.node) == ("Success", "n1")
    assert bench.handle.waiting == {}


def test_a_pod_that_has_to_wait_tells_which_node_it_will_be() -> None:
    bench, _ = bench_with(WAIT)
    waiting_on(bench)
    bench.step_until(lambda: bench.api_server.pods["a"].nominated_node_name == "n1")


def test_who_is_rejected_while_waiting_gives_everything_back() -> None:
    bench, guard = bench_with(WAIT)
    waiting_on(bench).reject("Guard", "gang incomplete")
    record = finish(bench)
    assert (record.result, record.message) == ("Unschedulable", "0/1 nodes are available: 1 gang incomplete.")
    assert record.refused_by == {"Guard"}
    assert guard.reserved == []
    assert bench.pods_on("n1") == []


def test_who_gives_way_while_waiting_is_not_refused_by_anybody() -> None:
    bench, _ = bench_with(WAIT)
    waiting_on(bench).preempt("DefaultPreemption", "preempted")
    record = finish(bench)
    assert (record.result, record.message) == ("Error", "waiting on permit for pod: preempted")
    assert record.refused_by == frozenset()


def test_a_waiting_pod_counts_on_its_node() -> None:
    bench, _ = bench_with(WAIT)
    waiting_on(bench)
    assert bench.pods_on("n1") == ["a"]


def test_a_pod_that_is_deleted_while_waiting_is_given_up() -> None:
    bench, _ = bench_with(WAIT)
    waiting_on(bench)
    bench.timeline.spawn(bench.api_server.delete_pod(bench.api_server.pods["a"]))
    record = finish(bench)
    assert record.message == "0/1 nodes are available: 1 pod deleted."
    bench.step_until(lambda: not bench.api_server.pods and not any(bench.scheduler.queue.lengths().values()))


def test_patience_ends_with_a_text_that_names_the_plugin() -> None:
    bench, _ = bench_with(WAIT)
    began = bench.timeline.now()
    waiting_on(bench)
    record = finish(bench)
    assert record.message == "0/1 nodes are available: 1 rejected due to timeout after waiting 5s at plugin Guard."
    assert 5 * SECOND < record.ended - began < 6 * SECOND


def test_the_least_patient_plugin_ends_the_wait() -> None:
    timeline = Timeline(0, "test")
    waiting = WaitingPod(pod(), "n1", timeline, {"Guard": 900 * SECOND, "Other": 5 * SECOND})
    timeline.spawn(waiting.wait())
    while not waiting.decided:
        timeline.step()
    assert (waiting.refused_by, timeline.now()) == ("Other", 5 * SECOND)
    assert waiting.reject("Guard", "too late") is False


def test_nobody_waits_for_more_than_fifteen_minutes() -> None:
    bench, _ = bench_with(PermitResult(Status(Code.WAIT), 3600 * SECOND))
    waiting_on(bench)
    assert "after waiting 15m0s at plugin Guard" in finish(bench).message


def test_a_pod_that_is_deleted_while_it_is_bound_leaves_its_room() -> None:
    bench, _ = bench_with(PermitResult(None))
    bench.create(pod())
    bench.step_until(lambda: bench.pods_on("n1") == ["a"])
    bench.timeline.spawn(bench.api_server.delete_pod(pod()))
    record = finish(bench)
    assert record.result == "Error"
    bench.step_until(lambda: not bench.api_server.pods)
    assert bench.pods_on("n1") == []
