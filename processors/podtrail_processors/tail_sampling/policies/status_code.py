"""`status_code`: traces with a span that ended in one of these statuses."""

from collections.abc import Sequence

from pydantic import Field

from podtrail.otlp import Decision
from podtrail_processors.tail_sampling.evidence import Evidence, Reads
from podtrail_processors.tail_sampling.lenient import Texts
from podtrail_processors.tail_sampling.policy import Block, Policy

_UNSET = 0
_CODES = {"UNSET": _UNSET, "OK": 1, "ERROR": 2}


class StatusCode(Policy):
    """Says yes when any span has one of the codes."""

    reads = Reads(columns=frozenset({"status"}))

    def __init__(self, names: Sequence[str]) -> None:
        self.reason = f"a span has status {' or '.join(names)}"
        self._codes = tuple({_CODES[name] for name in names})
        self._unset = _UNSET in self._codes

    def vote(self, trace: Evidence) -> Decision:
        """Look at the codes of all spans; those that have none are unset."""
        codes = trace.columns.status.code
        if self._unset and len(codes) < trace.span_count:
            return "sampled"
        for code in self._codes:
            if code in codes:
                return "sampled"
        return "not_sampled"


class Config(Block):
    """Settings of `status_code`."""

    status_codes: Texts = Field((), description="The statuses to keep: OK, ERROR, UNSET; at least one.")

    def create(self) -> Policy:
        """Return the policy. ValueError for no status or an unknown one."""
        if not self.status_codes:
            raise ValueError("status_codes must name at least one of OK, ERROR, UNSET")
        for name in self.status_codes:
            if name not in _CODES:
                raise ValueError(f"unknown status code {name!r}; there are OK, ERROR and UNSET")
        return StatusCode(self.status_codes)
