"""The binding cycle: from a reserved node to a bound Pod, while other Pods are already being scheduled."""

from collections.abc import Generator
from contextlib import nullcontext

from podtrail_instrumentation import PropagationCounters, Span, inject_span_context

from .attempt import Attempt, Choice, Failure, failure_on_node
from .cache import Cache
from .durations import MILLISECOND
from .framework.handle import Handle
from .framework.runtime import Framework, Refused
from .framework.waiting import WaitingPod
from .objects import Pod
from .queueing.events import ASSIGNED_POD_DELETE, Happening
from .queueing.queue import SchedulingQueue

BINDING_THRESHOLD = 50 * MILLISECOND
_NOBODY_CALLED = nullcontext()

Pause = int | WaitingPod


class BindingCycle:
    """Waits for permission, binds, and undoes everything when that fails."""

    def __init__(self, framework: Framework, cache: Cache, handle: Handle, queue: SchedulingQueue) -> None:
        self._framework = framework
        self._cache = cache
        self._handle = handle
        self._queue = queue
        self._attributes = {"scheduler.phase": "bindingCycle", "scheduler.profile": framework.profile.name}

    def run(
        self, attempt: Attempt, choice: Choice, counters: PropagationCounters | None
    ) -> Generator[Pause, None, Failure | None]:
        """Yields while time passes; returns None when the Pod is bound. With `counters` the trace goes along."""
        span = attempt.root.start("bindingCycle", self._attributes)
        span.set_attributes({"scheduler.selected_node": choice.node})
        refused = None
        if choice.waiting is not None:
            refused = yield from self._wait(span, choice.waiting)
        if refused is None:
            refused = yield from self._run(span, attempt, choice.node, counters)
        failure = None
        if refused is not None:
            failure = failure_on_node(refused, choice.node)
            with attempt.root.active():
                self._framework.run_unreserve(span, attempt.state, attempt.pod, choice.node)
            self._forget(attempt.pod, choice.node)
            if failure.result == "Error":
                span.fail(failure.message)
        span.set_attributes({"scheduler.result": failure.result if failure else "Success"})
        span.end(BINDING_THRESHOLD)
        return failure

    def _wait(self, span: Span, waiting: WaitingPod) -> Generator[Pause, None, Refused | None]:
        phase = self._framework.start_phase(span, "waitOnPermit")
        self._handle.waiting[waiting.uid] = waiting
        yield waiting
        del self._handle.waiting[waiting.uid]
        refused = Refused(waiting.refused_by, waiting.status) if waiting.status is not None else None
        self._framework.end_phase(phase, refused)
        return refused

    def _run(
        self, span: Span, attempt: Attempt, node: str, counters: PropagationCounters | None
    ) -> Generator[Pause, None, Refused | None]:
        state, pod, clock = attempt.state, attempt.pod, self._framework.clock
        with attempt.root.active() if self._framework.profile.pre_bind else _NOBODY_CALLED:
            refused = self._framework.run_pre_bind(span, state, pod, node)
        yield clock.now()
        if refused is not None:
            return refused
        if counters is not None:
            state.binding_annotations.update(
                inject_span_context(pod.annotations, attempt.root.span_context, counters=counters)
            )
        with attempt.root.active():
            refused = self._framework.run_bind(span, state, pod, node)
        yield clock.now()
        if refused is None:
            with attempt.root.active() if self._framework.profile.post_bind else _NOBODY_CALLED:
                self._framework.run_post_bind(span, state, pod, node)
        return refused

    def _forget(self, pod: Pod, node: str) -> None:
        """Gives the room back and tells those who wait for some."""
        now = self._framework.clock.now()
        if self._cache.forget(pod.uid):
            self._queue.move(Happening(ASSIGNED_POD_DELETE, pod.on(node), None), now)
