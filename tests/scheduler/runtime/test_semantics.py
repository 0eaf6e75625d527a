"""What each status means at each extension point, as kube-scheduler's framework has it, and plugins that misbehave."""

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from podtrail_scheduler.cycles.attempt import AttemptRecord
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import Plugin, PostFilterResult, PreFilterResult
from podtrail_scheduler.framework.node_info import NodeInfo
from podtrail_scheduler.framework.status import SKIP, Code, Status, error, unresolvable, unschedulable
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.plugins.node_resources_fit import NodeResourcesFit
from podtrail_scheduler.runtime.profile import Enabled, Profile

from tests.scheduler.bench import ROOMY, Bench, Binder, pod

NODES = [Node(name, allocatable=ROOMY) for name in ("n1", "n2", "n3")]
NOT_READY = Status(Code.PENDING, ("the claim is on its way",))


class Plug:
    """Answers with what it was given for the points it was given."""

    def __init__(self, name: str = "Plug", **answers: Any) -> None:
        self.name = name
        self.calls: list[str] = []
        for point, answer in answers.items():
            setattr(self, point, self._answering(point, answer))

    def _answering(self, point: str, answer: Any) -> Any:
        def method(*arguments: Any) -> Any:
            self.calls.append(point)
            if isinstance(answer, Exception):
                raise answer
            return answer(*arguments) if callable(answer) else answer

        return method


def bench(*plugins: Plugin, nodes: Sequence[Node] = NODES, weights: dict[str, int] | None = None) -> Bench:
    """A scheduler with nothing but these plugins."""
    enabled = [Enabled(each, (weights or {}).get(each.name, 1)) for each in plugins]
    return Bench(nodes=nodes, profile=lambda _: Profile("default-scheduler", [*enabled, Enabled(Binder())]))


def attempt(*plugins: Plugin, **fields: Any) -> AttemptRecord:
    return bench(*plugins).attempt(pod(**fields))


def prefer(**scores: int) -> Plug:
    def score(_state: CycleState, _pod: Pod, node: NodeInfo) -> int:
        return scores.get(node.name, 0)

    return Plug("Prefer", score=score)


def test_pre_filter_that_skips_spares_its_filter() -> None:
    plug = Plug(pre_filter=SKIP, filter=unschedulable("no"))
    assert attempt(plug).result == "Success"
    assert plug.calls == ["pre_filter"]


def test_pre_score_that_skips_spares_its_score() -> None:
    plug = Plug(pre_score=SKIP, score=1)
    assert attempt(plug).result == "Success"
    assert plug.calls == ["pre_score"]


def test_an_unresolvable_pre_filter_ends_the_phase_and_an_unschedulable_one_does_not() -> None:
    behind = Plug("Behind", pre_filter=None)
    record = attempt(Plug(pre_filter=unresolvable("never")), behind)
    assert record.message == "0/3 nodes are available: never."
    assert behind.calls == []
    record = attempt(Plug(pre_filter=unschedulable("not now")), behind)
    assert record.message == "0/3 nodes are available: not now."
    assert behind.calls == ["pre_filter"]
    assert record.refused_by == {"Plug"}


def test_only_nodes_that_all_pre_filters_name_are_looked_at() -> None:
    first = Plug("First", pre_filter=PreFilterResult(frozenset(("n1", "n2"))))
    second = Plug("Second", pre_filter=PreFilterResult(frozenset(("n2", "n3", "gone"))))
    looked_at = Plug("Filter", filter=lambda _state, _pod, node: None if node.name == "n2" else unschedulable("no"))
    record = attempt(first, second, looked_at)
    assert (record.node, looked_at.calls) == ("n2", ["filter"])


def test_nodes_that_pre_filter_left_out_are_told_by_the_plugins_that_did() -> None:
    only = Plug("Only", pre_filter=PreFilterResult(frozenset(("n1",))))
    record = attempt(only, Plug("Filter", filter=unschedulable("full")))
    assert record.message == "0/3 nodes are available: 1 full, 2 node(s) didn't satisfy plugin(s) [Only]."
    assert record.refused_by == {"Only", "Filter"}


def test_pre_filters_that_leave_no_node_together_say_so() -> None:
    first = Plug("Second", pre_filter=PreFilterResult(frozenset(("n1",))))
    second = Plug("First", pre_filter=PreFilterResult(frozenset(("n2",))))
    record = attempt(first, second)
    text = "node(s) didn't satisfy plugin(s) [First Second] simultaneously"
    assert record.message == f"0/3 nodes are available: {text}."
    assert record.refused_by == {"First", "Second"}


def test_one_pre_filter_that_leaves_no_node_is_named_alone() -> None:
    record = attempt(Plug("Only", pre_filter=PreFilterResult(frozenset())))
    assert record.message == "0/3 nodes are available: node(s) didn't satisfy plugin Only."


