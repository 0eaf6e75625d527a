from typing import Any

from podtrail.story import Stories
from podtrail.story.listing import list_nodes, list_plugins, pods_on_nodes, tell_node, tell_plugin
from podtrail.story.node_question import ask_node
from podtrail.story.plugin_times import PluginCall
from podtrail.testing.attempts import START, MadeAttempt, No, no_room

S = 10**9


def told() -> Stories:
    stories = Stories()
    for number in (1, 2):
        stories.observe(no_room(number=number, start=START + number * S).batch())
    stories.observe(MadeAttempt(uid="bound", name="api-0", node="tight0").batch())
    refused = MadeAttempt(uid="refused", name="frozen-0", node="tight1", result="Error", bind_error="denied: not today")
    stories.observe(refused.batch())
    stories.note_gated("gated", "default", "held-0", ["example.com/scan"])
    return stories


def test_nodes_are_listed_with_who_refused_them_and_what_was_bound() -> None:
    rows = {row.node: row for row in list_nodes(told(), pods_on_nodes(told().pods())).rows}
    assert len(rows) == 13
    part = list_nodes(told(), pods_on_nodes(told().pods()), "IGHT", 1, 5)
    assert ([row.node for row in part.rows], part.matching, part.total) == (["tight1"], 2, 13)
    assert part.rows[0] == rows["tight1"]
    assert rows["tight0"][1:] == (1, 1, 2, "NodeResourcesFit", "Insufficient cpu", False)
    assert rows["tight1"][1:] == (0, 0, 2, "NodeResourcesFit", "Insufficient cpu", False)


def rejected(uid: str, *counts: int, nodes: int = 30, at: int = 0, **more: Any) -> MadeAttempt:
    """Return an attempt whose plugins refused so many nodes each, of which ten are named."""
    names = [f"node-{number:02}" for number in range(nodes)]
    refusals = []
    for plugin, count in enumerate(counts):
        refusals.append(No(plugin=f"Plugin{plugin}", reason=f"reason {plugin}", nodes=names[:count]))
        names = names[count:]
    start = START + (at + 10) * S
    return MadeAttempt(uid=uid, start=start, nodes=nodes, refusals=refusals, **({"result": "Unschedulable"} | more))


def refusals(*attempts: MadeAttempt, sort: str = "") -> dict[str, tuple[str, str]]:
    stories = Stories()
    stories.observe(MadeAttempt(uid="bound", node="node-29", start=START).batch())
    for attempt in attempts:
        stories.observe(attempt.batch())
    rows = list_nodes(stories, pods_on_nodes(stories.pods()), sort=sort).rows
    return {row.node: (row.refusals, row.plugin) for row in rows}


def test_a_refusal_of_all_nodes_counts_for_those_that_are_not_named() -> None:
    found = refusals(rejected("a", 30), rejected("b", 30, at=1))
    assert found["node-29"] == ("2", "Plugin0")
    assert found["node-00"] == ("2", "Plugin0")


def test_where_several_plugins_refused_all_nodes_the_node_counts_and_its_plugin_is_unknown() -> None:
    found = refusals(rejected("a", 29, 1), rejected("b", 15, 15, at=1), rejected("c", 30, at=2))
    assert found["node-29"] == ("3", "Plugin1")
    assert refusals(rejected("b", 15, 15))["node-29"] == ("1", "")
    mostly_unknown = refusals(rejected("a", 29, 1), rejected("b", 15, 15, at=1), rejected("c", 15, 15, at=2))
    assert mostly_unknown["node-29"] == ("3", "")


def test_elsewhere_a_count_is_a_least_one_or_unknown() -> None:
    some: dict[str, Any] = {"result": "Error", "message": "running PreBind plugin: no"}
    found = refusals(rejected("a", 20, **some), rejected("b", 30, at=1))
    assert found["node-29"] == ("at least 1", "Plugin0")
    assert found["node-00"] == ("2", "Plugin0")
    assert refusals(rejected("a", 20, **some))["node-29"] == ("unknown", "")


def test_nodes_are_listed_by_their_refusals_whatever_their_names_are() -> None:
    made = [MadeAttempt(uid="z", node="zone-0", start=START)]
    made += [rejected(f"u{number}", 30, at=number) for number in range(3)]
    made.append(MadeAttempt(uid="y", node="aaa-new", start=START + 100 * S))
    order = list(refusals(*made))
    assert order.index("zone-0") < order.index("aaa-new") == len(order) - 1
    assert next(iter(refusals(*made, sort="node"))) == "aaa-new"
    assert list(refusals(*made, sort="bound"))[:3] == ["aaa-new", "node-29", "zone-0"]


def test_an_answer_about_a_node_counts_what_the_list_counts() -> None:
    stories = Stories()
    bound = MadeAttempt(uid="bound", node="node-29", start=START)
    for attempt in (bound, rejected("a", 30), rejected("b", 15, 15, at=1), rejected("c", 3, 27, at=2)):
        stories.observe(attempt.batch())
    told = ask_node(stories.pods(), "node-29")
    assert sorted((one.plugin, one.attempts) for one in told.refusals) == [("", 2), ("Plugin0", 1)]
    assert told.unnamed == 0
    row = tell_node(stories, "node-29")
    assert row is not None
    assert row.row.refused == 3


def test_a_node_has_its_pods_and_those_that_wait_because_of_it() -> None:
    node = tell_node(told(), "tight0")
    assert node is not None
    assert [pod.name for pod in node.pods] == ["api-0"]
    assert [pod.name for pod in node.waiting] == ["web-0"]
    assert node.states == {"scheduled": 1}
    assert tell_node(told(), "nowhere") is None
    assert tell_node(told(), "") is None


def test_plugins_that_keep_pods_waiting_are_listed_first() -> None:
    rows = list_plugins(told())
    assert [row.waiting for row in rows] == [1, 1, 1, 1, 1]
    by_name = {row.plugin: row for row in rows}
    affinity = by_name["NodeAffinity"]
    assert (affinity.attempts, affinity.nodes, affinity.reason) == (2, 62, "no match")
    assert [(point.point, point.calls) for point in affinity.points] == [("filter", 2)]
    assert (by_name["Bind"].reason, by_name["Bind"].points) == ("denied: not today", ())
    assert (by_name["SchedulingGates"].attempts, by_name["SchedulingGates"].waiting) == (0, 1)


def test_an_attempt_is_listed_once_by_the_call_that_took_longest() -> None:
    stories = Stories()
    for trace, took in ((b"a" * 16, 5), (b"b" * 16, 7)):
        calls = [PluginCall(point, "Cost", 1, length) for point, length in (("preScore", 2), ("score", took))]
        stories.plugin_times.note(trace, calls)
    plugin = tell_plugin(stories, "Cost")
    assert plugin is not None
    assert [(one.call.took, one.call.point) for one in plugin.slowest] == [(7, "score"), (5, "score")]


def test_a_plugin_has_its_slowest_attempts_and_the_pods_that_wait_for_it() -> None:
    plugin = tell_plugin(told(), "NodeAffinity")
    assert plugin is not None
    assert [(one.pod and one.pod.name, one.attempt and one.attempt.number) for one in plugin.slowest] == [
        ("web-0", 2),
        ("web-0", 1),
    ]
    assert [pod.name for pod in plugin.pods] == ["web-0"]
    assert tell_plugin(told(), "Nobody") is None
