"""Whatever is asked of the dispatcher in whatever order, each Pod's status comes to what was asked last."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from podtrail_scheduler.api_dispatcher.calls import NOT_READY_FOR_SCHEDULING, Known, PodStatusPatch
from podtrail_scheduler.api_dispatcher.dispatcher import DispatcherSettings
from podtrail_scheduler.framework.client import PodCondition
from podtrail_scheduler.objects.durations import SECOND

from tests.scheduler.api_dispatcher.bench import DispatcherBench, MakeBench

NAMES = ("a", "b", "c")
OPERATIONS = st.one_of(
    st.tuples(st.just("patch"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("nominate"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("later"), st.sampled_from(NAMES), st.integers(0, 3)),
    st.tuples(st.just("clear"), st.sampled_from(NAMES), st.just(0)),
    st.tuples(st.just("wait"), st.just(""), st.integers(1, 8_000)),
    st.tuples(st.just("fail"), st.just(""), st.integers(1, 2)),
)


class Asked:
    """What was asked for one Pod."""

    def __init__(self) -> None:
        self.allowed: set[Known | None] = {None}
        """What PodScheduled may be in the end."""
        self.before: set[Known | None] = {None}
        """What it may be without what is not ready."""
        self.nominated = ""

    def patch(self, condition: Known) -> None:
        self.allowed = self.before = {condition}

    def later(self, condition: Known) -> None:
        self.allowed = {condition}
        self.before = self.before | {None}

    def clear(self) -> None:
        self.allowed = self.before


def condition(reason: str, number: int) -> PodCondition:
    return PodCondition("PodScheduled", "False", reason, f"message {number}")


def perform(bench: DispatcherBench, asked: dict[str, Asked], operation: tuple[str, str, int]) -> None:
    kind, name, number = operation
    if kind == "wait":
        bench.run(number / 1000)
    elif kind == "fail":
        bench.api_server.fail(number)
    elif kind == "patch":
        written = condition("Unschedulable", number)
        asked[name].patch(written[1:])
        bench.dispatcher.patch_pod_status(bench.api_server.pods[name], written, None)
    elif kind == "nominate":
        asked[name].nominated = f"node-{number}" if number else ""
        bench.dispatcher.patch_pod_status(bench.api_server.pods[name], None, asked[name].nominated)
    elif kind == "later":
        written = condition(NOT_READY_FOR_SCHEDULING, number)
        asked[name].later(written[1:])
        patch = PodStatusPatch(bench.api_server.pods[name], {"PodScheduled": written})
        bench.dispatcher.patch_later(patch, 5 * SECOND)
    else:
        asked[name].clear()
        bench.dispatcher.patch_later(PodStatusPatch(bench.api_server.pods[name], {"PodScheduled": None}), 5 * SECOND)


@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(st.lists(OPERATIONS, max_size=25), st.integers(1, 3))
def test_each_pods_status_comes_to_what_was_asked_last(
    make_bench: MakeBench, operations: list[tuple[str, str, int]], parallelism: int
) -> None:
    bench = make_bench(DispatcherSettings(parallelism=parallelism, status_qps=20, status_burst=2))
    asked = {name: Asked() for name in NAMES}
    for name in NAMES:
        bench.pod(name)
    for operation in operations:
        perform(bench, asked, operation)
    bench.run(600)
    assert bench.dispatcher.pending() == {"pod_binding": 0, "pod_status_patch": 0}
    assert bench.timeline.next_time() is None
    for name, pod in bench.api_server.pods.items():
        assert pod.conditions.get("PodScheduled") in asked[name].allowed
        assert pod.nominated_node_name == asked[name].nominated
    assert bench.api_server.most_at_once <= parallelism