@pytest.mark.parametrize(
    ("point", "text"),
    [
        ("pre_filter", 'running PreFilter plugin "Plug": broken'),
        ("filter", 'running "Plug" filter plugin: broken'),
        ("pre_score", 'running PreScore plugin "Plug": broken'),
        ("reserve", 'running Reserve plugin "Plug": broken'),
        ("permit", 'running Permit plugin "Plug": broken'),
        ("pre_bind", 'running PreBind plugin "Plug": broken'),
        ("bind", 'running Bind plugin "Plug": broken'),
    ],
)
def test_an_error_fails_the_attempt_and_says_where(point: str, text: str) -> None:
    answers: dict[str, Any] = {"unreserve": None, "score": 1, point: error("broken")}
    record = attempt(Plug(**answers))
    assert (record.result, record.message) == ("Error", text)
    assert record.refused_by == frozenset()


@pytest.mark.parametrize("point", ["pre_filter", "filter", "pre_score", "reserve"])
@pytest.mark.parametrize("code", [Code.WAIT, Code.PENDING, Code.SKIP])
def test_a_status_that_a_point_does_not_know_is_an_error(point: str, code: Code) -> None:
    allowed = {
        ("pre_filter", Code.SKIP),
        ("pre_score", Code.SKIP),
        ("filter", Code.PENDING),
        ("reserve", Code.PENDING),
    }
    answers: dict[str, Any] = {point: Status(code, ("odd",)), "unreserve": None, "score": 1}
    record = attempt(Plug(**answers))
    assert (record.result == "Error") is ((point, code) not in allowed)


@pytest.mark.parametrize(
    "point", ["pre_filter", "filter", "post_filter", "pre_score", "score", "reserve", "permit", "pre_bind", "bind"]
)
def test_a_plugin_that_raises_fails_the_attempt_and_the_scheduler_lives(
    point: str, caplog: pytest.LogCaptureFixture
) -> None:
    faulty = Plug("Faulty", **{"unreserve": None, "score": 1, point: ValueError("oh")})
    full = Plug("Full", filter=lambda _state, pod, _node: unschedulable("full") if point == "post_filter" else None)
    stand = bench(full, faulty)
    with caplog.at_level(logging.ERROR):
        record = stand.attempt(pod())
    assert "plugin Faulty raised ValueError: oh" in record.message
    assert any(each.exc_info is not None for each in caplog.records)
    assert stand.attempt(pod("b")).number > 0


def test_post_filter_runs_with_the_status_of_every_node() -> None:
    seen: dict[str, Status] = {}

    def post_filter(_state: CycleState, _pod: Pod, refusals: dict[str, Status]) -> PostFilterResult:
        seen.update(refusals)
        return PostFilterResult(unschedulable("no help"), None)

    only = Plug("Only", pre_filter=PreFilterResult(frozenset(("n1",))))
    record = attempt(only, Plug("Filter", filter=unschedulable("full")), Plug("Help", post_filter=post_filter))
    assert record.message.endswith(". no help")
    absent = unresolvable("node(s) didn't satisfy plugin(s) [Only]")
    assert seen == {"n1": unschedulable("full"), "n2": absent, "n3": absent}


def test_an_error_of_post_filter_leaves_the_pod_unschedulable_and_is_told() -> None:
    broken = Plug("Help", post_filter=PostFilterResult(error("out of order"), None))
    record = attempt(Plug(filter=unschedulable("full")), broken)
    assert (record.result, record.message) == ("Unschedulable", "0/3 nodes are available: 3 full. out of order")


def test_who_is_pending_is_retried_without_back_off() -> None:
    stand = bench(Plug(filter=NOT_READY))
    record = stand.attempt(pod())
    assert record.refused_by == {"Plug"}
    entry = stand.scheduler.queue.get("a")
    assert entry is not None
    assert entry.pending_on == {"Plug"}


@pytest.mark.parametrize("score", [-1, 101])
def test_a_score_out_of_range_is_an_error(score: int) -> None:
    record = attempt(Plug(score=score))
    text = f'plugin "Plug" returns an invalid score {score}, it should in the range of [0, 100] after normalizing'
    assert record.message == f"applying score defaultWeights on Score plugins: {text}"


