"""Sampling of roots at a rate, of all else as their parents are."""

from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, Decision, ParentBased, SamplingResult, TraceIdRatioBased
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util.types import Attributes

_DROP = SamplingResult(Decision.DROP)


class RateSampler(ParentBased):
    """`ParentBased(TraceIdRatioBased(rate))`, for rate 0 `ParentBased(NeverSample)`.

    Says no to a root at once, without a call to those: most roots are not sampled, and saying so is nearly all that
    tracing then costs.
    """

    def __init__(self, rate: float) -> None:
        """`rate` is from 0 to 1."""
        ratio = TraceIdRatioBased(rate)
        super().__init__(ratio if rate > 0 else ALWAYS_OFF)
        self._bound = ratio.bound if rate > 0 else 0

    def samples_root(self, trace_id: int) -> bool:
        """Whether a root with this trace id is sampled."""
        return trace_id & TraceIdRatioBased.TRACE_ID_LIMIT < self._bound

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """The same answers as the samplers it stands for."""
        if parent_context is not None and not parent_context and not self.samples_root(trace_id):
            return _DROP
        return super().should_sample(parent_context, trace_id, name, kind, attributes, links, trace_state)
