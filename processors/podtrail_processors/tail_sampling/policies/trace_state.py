"""`trace_state`: traces of which any span's W3C trace state gives a key one of these values."""

from collections.abc import Mapping, Sequence

from pydantic import Field

from podtrail.otlp import Decision
from podtrail.otlp.remembering import remembering
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.policies.lenient import Texts
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig
from podtrail_processors.tail_sampling.voting.words import decoded, shown, some
from podtrail_processors.w3c import read_trace_state

_LONGEST_PAIR = 256
_read = remembering(1024, 512)(read_trace_state)


class TraceState(Evaluator):
    """Says yes when a span's trace state has the key with one of the values, exactly.

    As in the Collector, a trace state that breaks the W3C's rules anywhere matches nothing.
    """

    reads = Reads(columns=frozenset({"trace_state"}))

    def __init__(self, key: str, values: Sequence[str]) -> None:
        self.reason = f"{key} in the trace state is one of {', '.join(values)}"
        self._wanted = f"not one of {', '.join(values)}"
        self._key = key
        self._encoded = key.encode()
        # No trace state can hold a longer pair; the Collector leaves out one byte more, the equals sign.
        self._values = frozenset(v for v in values if v and len(self._encoded) + len(v.encode()) < _LONGEST_PAIR)

    def vote(self, trace: Evidence) -> Decision:
        """Look at every trace state that the spans carry."""
        return "sampled" if self._found_in(trace) else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell the value."""
        return f"{self._key}={self._found_in(trace)} in the trace state"

    def why_not(self, trace: Evidence) -> str:
        """Tell what the trace states say instead."""
        states = dict.fromkeys(trace.columns.trace_state)
        if not states:
            return "no span has a trace state"
        values = dict.fromkeys(pairs[self._key] for state in states if self._key in (pairs := _read(state) or {}))
        if values:
            return f"{self._key} is {some([shown(value) for value in values])} in the trace state, {self._wanted}"
        if any(self._encoded in state for state in states):
            return f"{self._key} is in no trace state that follows the rules"
        return f"{self._key} is in no trace state (there is {some([decoded(state) for state in states])})"

    def _found_in(self, trace: Evidence) -> str:
        for state in dict.fromkeys(trace.columns.trace_state):
            if self._encoded in state:
                pairs: Mapping[str, str] = _read(state) or {}
                if pairs.get(self._key) in self._values:
                    return pairs[self._key]
        return ""


class Config(PolicyConfig):
    """Settings of `trace_state`."""

    key: str = Field("", description="The key in the trace state.")
    values: Texts = Field((), description="The values to keep, exact.")

    def create(self) -> Evaluator:
        """Return the policy."""
        return TraceState(self.key, self.values)