def test_a_score_out_of_range_that_is_normalized_is_none() -> None:
    plug = Plug(score=1000, normalize=lambda _state, _pod, nodes, scores: [score // 10 for score in scores])
    assert attempt(plug).result == "Success"


def test_scores_count_by_weight() -> None:
    other = Plug("Other", score=lambda _state, _pod, node: 100 if node.name == "n3" else 0)
    assert bench(prefer(n1=40), other, weights={"Prefer": 3}).attempt(pod()).node == "n1"
    assert bench(prefer(n1=40), other, weights={"Prefer": 2}).attempt(pod()).node == "n3"


def test_equals_are_drawn_and_not_always_the_first() -> None:
    stand = bench(prefer(n1=5, n2=5, n3=1))
    chosen = {stand.attempt(pod(f"p{number}", requests={})).node for number in range(20)}
    assert chosen == {"n1", "n2"}


def test_reservations_are_given_back_in_reverse_when_one_fails() -> None:
    order: list[str] = []

    def reserving(name: str, answer: Status | None) -> Plug:
        return Plug(name, reserve=answer, unreserve=lambda *_: order.append(name))

    record = attempt(reserving("First", None), reserving("Second", unschedulable("none left")))
    assert order == ["Second", "First"]
    assert record.message == "0/1 nodes are available: 1 none left."


def test_a_binder_that_skips_leaves_it_to_the_next() -> None:
    first, second = Plug("First", bind=SKIP), Plug("Second", bind=None)
    assert attempt(first, second).result == "Success"
    assert (first.calls, second.calls) == (["bind"], ["bind"])


def test_a_pre_bind_that_has_nothing_to_do_is_not_called() -> None:
    plug = Plug(pre_bind_pre_flight=SKIP, pre_bind=error("called"))
    assert attempt(plug).result == "Success"


def test_a_pre_flight_knows_success_skip_and_error_only() -> None:
    record = attempt(Plug(pre_bind_pre_flight=unschedulable("no"), pre_bind=None))
    assert record.message == (
        'PreBindPreFlight Plug returned "Unschedulable", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status"
    )


def test_a_nominated_node_is_tried_first_and_alone() -> None:
    plug = Plug(filter=None)
    record = bench(plug, prefer(n1=100)).attempt(pod(nominated_node_name="n2"))
    assert (record.node, plug.calls) == ("n2", ["filter"])


def test_a_nominated_node_that_does_not_fit_is_not_the_end() -> None:
    plug = Plug(filter=lambda _state, _pod, node: unschedulable("taken") if node.name == "n2" else None)
    record = bench(plug, prefer(n1=100)).attempt(pod(nominated_node_name="n2"))
    assert (record.node, plug.calls) == ("n1", ["filter"] * 3)


def test_room_that_somebody_as_important_hopes_for_is_not_given_away() -> None:
    stand = Bench(nodes=[Node("n1", allocatable={"cpu": 1000, "pods": 9})])
    hopeful = pod("hopeful", priority=5, nominated_node_name="n1", scheduling_gates=("wait",))
    stand.create(hopeful)
    stand.step_until(lambda: bool(stand.handle.nominator.nodes))
    assert stand.attempt(pod("less", priority=4)).message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert stand.attempt(pod("more", priority=6)).node == "n1"


def test_with_nothing_that_scores_the_first_fitting_node_is_enough() -> None:
    plug = Plug(filter=None)
    assert attempt(plug).result == "Success"
    assert plug.calls == ["filter"]


def test_a_pod_that_is_being_deleted_is_not_tried() -> None:
    stand = bench(Plug(filter=None))
    stand.create(pod("going", deletion_timestamp=1))
    assert stand.attempt(pod("staying")).pod.name == "staying"
    assert [record.pod.name for record in stand.records] == ["staying"]


def test_pods_of_other_schedulers_are_left_alone() -> None:
    stand = bench(Plug(filter=None))
    stand.create(pod("theirs", scheduler_name="another"))
    assert stand.attempt(pod("ours")).pod.name == "ours"
    assert "theirs" not in stand.scheduler.queue


def test_a_pod_is_scheduled_by_the_profile_it_names() -> None:
    plain = Plug(filter=None)
    picky = Plug("Picky", filter=unschedulable("not here"))

    def profile(name: str, plugin: Plugin) -> Profile:
        return Profile(name, [Enabled(plugin), Enabled(Binder())])

    stand = Bench(
        nodes=NODES,
        profile=lambda _: profile("default-scheduler", plain),
        another=lambda _: profile("picky", picky),
    )
    assert stand.attempt(pod("a")).result == "Success"
    record = stand.attempt(pod("b", scheduler_name="picky"))
    assert record.message == "0/3 nodes are available: 3 not here."
    assert (plain.calls, picky.calls) == (["filter"], ["filter"] * 3)


def test_profiles_see_each_others_pods_as_they_are_assumed() -> None:
    small = [Node("n1", allocatable={"cpu": 1000, "pods": 9})]
    stand = Bench(
        nodes=small,
        another=lambda handle: Profile("other", [Enabled(NodeResourcesFit(handle)), Enabled(Binder())]),
    )
    stand.create(pod("a"))
    stand.step_until(lambda: stand.pods_on("n1") == ["a"])
    assert stand.attempt(pod("b", scheduler_name="other")).message == "0/1 nodes are available: 1 Insufficient cpu."
