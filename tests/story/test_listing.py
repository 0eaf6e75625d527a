from podtrail.story import Stories
from podtrail.story.listing import list_nodes, list_plugins, pods_on_nodes, tell_node, tell_plugin
from podtrail.story.plugin_times import PluginCall
from podtrail.testing.attempts import START, MadeAttempt, no_room

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
    assert rows["tight0"][1:] == (1, 1, 2, "NodeResourcesFit", "Insufficient cpu")
    assert rows["tight1"][1:] == (0, 0, 2, "NodeResourcesFit", "Insufficient cpu")


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
