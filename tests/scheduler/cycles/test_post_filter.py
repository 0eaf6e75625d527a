"""Several plugins that may make room: who is asked, and what becomes of an earlier nomination."""

import asyncio
from collections.abc import Mapping

import pytest
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.extension_points import PostFilterResult
from podtrail_scheduler.framework.status import Code, Status, error, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod

from tests.scheduler.bench import framework, span_of


class Helper:
    """Answers as told."""

    def __init__(self, name: str, answer: PostFilterResult) -> None:
        self.name = name
        self.answer = answer
        self.asked = 0

    def post_filter(self, state: CycleState, pod: Pod, refusals: Mapping[str, Status]) -> PostFilterResult:
        self.asked += 1
        return self.answer


LEAVE = PostFilterResult(unschedulable("a victim is leaving"), None)
GIVE_UP = PostFilterResult(unschedulable("nobody can leave"), "")
HOPELESS = PostFilterResult(unresolvable("it is of no use"), None)
ROOM = PostFilterResult(Status(Code.SUCCESS, ("room on n1",)), "n1")
BROKEN = PostFilterResult(error("out of order"), None)


def ask(*answers: PostFilterResult) -> tuple[PostFilterResult, list[int]]:
    helpers = [Helper(f"Helper{number}", answer) for number, answer in enumerate(answers)]
    points = framework(*helpers)
    result = asyncio.run(points.run_post_filter(span_of(points), CycleState(), Pod("a"), {}))
    return result, [helper.asked for helper in helpers]


@pytest.mark.parametrize(
    ("answers", "result", "asked"),
    [
        ([LEAVE], LEAVE, [1]),
        ([GIVE_UP], GIVE_UP, [1]),
        ([ROOM, GIVE_UP], ROOM, [1, 0]),
        ([HOPELESS, ROOM], HOPELESS, [1, 0]),
        ([BROKEN, ROOM], BROKEN, [1, 0]),
        ([LEAVE, GIVE_UP], PostFilterResult(unschedulable("a victim is leaving", "nobody can leave"), ""), [1, 1]),
        ([LEAVE, ROOM], ROOM, [1, 1]),
    ],
)
def test_plugins_are_asked_until_one_has_made_room(
    answers: list[PostFilterResult], result: PostFilterResult, asked: list[int]
) -> None:
    assert ask(*answers) == (result, asked)
