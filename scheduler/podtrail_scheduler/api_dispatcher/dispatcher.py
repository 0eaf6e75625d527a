"""Makes the calls: a limited number at a time, Pod status patches at a rate of their own, failed ones again."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from podtrail_instrumentation.klog import info, structured
from podtrail_kubernetes.token_bucket import TokenBucket

from podtrail_scheduler.framework.client import ApiError, Client, PodCondition
from podtrail_scheduler.framework.clock import SchedulerClock
from podtrail_scheduler.objects import Pod
from podtrail_scheduler.objects.durations import SECOND

from .call_queue import CallOutcome, CallQueue, QueuedCall
from .calls import APICall, CallType, PodBinding, PodStatusPatch

FIRST_RETRY = 1 * SECOND
LAST_RETRY = 16 * SECOND
MAX_TRIES = 6

_logger = logging.getLogger("podtrail_scheduler.api_dispatcher")


@dataclass(frozen=True, slots=True)
class DispatcherSettings:
    """How much at once. Status patches have their own limit so that they never hold up bindings (#135900)."""

    parallelism: int = 16
    """Calls in flight at most."""
    status_qps: float = 50.0
    """Pod status patches a second; 0 limits nothing."""
    status_burst: int = 100


class CallObserver(Protocol):
    """Is told of each call that was made."""

    def api_call_executed(self, call_type: str, result: str, duration: int) -> None:
        """`result` is success or error, `duration` in nanoseconds."""
        ...


class APIDispatcher:
    """Nobody waits for its calls but who asks to. It makes none until `start`: who does not lead writes nothing."""

    def __init__(
        self,
        client: Client,
        clock: SchedulerClock,
        settings: DispatcherSettings | None = None,
        observer: CallObserver | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings or DispatcherSettings()
        self._limit = TokenBucket(self._settings.status_qps, self._settings.status_burst)
        self._observer = observer
        self._calls = CallQueue()
        self._wakes_at: int | None = None
        self._started = False

    def start(self) -> None:
        """Makes the calls that wait, and all others as they come."""
        self._started = True
        self._dispatch()

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Binds through the queue and waits for the answer.

        Raises:
            ApiError: the API server refuses or can't be reached, or another call took its place.
        """
        over = self._clock.signal()
        ended: list[tuple[CallOutcome, Exception | None]] = []

        def on_finish(outcome: CallOutcome, error: Exception | None) -> None:
            ended.append((outcome, error))
            over.set()

        self._calls.add(QueuedCall(PodBinding(pod, node_name, annotations), on_finish))
        self._dispatch()
        await over.wait()
        outcome, error = ended[0]
        if error is not None:
            raise error
        if outcome is not CallOutcome.EXECUTED:
            raise ApiError(f"the binding was not sent: {outcome.value}")

    def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        """Writes a condition and the nominated node (None: leaves them) in the background."""
        conditions = {} if condition is None else {condition.type: condition}
        self._calls.add(QueuedCall(PodStatusPatch(pod, conditions, nominated_node)))
        self._dispatch()

    def patch_later(self, patch: PodStatusPatch, delay: int) -> None:
        """Makes a patch after `delay` nanoseconds, or when the delayed one that it replaces would have been made."""
        self._calls.add_delayed(QueuedCall(patch), self._clock.now() + delay)
        self._dispatch()

    def sync(self, pod: Pod) -> None:
        """The watch shows `pod`: patches that it makes needless are not made."""
        self._calls.sync(pod)

    def forget(self, uid: str) -> None:
        """The Pod is gone: nothing more is written about it."""
        self._calls.forget(uid)

    def pending(self) -> dict[str, int]:
        """How many calls wait, by type."""
        counted = self._calls.pending()
        return {each.value: counted[each] for each in CallType}

    def _dispatch(self) -> None:
        """Begins what may be begun, and wakes when there is more."""
        if not self._started:
            return
        now = self._clock.now()
        self._calls.expire(now)
        while self._calls.in_flight < self._settings.parallelism:
            queued = self._calls.pop(lambda kind: self._may(kind, now))
            if queued is None:
                break
            self._clock.spawn(self._execute(queued))
        self._wake_later(now)

    def _may(self, kind: CallType, now: int) -> bool:
        return kind is CallType.POD_BINDING or self._limit.take(now)

    def _wake_later(self, now: int) -> None:
        times = [self._calls.deadline()]
        if self._calls.waits and self._calls.in_flight < self._settings.parallelism:
            times.append(self._limit.next_at(now))
        due = min((time for time in times if time is not None), default=None)
        if due is not None and (self._wakes_at is None or due < self._wakes_at):
            self._wakes_at = due
            self._clock.spawn(self._wake(due))

    async def _wake(self, due: int) -> None:
        await self._clock.sleep(max(due - self._clock.now(), 0))
        if self._wakes_at == due:
            self._wakes_at = None
            self._dispatch()

    async def _execute(self, queued: QueuedCall) -> None:
        began = self._clock.now()
        error: ApiError | None = None
        _tell(queued.call)
        try:
            await queued.call.execute(self._client)
        except ApiError as refused:
            error = refused
        except Exception as raised:  # a call that is never over would hold up its Pod for ever
            _logger.exception("API call failed: %s of %s", queued.call.type.value, queued.call.pod.key)
            error = ApiError(f"{type(raised).__name__}: {raised}", "Invalid", 400)
        now = self._clock.now()
        if self._observer is not None:
            self._observer.api_call_executed(queued.call.type.value, "error" if error else "success", now - began)
        if error is not None and isinstance(queued.call, PodStatusPatch):
            self._patch_failed(queued, queued.call, error, now)
        else:
            self._calls.finish(queued, error)
        self._dispatch()

    def _patch_failed(self, queued: QueuedCall, patch: PodStatusPatch, error: ApiError, now: int) -> None:
        """Has a patch tried again, unless that is of no use; then whoever asked for it may ask again."""
        _logger.error("%s", structured("Failed to patch pod status", err=str(error), pod=patch.pod.key))
        queued.tries += 1
        again = _may_help(error) and queued.tries < MAX_TRIES
        if self._calls.finish(queued, error, again=again):
            self._calls.add_delayed(queued, now + min(FIRST_RETRY << (queued.tries - 1), LAST_RETRY))
        elif not again and error.reason != "NotFound":
            patch.on_give_up()


def _tell(call: APICall) -> None:
    """Logs what is about to be sent."""
    if isinstance(call, PodBinding):
        info(_logger, 3, "Attempting to bind pod to node", pod=call.pod.key, node=call.node_name)
        return
    for name, condition in call.conditions.items():
        values = {"pod": call.pod.key, "conditionType": name}
        if condition is not None:
            values |= {"conditionStatus": condition.status, "conditionReason": condition.reason}
        info(_logger, 3, "Updating pod condition", **values)


def _may_help(error: ApiError) -> bool:
    """Whether asking again may: no answer, throttled, a conflict, or a failure inside the API server."""
    return not error.code or error.code in (409, 429) or error.code >= 500
