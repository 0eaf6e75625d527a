"""What a sampler decided about one trace, passed on behind it with kept and dropped traces alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from podtrail.otlp.group import Group

Decision = Literal["sampled", "not_sampled", "dropped"]


class PolicyVote(NamedTuple):
    """What one policy said about a trace, and why."""

    policy: str
    type: str
    decision: Decision | None
    """None when it was not asked, or failed: `why` tells which."""
    why: str
    """In words, with span and value where one decided."""
    shadow: bool = False
    """Whether the vote is only counted."""


class Shadow(NamedTuple):
    """What policies in `shadow` said, which are only tried."""

    votes: Mapping[str, Decision]
    """By policy, of those in the list of the others."""
    decision: Decision | None = None
    """What the alternative list of policies would have decided; None when there is none."""
    policy: str = ""
    """Which of them would have decided."""
    reason: str = ""
    set_votes: Mapping[str, Decision] = MappingProxyType({})
    """By policy of the alternative list."""


class Explainer(Protocol):
    """Says why a sampler decided as it did; one for all its verdicts, unless policies are tried in `shadow`."""

    @property
    def shadow(self) -> Shadow | None:
        """What shadows said about the trace."""

    def explain(self, verdict: "Verdict") -> Sequence[PolicyVote]:
        """Return the vote of each policy, in the order in which they are asked."""


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
    explainer: Explainer | None = field(default=None, repr=False, compare=False)
    dry_run: bool = False
    """Whether the spans pass all the same, whatever was decided."""
    late: bool = False
    """Whether it is about late spans alone, of a trace that was decided, and told of, before."""

    @property
    def shadow(self) -> Shadow | None:
        """What policies said that are only tried; None without any."""
        return self.explainer.shadow if self.explainer else None

    def explained(self) -> Sequence[PolicyVote]:
        """Return what each policy said and why, found out now, from `groups`; empty when none was asked."""
        if self.explainer is not None:
            return self.explainer.explain(self)
        return [PolicyVote(policy, "", vote, "") for policy, vote in self.votes.items()]
