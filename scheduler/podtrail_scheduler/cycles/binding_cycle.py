"""The binding cycle: from a reserved node to a bound Pod, while other Pods are already being scheduled."""

from collections.abc import Callable

from podtrail_instrumentation import PropagationCounters, Span, inject_span_context

from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.framework.extending import ExtenderError, Extenders
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.status import error
from podtrail_scheduler.objects.durations import MILLISECOND
from podtrail_scheduler.runtime.calling import PhaseFailure
from podtrail_scheduler.runtime.framework import Framework

from .attempt import AttemptFailure, RunningAttempt, failed_on_node

BINDING_THRESHOLD = 50 * MILLISECOND
"""Nanoseconds from which on a binding cycle is logged with its steps."""


class BindingCycle:
    """Waits for permission, binds, and undoes what was reserved when that fails."""

    def __init__(
        self,
        framework: Framework,
        handle: Handle,
        *,
        permitted: Callable[[RunningAttempt], None],
        counters: PropagationCounters | None,
        extenders: Extenders | None = None,
    ) -> None:
        """`permitted` is called when no refusal can come any more, only failures; `counters` None: no tracing."""
        self._framework = framework
        self._handle = handle
        self._permitted = permitted
        self._counters = counters
        self._extenders = extenders
        self._attributes = {"scheduler.phase": "bindingCycle", "scheduler.profile": framework.profile.name}

    async def run(self, attempt: RunningAttempt) -> AttemptFailure | None:
        """Waits for permission, prepares and binds; None when the Pod is bound, else why not."""
        span = attempt.root.start("bindingCycle", self._attributes)
        failure = await self._run(attempt, span)
        if failure is not None:
            await self._framework.run_unreserve(span, attempt.state, attempt.pod, attempt.node)
        if span.recording:
            result = failure.result if failure is not None else "Success"
            span.set_attributes({"scheduler.selected_node": attempt.node, "scheduler.result": result})
            if failure is not None and failure.result == "Error":
                span.fail(failure.message)
        span.end(BINDING_THRESHOLD)
        return failure

    async def _run(self, attempt: RunningAttempt, span: Span) -> AttemptFailure | None:
        framework, state, pod, node = self._framework, attempt.state, attempt.pod, attempt.node
        has_work = bool(framework.profile.pre_bind) and await framework.run_pre_bind_pre_flight(state, pod, node)
        if isinstance(has_work, PhaseFailure):
            return _failure(has_work)
        if has_work or attempt.waiting is not None:
            self._handle.clock.spawn(self._announce(attempt))
        if attempt.waiting is not None:
            self._handle.waiting[pod.uid] = attempt.waiting
            refused = await framework.wait_on_permit(span, attempt.waiting)
            del self._handle.waiting[pod.uid]
            if refused is not None:
                return failed_on_node(refused, node)
        self._permitted(attempt)
        refused = await framework.run_pre_bind(span, state, pod, node)
        if refused is None:
            refused = await self._bind(attempt, span)
        if refused is not None:
            return _failure(refused)
        await framework.run_post_bind(span, state, pod, node)
        return None

    async def _announce(self, attempt: RunningAttempt) -> None:
        """Tells others which node it will be, while that takes time."""
        try:
            await self._handle.client.patch_pod_status(attempt.pod, None, attempt.node)
        except ApiError as refusal:
            attempt.root.add_event("nomination failed", {"scheduler.reason": str(refusal)})

    async def _bind(self, attempt: RunningAttempt, span: Span) -> PhaseFailure | None:
        framework, state, pod, node = self._framework, attempt.state, attempt.pod, attempt.node
        if self._counters is not None:
            context = attempt.root.span_context
            state.binding_annotations.update(inject_span_context(pod.annotations, context, counters=self._counters))
        phase = framework.caller.start_phase(span, "bind")
        if phase.recording:
            phase.set_attributes({"scheduler.selected_node": node})
        refused: PhaseFailure | None = None
        try:
            bound = self._extenders is not None and await self._extenders.bind(pod, node)
        except ExtenderError as failed:
            bound, refused = True, PhaseFailure("", error(str(failed)))
        if not bound:
            refused = await framework.run_bind(phase, state, pod, node)
        framework.caller.end_phase(phase, refused)
        return refused


def _failure(refused: PhaseFailure) -> AttemptFailure:
    """A failure behind Permit: whatever it was, no plugin's hint brings the Pod back, only back-off."""
    return AttemptFailure(refused.status.result, refused.status.message)
