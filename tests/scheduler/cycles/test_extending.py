"""Where extenders have their say in an attempt, and what it counts for."""

from collections.abc import Mapping, Sequence
from typing import Any

from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.framework.diagnosis import Diagnosis, NodeRefusal
from podtrail_scheduler.framework.extending import ExtenderError
from podtrail_scheduler.framework.status import Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.durations import SECOND

from tests.scheduler.bench import ROOMY, Bench, pod

NODES = [Node(name, allocatable=ROOMY) for name in ("n1", "n2", "n3")]


class Extender:
    """Refuses, prefers and binds as it was told; nothing of it takes time."""

    filters = True
    prioritizes = True

    def __init__(
        self,
        refuses: Mapping[str, Status] | None = None,
        prefers: Mapping[str, int] | None = None,
        binds: bool = False,
        fails: frozenset[str] = frozenset(),
    ) -> None:
        self.refuses = refuses or {}
        self.prefers = prefers or {}
        self.binds = binds
        self.fails = fails
        self.asked: list[tuple[str, list[str]]] = []

    async def filter(self, pod: Pod, nodes: Sequence[str], diagnosis: Diagnosis) -> Sequence[str]:
        self._ask("filter", nodes)
        for node in nodes:
            if node in self.refuses:
                diagnosis.add(NodeRefusal("Extender", self.refuses[node], [node]))
        return [node for node in nodes if node not in self.refuses]

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
        self._ask("prioritize", nodes)
        return self.prefers

    async def bind(self, pod: Pod, node_name: str) -> bool:
        self._ask("bind", [node_name])
        return self.binds

    def _ask(self, verb: str, nodes: Sequence[str]) -> None:
        self.asked.append((verb, sorted(nodes)))
        if verb in self.fails:
            raise ExtenderError(f"{verb}: connection refused")


def attempt(extender: Extender, **fields: Any) -> AttemptRecord:
    bench = Bench(nodes=NODES, extenders=extender)
    return bench.attempt(pod(**fields))


def test_extenders_filter_behind_the_plugins() -> None:
    extender = Extender({"n1": unschedulable("no licence"), "n2": unresolvable("no rack")})
    assert attempt(extender).node == "n3"
    assert extender.asked[0] == ("filter", ["n1", "n2", "n3"])


def test_what_extenders_refuse_is_told_with_what_plugins_refuse() -> None:
    extender = Extender({node.name: unschedulable("no licence") for node in NODES})
    record = attempt(extender)
    assert record.message.startswith("0/3 nodes are available: 3 no licence.")
    assert record.refused_by == {"Extender"}


def test_who_extenders_refused_is_tried_again_when_anything_happens() -> None:
    bench = Bench(nodes=NODES, extenders=Extender({node.name: unschedulable("no") for node in NODES}))
    bench.attempt(pod())
    bench.api_server.add_node(Node("n4", allocatable=ROOMY))
    bench.step_until(lambda: bench.records[-1].number == 2)
    assert bench.records[-1].node == "n4"


def test_what_extenders_add_decides_among_nodes() -> None:
    assert attempt(Extender(prefers={"n2": 1000})).node == "n2"


def test_an_extender_that_binds_leaves_nothing_to_the_plugins() -> None:
    bench = Bench(nodes=NODES, extenders=Extender(binds=True))
    assert bench.attempt(pod()).result == "Success"
    assert bench.api_server.bound == 0


def test_an_extender_that_does_not_bind_leaves_it_to_the_plugins() -> None:
    bench = Bench(nodes=NODES, extenders=Extender())
    assert bench.attempt(pod()).result == "Success"
    assert bench.api_server.bound == 1


def test_a_filter_of_an_extender_that_fails_fails_the_attempt() -> None:
    record = attempt(Extender(fails=frozenset(("filter",))))
    assert (record.result, record.message) == ("Error", "filter: connection refused")


def test_a_bind_of_an_extender_that_fails_fails_the_attempt_and_frees_the_node() -> None:
    bench = Bench(nodes=NODES, extenders=Extender(fails=frozenset(("bind",))))
    record = bench.attempt(pod())
    assert (record.result, record.message) == ("Error", "bind: connection refused")
    assert not any(bench.pods_on(node.name) for node in NODES)


def test_a_nominated_node_that_an_extender_refuses_is_not_the_end() -> None:
    extender = Extender({"n2": unschedulable("taken")})
    assert attempt(extender, nominated_node_name="n2").node in ("n1", "n3")
    assert extender.asked[0] == ("filter", ["n2"])


def test_what_changes_while_an_extender_answers_is_worked_in_behind_the_cycle() -> None:
    class Slow(Extender):
        async def filter(self, pod: Pod, nodes: Sequence[str], diagnosis: Diagnosis) -> Sequence[str]:
            bench.scheduler.node_deleted(NODES[0])
            bench.scheduler.node_added(Node("n0", allocatable=ROOMY))
            await bench.timeline.sleep(SECOND)
            return await super().filter(pod, nodes, diagnosis)

    extender = Slow()
    bench = Bench(nodes=NODES, extenders=extender)
    assert bench.attempt(pod()).node in extender.asked[0][1]
    assert extender.asked[:2] == [("filter", ["n1", "n2", "n3"]), ("prioritize", ["n1", "n2", "n3"])]
    assert {node.name for node in bench.cache.nodes()} == {"n0", "n2", "n3"}
