"""What a run comes to: Pods, attempts, traces kept and why, the ledger, links, what Pods wait for."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from podtrail.story.pending_question import WaitingPods, waiting_pods
from podtrail.story.pod_state import POD_STATES
from podtrail.story.stories import Stories

_MAX_WAITING = 5


class LedgerLine(NamedTuple):
    """One exporter's line of the ledger, with what is still inside; it balances, or spans went missing."""

    label: str
    """The pipeline, or the exporter where there are several."""
    received: int
    created: int
    delivered: int
    sampled_out: int
    rejected: int
    dropped: Mapping[str, int]
    """By reason."""
    in_memory: int
    in_queue: int

    @classmethod
    def of(cls, label: str, sums: "Sums") -> "LedgerLine":
        """Return the ledger's sums under a label."""
        return cls(label, *[getattr(sums, name) for name in cls._fields[1:]])

    @property
    def difference(self) -> int:
        """Spans that came in but are nowhere; negative: more went out than came in; 0 when it balances."""
        out = self.delivered + self.sampled_out + self.rejected + sum(self.dropped.values())
        return self.received + self.created - out - self.in_memory - self.in_queue


class Sums(Protocol):
    """What a pipeline's ledger tells of an exporter: spans at one moment, under the names of `LedgerLine`."""

    @property
    def received(self) -> int:
        """Spans that came in."""

    @property
    def created(self) -> int:
        """Spans that processors made."""

    @property
    def delivered(self) -> int:
        """Spans that the other side took."""

    @property
    def sampled_out(self) -> int:
        """Spans that were not kept."""

    @property
    def rejected(self) -> int:
        """Spans that the other side refused for good."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """Lost spans by reason."""

    @property
    def in_memory(self) -> int:
        """Spans that processors hold."""

    @property
    def in_queue(self) -> int:
        """Spans that wait to be sent."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run, as it is printed."""

    took: int
    """Nanoseconds."""
    pods: Mapping[str, int]
    """By state, the most frequent first."""
    forgotten_pods: int
    """Older Pods that are counted in the sums only."""
    attempts: Mapping[str, int]
    """By result."""
    decided: int
    """Traces that a sampler decided."""
    kept: Mapping[str, int]
    """Traces kept, by policy."""
    ledgers: Sequence[LedgerLine]
    links: Mapping[str, int]
    """By type."""
    unresolved_links: int
    """Links whose target was not kept or never seen."""
    links_to_dropped: int
    """Of these, links whose target was seen, and let go by a decision."""
    waiting: Sequence[WaitingPods]
    """The most frequent first."""
    more_waiting: int
    """Pods that wait for yet other things."""
    written: Sequence[str]
    """Files."""
    page: str
    """Where the page is served; "" where it is not."""

    @property
    def balanced(self) -> bool:
        """No span is missing."""
        return not any(ledger.difference for ledger in self.ledgers)


def summarize(
    stories: Stories,
    *,
    took: int,
    ledgers: Sequence[LedgerLine] = (),
    written: Sequence[str] = (),
    page: str = "",
) -> RunSummary:
    """Return the summary of a run that took `took` nanoseconds."""
    pods = stories.pods()
    tallies = stories.tallies
    states = Counter(pod.state for pod in pods)
    waiting = waiting_pods(pods)
    return RunSummary(
        took=took,
        pods=_by_count({state: states[state] for state in POD_STATES if states[state]}),
        forgotten_pods=tallies.forgotten_pods,
        attempts=_by_count(tallies.attempts),
        decided=tallies.decided,
        kept=_by_count(tallies.kept),
        ledgers=tuple(ledgers),
        links=_by_count(tallies.links),
        unresolved_links=tallies.unresolved,
        links_to_dropped=tallies.dropped_targets,
        waiting=waiting[:_MAX_WAITING],
        more_waiting=sum(one.pods for one in waiting[_MAX_WAITING:]),
        written=tuple(written),
        page=page,
    )


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
