"""`status_code`: traces with a span that ended in one of these statuses."""

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from podtrail.config.mistakes import below, each
from podtrail.otlp import Decision, SpanView, split, status_code
from podtrail_processors.evidence.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.policies.lenient import Texts
from podtrail_processors.tail_sampling.voting.evaluator import Evaluator, PolicyConfig
from podtrail_processors.tail_sampling.voting.words import cut, name_of

_CODES = {"UNSET": 0, "OK": 1, "ERROR": 2}
_NAMES = {code: name for name, code in _CODES.items()}


class StatusCode(Evaluator):
    """Says yes when any span has one of the codes."""

    reads = Reads(columns=frozenset({"status"}))

    def __init__(self, names: Sequence[str]) -> None:
        self.reason = f"a span has status {' or '.join(names)}"
        self._names = " or ".join(names)
        self._codes = tuple({_CODES[name] for name in names})

    def vote(self, trace: Evidence) -> Decision:
        """Look at the codes of all spans."""
        codes = trace.statuses
        for code in self._codes:
            if code in codes:
                return "sampled"
        return "not_sampled"

    def because(self, trace: Evidence) -> str:
        """Tell which span, and what its status says, where that is read."""
        if trace.tells:
            for at, span in enumerate(trace.detailed):
                code = status_code(span.status)
                if code in self._codes:
                    message = cut(SpanView(split(trace.raw)[at]).status.message)
                    return f"span {name_of(span)} has status {_NAMES[code]}" + (f": {message}" if message else "")
        return self.reason

    def why_not(self, trace: Evidence) -> str:
        """Tell what statuses there are instead."""
        counted = Counter(_NAMES.get(status_code(span.status), "unknown") for span in trace.detailed)
        there = ", ".join(f"{count} {name}" for name, count in counted.most_common())
        return f"no span has status {self._names} ({trace.span_count} spans: {there})"


def _known(name: str) -> None:
    if name not in _CODES:
        raise ValueError(f"unknown status code {name!r}; there are OK, ERROR and UNSET")


class Config(PolicyConfig):
    """Settings of `status_code`."""

    status_codes: Texts = Field((), description="The statuses to keep: OK, ERROR, UNSET; at least one.")

    def create(self) -> Evaluator:
        """Return the policy.

        Raises:
            ValueError: no status is given, or an unknown one.
        """
        if not self.status_codes:
            raise ValueError("status_codes must name at least one of OK, ERROR, UNSET")
        with below("status_codes"):
            each(_known, self.status_codes)
        return StatusCode(self.status_codes)
