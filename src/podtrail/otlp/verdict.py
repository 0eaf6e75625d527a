"""What a sampler decided about one trace, passed on behind it with kept and dropped traces alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from podtrail.otlp.group import Group

Decision = Literal["sampled", "not_sampled", "dropped"]


@dataclass(slots=True)
class Verdict:
    """The decision about one trace with its reason.

    What is known of the trace itself is read from `groups` when somebody asks (`podtrail.otlp.attempt_of`), so that a
    verdict nobody reads costs nothing.
    """

    trace_id: bytes
    decision: Decision
    policy: str
    """The policy that decided; "" when none said yes."""
    reason: str
    """In words a person understands, for instance `no policy said yes` or `evicted before its decision: num_traces`."""
    decided_at: int
    """Unix nanoseconds of pipeline time."""
    arrived: int
    """Arrival of the trace's first span, Unix nanoseconds."""
    spans: int
    votes: Mapping[str, Decision] = field(default_factory=dict)
    """Each policy that was asked, and what it said."""
    groups: Sequence[Group] = ()
    """The spans it was decided on."""
