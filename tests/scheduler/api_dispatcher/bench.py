"""A dispatcher in virtual time, with an API server that keeps Pods and can be told to fail."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from podtrail_scheduler.api_dispatcher.calls import Known
from podtrail_scheduler.api_dispatcher.dispatcher import APIDispatcher, DispatcherSettings
from podtrail_scheduler.cluster.simulated.timeline import Timeline
from podtrail_scheduler.framework.client import ApiError, PodCondition
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import MILLISECOND, SECOND

from tests.scheduler.plugins.unasked_client import UnaskedClient
from tests.scheduler.virtual_time import let_pass

START = 1_000 * SECOND
REQUEST = 10 * MILLISECOND

Watcher = Callable[[Pod | None, Pod], None]
"""Is told of a Pod as it was (None: it is new) and as it is."""


class Request(NamedTuple):
    """What the API server was asked for, and how many seconds after the start."""

    seconds: float
    verb: str
    pod: str
    said: str | None = None
    """The message of a condition, the type of one to remove, or the node to bind to."""
    nominated_node: str | None = None


def condition(message: str = "0/3") -> PodCondition:
    """PodScheduled=False with a message."""
    return PodCondition("PodScheduled", "False", "Unschedulable", message)


class ApiServer(UnaskedClient):
    """Answers after ten milliseconds; what it was asked for is in `requests`."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self.pods: dict[str, Pod] = {}
        self.requests: list[Request] = []
        self.failures: list[Exception] = []
        """What the next requests are answered with."""
        self._to_fail = 5
        self.most_at_once = 0
        self._at_once = 0
        self.watchers: list[Watcher] = []

    def seconds(self) -> float:
        return (self._timeline.now() - START) / SECOND

    def get_pod(self, uid: str) -> Pod | None:
        return self.pods.get(uid)

    def fail(self, number: int) -> None:
        """Gives the next requests no answer; never to more than five in all, so that nobody gives up."""
        number = min(number, self._to_fail)
        self._to_fail -= number
        self.failures += [ApiError("no answer")] * number

    def put(self, pod: Pod) -> Pod:
        old, self.pods[pod.uid] = self.pods.get(pod.uid), pod
        for watcher in self.watchers:
            watcher(old, pod)
        return pod

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        await self._answer("bind", pod, node_name)
        self.put(replace(self.pods[pod.uid], node_name=node_name))

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        await self._answer("patch", pod, condition and condition.message, nominated_node)
        current = self.pods[pod.uid]
        if condition is not None:
            current = replace(current, conditions={**current.conditions, condition.type: condition[1:]})
        if nominated_node is not None:
            current = replace(current, nominated_node_name=nominated_node)
        self.put(current)

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        await self._answer("remove", pod, condition)
        current = self.pods[pod.uid]
        self.put(replace(current, conditions={k: v for k, v in current.conditions.items() if k != condition}))

    async def delete_pod(self, pod: Pod) -> None:
        await self._answer("delete", pod)
        del self.pods[pod.uid]

    async def _answer(self, verb: str, pod: Pod, said: str | None = None, nominated_node: str | None = None) -> None:
        self.requests.append(Request(self.seconds(), verb, pod.name, said, nominated_node))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        await self._timeline.sleep(REQUEST)
        self._at_once -= 1
        if self.failures:
            raise self.failures.pop(0)
        if pod.uid not in self.pods:
            raise ApiError(f'pods "{pod.name}" not found', "NotFound", 404)


class DispatcherBench:
    """Dispatcher, API server and time; the watch tells the dispatcher at once."""

    def __init__(self, settings: DispatcherSettings | None = None, *, start: bool = True) -> None:
        self.timeline = Timeline(START, "test")
        self.api_server = ApiServer(self.timeline)
        self.executed: list[tuple[str, str, int]] = []
        self.dispatcher = APIDispatcher(self.api_server, self.timeline, settings, self)
        self.api_server.watchers.append(lambda old, new: self.dispatcher.sync(new))
        if start:
            self.dispatcher.start()

    def api_call_executed(self, call_type: str, result: str, duration: int) -> None:
        self.executed.append((call_type, result, duration))

    def pod(
        self, name: str = "a", *, conditions: Mapping[str, Known] | None = None, scheduling_gates: tuple[str, ...] = ()
    ) -> Pod:
        """A Pod, or another version of it, that the watch shows."""
        return self.api_server.put(Pod(name, uid=name, conditions=conditions or {}, scheduling_gates=scheduling_gates))

    def spawn(self, work: Coroutine[Any, Any, None]) -> list[ApiError | None]:
        """Begins work; the list gets its exception or None when it is over."""
        result: list[ApiError | None] = []

        async def run() -> None:
            try:
                await work
            except ApiError as error:
                result.append(error)
            else:
                result.append(None)

        self.timeline.spawn(run())
        return result

    def run(self, seconds: float = 60.0) -> None:
        """Lets time pass."""
        let_pass(self.timeline, int(seconds * SECOND))

    @property
    def requests(self) -> list[Request]:
        return self.api_server.requests


class MakeBench(Protocol):
    """Makes benches, which are closed behind the test."""

    def __call__(self, settings: DispatcherSettings | None = None, *, start: bool = True) -> DispatcherBench: ...
