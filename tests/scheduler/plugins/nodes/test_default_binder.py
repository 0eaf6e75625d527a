import asyncio
from collections.abc import Callable
from typing import Any

from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.status import Code, Status
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.plugins.default_binder import DefaultBinder


def test_the_binding_carries_the_annotations(handle_of: Callable[..., Handle], api: Any) -> None:
    state = CycleState()
    state.binding_annotations["k"] = "v"
    assert asyncio.run(DefaultBinder(handle_of(client=api)).bind(state, Pod("a"), "n1")) is None
    assert api.bound == [("a", "n1", {"k": "v"})]


def test_what_the_api_server_answers_is_the_error(handle_of: Callable[..., Handle], api: Any) -> None:
    api.refusal = ApiError('pods "a" is forbidden', "Forbidden", 403)
    answer = asyncio.run(DefaultBinder(handle_of(client=api)).bind(CycleState(), Pod("a"), "n1"))
    assert answer == Status(Code.ERROR, ('pods "a" is forbidden',))
