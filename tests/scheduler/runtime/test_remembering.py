"""Remembered answers are those that would be given anew, whatever happened to the nodes in between."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_scheduler.cluster.simulated.api_server import SimulatedApiServer
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.framework.client import Client
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.diagnosis import Diagnosis
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.objects import ZONE, Node, Pod, Taint, Toleration
from podtrail_scheduler.plugins.registry import default_profile
from podtrail_scheduler.runtime.filtering import FilterPhase
from podtrail_scheduler.runtime.framework import Framework
from podtrail_scheduler.runtime.node_table import NodeTable
from podtrail_scheduler.runtime.remembering import UNKNOWN, AnswerMemory
from podtrail_scheduler.runtime.scoring import ScorePhase

from tests.scheduler.bench import span_of

KINDS = [
    Pod("plain", requests={"cpu": 1000, "memory": 1 << 30}),
    Pod("small", requests={"cpu": 100}),
    Pod("tolerant", requests={"cpu": 500}, tolerations=(Toleration(operator="Exists"),)),
    Pod("ssd", requests={"cpu": 2000}, node_selector={"disk": "ssd"}),
]


def node(name: str, kind: int, zone: str) -> Node:
    taints = (Taint("dedicated", effect=("NoSchedule", "PreferNoSchedule")[kind % 2]),) if kind > 1 else ()
    labels = {ZONE: zone} | ({"disk": "ssd"} if kind % 2 else {})
    return Node(name, labels, {"cpu": 4000, "memory": 8 << 30, "pods": 5}, taints, unschedulable=kind == 3)


class Cluster:
    """A cache, and what a scheduler that remembers and one that does not say of Pods."""

    def __init__(self) -> None:
        self.cache = Cache()
        timeline = Timeline(0, "test")
        client: Client = SimulatedApiServer(timeline, 0)
        handle = Handle(timeline, client, self.cache.nodes)
        self._framework = Framework(default_profile(handle), timeline, self.cache.table, handle.nominator)

    def answers(self, pod: Pod, *, anew: bool) -> tuple[object, ...]:
        if anew:
            self._framework.memory = AnswerMemory(self.cache.table)
        state, diagnosis = CycleState(), Diagnosis(len(self.cache.nodes()))
        span = span_of(self._framework)
        prepared = self._framework.run_pre_filter(span, state, pod, self.cache.nodes())
        assert prepared.refused is None
        phase = FilterPhase(self._framework, span, state, pod)
        found = phase.search(range(len(self.cache.nodes())), len(self.cache.nodes()))
        phase.end(diagnosis)
        refusals = sorted((each.plugin, each.status, sorted(each.nodes)) for each in diagnosis.refusals)
        if len(found) < 2:
            return found, refusals
        scores = ScorePhase(self._framework, state, pod, found)
        assert scores.pre_score(span) is None
        assert scores.score(span) is None
        return found, refusals, scores.sums(), scores.best(Random(1))


operations = st.lists(
    st.tuples(st.sampled_from(["node", "node gone", "pod", "pod gone", "ask"]), st.integers(0, 3), st.integers(0, 5)),
    max_size=40,
)


@settings(deadline=None, max_examples=60)
@given(operations)
def test_what_is_remembered_is_what_would_be_said_anew(steps: list[tuple[str, int, int]]) -> None:
    cluster = Cluster()
    cache = cluster.cache
    for number in range(3):
        cache.set_node(node(f"n{number}", number, "a"))
    for place, (step, kind, number) in enumerate(steps):
        name = f"n{number}"
        if step == "node":
            cache.set_node(node(name, kind, "abc"[number % 3]))
        elif step == "node gone" and len(cache.nodes()) > 1:
            cache.remove_node(name)
        elif step == "pod":
            cache.set_pod(KINDS[kind].named(f"p{place}", f"p{place % 10}").on(name))
        elif step == "pod gone":
            cache.remove_pod(f"p{kind}")
        else:
            cluster.answers(KINDS[kind], anew=False)
    for pod in KINDS:
        remembered = cluster.answers(pod, anew=False)
        assert remembered == cluster.answers(pod, anew=True)


def test_what_was_forgotten_by_the_log_is_unknown_again() -> None:
    cache = Cache()
    for number in range(3):
        cache.set_node(node(f"n{number}", 0, "a"))
    memory = AnswerMemory(cache.table)
    memory.column("key")[:] = ["one", "two", "three"]
    for _ in range(2000):
        cache.set_node(node("n1", 0, "a"))
    assert memory.column("key") == [UNKNOWN] * 3


def test_only_the_node_that_changed_is_asked_about_again() -> None:
    cache = Cache()
    for number in range(3):
        cache.set_node(node(f"n{number}", 0, "a"))
    memory = AnswerMemory(cache.table)
    memory.column("key")[:] = ["one", "two", "three"]
    cache.set_pod(KINDS[0].on("n1"))
    assert memory.column("key") == ["one", UNKNOWN, "three"]


def test_nodes_are_looked_at_one_of_each_zone_after_the_other() -> None:
    cache = Cache()
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a"), ("c1", "c"), ("b2", "b")):
        cache.set_node(node(name, 0, zone))
    assert [info.name for info in cache.nodes()] == ["a1", "b1", "c1", "a2", "b2", "a3"]
    cache.remove_node("b1")
    assert [info.name for info in cache.nodes()] == ["a1", "b2", "c1", "a2", "a3"]


def test_a_table_without_nodes_is_empty() -> None:
    table = NodeTable()
    assert (list(table.infos), table.position) == ([], 0)
