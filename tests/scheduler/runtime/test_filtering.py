"""How many nodes are looked at, and that slices give the answer that one node after the other gives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.diagnosis import Diagnosis, NodeRefusal, fit_message
from podtrail_scheduler.framework.extension_points import Plugin
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import Status, error, unresolvable, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.runtime.filtering import FilterPhase, nodes_wanted
from podtrail_scheduler.runtime.profile import Enabled, Profile

from tests.scheduler.bench import Binder, framework, span_of

NO = unschedulable("no")


class Refuser:
    """Refuses the nodes it was told to."""

    def __init__(self, name: str, refused: set[int], status: Status = NO) -> None:
        self.name = name
        self.refused = refused
        self.status = status

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return self.status if int(node.name) in self.refused else None


def phase_of(*plugins: Plugin, count: int) -> FilterPhase:
    points = framework(*plugins, nodes=[Node(str(number)) for number in range(count)])
    return FilterPhase(points, span_of(points), CycleState(), Pod("a"))


@pytest.mark.parametrize(
    ("total", "wanted"), [(0, 0), (1, 1), (99, 99), (100, 100), (250, 120), (1000, 420), (5000, 500), (15000, 750)]
)
def test_large_clusters_are_not_searched_to_the_end(total: int, wanted: int) -> None:
    assert nodes_wanted(total) == wanted


@given(
    count=st.integers(1, 30),
    wanted=st.integers(1, 30),
    refusals=st.lists(st.sets(st.integers(0, 29)), max_size=3),
)
def test_slices_find_what_one_node_after_the_other_finds(count: int, wanted: int, refusals: list[set[int]]) -> None:
    expected: list[str] = []
    looked_at = 0
    for number in range(count):
        if len(expected) == wanted:
            break
        looked_at += 1
        if not any(number in refused for refused in refusals):
            expected.append(str(number))
    plugins = [Refuser(f"Refuser{position}", refused) for position, refused in enumerate(refusals)]
    phase = phase_of(*plugins, count=count)
    found = phase.search(range(count), wanted)
    assert [str(index) for index in found] == expected
    assert (phase.evaluated, phase.feasible) == (looked_at, len(expected))


def test_a_node_is_refused_by_the_first_plugin_that_says_no() -> None:
    plugins = Refuser("First", {0, 1}), Refuser("Second", {1, 2}, unresolvable("never"))
    phase = phase_of(*plugins, count=3)
    phase.search(range(3), 3)
    diagnosis = Diagnosis(3)
    assert phase.end(diagnosis) is None
    assert diagnosis.refusals == [
        NodeRefusal("First", unschedulable("no"), ["0", "1"]),
        NodeRefusal("Second", unresolvable("never"), ["2"]),
    ]
    assert diagnosis.message() == "0/3 nodes are available: 1 never, 2 no."


def test_a_filter_that_fails_fails_the_attempt() -> None:
    phase = phase_of(Refuser("Broken", {0}, error("out of order")), count=2)
    phase.search(range(2), 2)
    failed = phase.end(Diagnosis(2))
    assert failed is not None
    assert (failed.plugin, failed.status) == ("Broken", error('running "Broken" filter plugin: out of order'))


def test_reasons_are_sorted_as_text_and_counted_each() -> None:
    refusals = [
        NodeRefusal("Fit", unschedulable("Insufficient cpu", "Insufficient memory"), ["a", "b"]),
        NodeRefusal("Taint", unresolvable("node(s) had untolerated taint(s)"), [str(number) for number in range(10)]),
    ]
    assert fit_message(12, refusals) == (
        "0/12 nodes are available: 10 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory."
    )


def test_what_pre_filter_said_stands_in_place_of_reasons() -> None:
    text = fit_message(3, [], 'persistentvolumeclaim "x" not found', "preemption: none.")
    assert text == '0/3 nodes are available: persistentvolumeclaim "x" not found. preemption: none.'


def test_a_cluster_without_nodes_has_a_text_of_its_own() -> None:
    assert Diagnosis(0).message() == "no nodes available to schedule pods"


def test_a_profile_needs_one_sorter_and_a_binder() -> None:
    with pytest.raises(ValueError, match="needs exactly one plugin that sorts the queue, it has 0"):
        Profile("test", [Enabled(Refuser("Refuser", set()))])
    with pytest.raises(ValueError, match="needs a plugin that binds"):
        Profile("test", [Enabled(Binder())], {"queue_sort": ["Binder"]})
