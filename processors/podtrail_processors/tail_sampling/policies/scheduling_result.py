"""`scheduling_result`: scheduling attempts that ended in one of these results (KEP-5927's `scheduler.result`)."""

from typing import Literal

from pydantic import Field

from podtrail.otlp import ROOT_NAME, Decision, read_key_value
from podtrail.otlp.native import has
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig
from podtrail_processors.tail_sampling.voting.words import shown, some

_KEY = "scheduler.result"
_KEY_BYTES = _KEY.encode()
_ROOT = ROOT_NAME.encode()


class SchedulingResult(Evaluator):
    """Says yes when a `SchedulePod` span has one of the results."""

    reads = Reads(detailed=frozenset({"name", "attributes"}))

    def __init__(self, results: frozenset[str]) -> None:
        self.reason = f"the attempt ended {' or '.join(sorted(results))}"
        self._results = results
        # With its length before it, as texts stand in a message: a plugin is called NodeUnschedulable.
        self._encoded = [bytes([len(result)]) + result.encode() for result in sorted(results)]

    def vote(self, trace: Evidence) -> Decision:
        """Look at the roots; phases and plugins have results of their own, which do not count here."""
        return "sampled" if self._found_in(trace) else "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell the attempt's result."""
        return f"{_KEY}={self._found_in(trace)}"

    def why_not(self, trace: Evidence) -> str:
        """Tell the attempt's result, if it has one."""
        roots = [span for span in trace.detailed if span.name == _ROOT]
        if not roots:
            return f"it has no span {ROOT_NAME}"
        pairs = [read_key_value(pair) for span in roots for pair in span.attributes if _KEY_BYTES in pair]
        found = [shown(value) for key, value in pairs if key == _KEY]
        wanted = " or ".join(sorted(self._results))
        return f"{_KEY}={some(found)}, not {wanted}" if found else f"its {ROOT_NAME} has no {_KEY}"

    def _found_in(self, trace: Evidence) -> str:
        raw = trace.raw
        for result in self._encoded:
            if has(raw, result):
                break
        else:
            return ""
        if not (has(raw, _KEY_BYTES) and has(raw, _ROOT)):
            return ""
        for span in trace.detailed:
            if span.name == _ROOT:
                for pair in span.attributes:
                    if _KEY_BYTES in pair:
                        key, value = read_key_value(pair)
                        if key == _KEY and isinstance(value, str) and value in self._results:
                            return value
        return ""


class Config(PolicyConfig):
    """Settings of `scheduling_result`."""

    results: tuple[Literal["Success", "Unschedulable", "Error"], ...] = Field(
        (), description="The results to keep: Success, Unschedulable, Error; at least one."
    )

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: no result is given.
        """
        if not self.results:
            raise ValueError("results must name at least one of Success, Unschedulable, Error")
        return SchedulingResult(frozenset(self.results))
