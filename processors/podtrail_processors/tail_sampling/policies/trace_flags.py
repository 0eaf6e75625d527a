"""`trace_flags`: traces of which any span carries the sampled flag (W3C trace context, flag bit 0)."""

from pydantic import ConfigDict

from podtrail.otlp import Decision
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig

_SAMPLED = 1


class TraceFlags(Evaluator):
    """Says yes when a span's flags have the sampled bit."""

    reads = Reads(columns=frozenset({"flags"}))
    reason = "a span carries the sampled flag"

    def vote(self, trace: Evidence) -> Decision:
        """Look at the flags of every span."""
        return "sampled" if any(flags & _SAMPLED for flags in set(trace.columns.flags)) else "not_sampled"

    def why_not(self, trace: Evidence) -> str:
        """Tell of how many spans."""
        return f"none of its {trace.span_count} spans carries the sampled flag"


class Config(PolicyConfig):
    """Has no settings; what stands there is passed over, as in the Collector."""

    model_config = ConfigDict(extra="ignore")

    def create(self) -> Evaluator:
        """Return the policy."""
        return TraceFlags()
