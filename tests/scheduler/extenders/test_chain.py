"""Several extenders at one point: their order, and what the failure of one means."""

from collections.abc import Callable
from typing import Any

import pytest
from podtrail_scheduler.extenders import ExtenderChain, ExtenderError, Victims
from podtrail_scheduler.framework.diagnosis import Diagnosis
from podtrail_scheduler.framework.status import Code
from podtrail_scheduler.objects import Pod

POD = Pod("a", uid="u-a")
NODES = ("n1", "n2", "n3")

Ask = Callable[..., Any]


def test_each_filters_what_the_one_before_left(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        extenders = asking.made(
            asking.extender(filter_verb="first", node_cache_capable=True),
            asking.extender(filter_verb="second", node_cache_capable=True),
        )
        diagnosis = Diagnosis(len(NODES))
        filtered = await ExtenderChain(extenders).filter(POD, NODES, diagnosis)
        return filtered, diagnosis, [(verb, sent["NodeNames"]) for verb, sent in asking.server.asked]

    answers = {
        "first": {"NodeNames": ["n1", "n2"], "FailedNodes": {"n3": "full"}},
        "second": {"NodeNames": ["n2"], "FailedNodes": {"n1": "a"}, "FailedAndUnresolvableNodes": {"n1": "b"}},
    }
    filtered, diagnosis, asked = ask(answers, scenario)

    assert filtered == ("n2",)
    assert asked == [("first", ["n1", "n2", "n3"]), ("second", ["n1", "n2"])]
    assert {name: (status.code, status.message) for name, status in diagnosis.statuses(("n1", "n3")).items()} == {
        "n3": (Code.UNSCHEDULABLE, "full"),
        "n1": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "b"),
    }
    assert diagnosis.refused_by == {"Extender"}
    assert diagnosis.message() == "0/3 nodes are available: 1 b, 1 full."


def test_nobody_is_asked_when_no_node_is_left(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        extenders = asking.made(asking.extender(filter_verb="first"), asking.extender(filter_verb="second"))
        diagnosis = Diagnosis(len(NODES))
        filtered = await ExtenderChain(extenders).filter(POD, NODES, diagnosis)
        return filtered, [verb for verb, _ in asking.server.asked]

    assert ask({"first": {}, "second": {}}, scenario) == ((), ["first"])


def test_the_failure_of_an_ignorable_one_is_passed_over_and_of_another_is_not(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        broken = asking.extender(filter_verb="broken", ignorable=True)
        working = asking.extender(filter_verb="working", node_cache_capable=True)
        extenders = asking.made(broken, working)
        diagnosis = Diagnosis(len(NODES))
        filtered = await ExtenderChain(extenders).filter(POD, NODES, diagnosis)
        with pytest.raises(ExtenderError, match="code 500"):
            await ExtenderChain(asking.made(asking.extender(filter_verb="broken"))).filter(POD, NODES, diagnosis)
        return filtered, [verb for verb, _ in asking.server.asked]

    left, asked = ask({"broken": 500, "working": {"NodeNames": ["n1"]}}, scenario)

    assert left == ("n1",)
    assert asked == ["working", "broken", "broken"]  # ignorable ones come last


def test_adds_up_scores_and_does_without_those_that_fail(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        extenders = asking.made(
            asking.extender(prioritize_verb="one", weight=1),
            asking.extender(prioritize_verb="two", weight=2),
            asking.extender(prioritize_verb="broken"),
            asking.extender(prioritize_verb=""),
        )
        return await ExtenderChain(extenders).prioritize(POD, NODES)

    answers = {
        "one": [{"Host": "n1", "Score": 4}, {"Host": "n2", "Score": 1}],
        "two": [{"Host": "n1", "Score": 3}],
        "broken": b"<html>",
    }
    assert ask(answers, scenario) == {"n1": 100, "n2": 10}


def test_the_first_that_binds_does_it_in_place_of_plugins(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        extenders = asking.made(asking.extender(bind_verb=""), asking.extender(bind_verb="good"))
        return await ExtenderChain(extenders).bind(POD, "n1"), [verb for verb, _ in asking.server.asked]

    assert ask({"good": {}}, scenario) == (True, ["good"])


def test_plugins_bind_when_an_ignorable_binder_fails(ask: Ask) -> None:
    async def scenario(asking: Any) -> Any:
        bound = await ExtenderChain(asking.made(asking.extender(ignorable=True))).bind(POD, "n1")
        with pytest.raises(ExtenderError, match=r"^no room$"):
            await ExtenderChain(asking.made()).bind(POD, "n1")
        return bound

    assert ask({"bind": {"Error": "no room"}}, scenario) is False


def test_preemption_is_left_with_what_all_agree_on(ask: Ask) -> None:
    victim = Pod("v", uid="u-v")

    async def scenario(asking: Any) -> Any:
        extenders = asking.made(
            asking.extender(preempt_verb="first"),
            asking.extender(preempt_verb="broken", ignorable=True),
            asking.extender(preempt_verb="last", ignorable=True),
        )
        pods = {name: [victim] for name in NODES}
        return await ExtenderChain(extenders).preempt(POD, dict.fromkeys(pods, Victims((victim,))), pods.get)

    both = {"Pods": [{"UID": "u-v"}], "NumPDBViolations": 0}
    answers = {
        "first": {"NodeNameToMetaVictims": {"n1": both, "n2": both}},
        "broken": 500,
        "last": {"NodeNameToMetaVictims": {"n1": {"Pods": []}, "n2": both}},
    }
    assert ask(answers, scenario) == {"n2": Victims((victim,))}


def test_a_candidate_without_victims_is_an_error_of_one_that_is_not_ignorable(ask: Ask) -> None:
    victim = Pod("v", uid="u-v")

    async def scenario(asking: Any) -> Any:
        with pytest.raises(ExtenderError, match=r'^expected at least one victim pod on node "n1"$'):
            await ExtenderChain(asking.made()).preempt(POD, {"n1": Victims((victim,))}, {"n1": [victim]}.get)

    ask({"preempt": {"NodeNameToMetaVictims": {"n1": {}}}}, scenario)
