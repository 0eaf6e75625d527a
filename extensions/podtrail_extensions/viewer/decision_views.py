"""What the pages about policies and decisions show, as view models: the JSON API gives the same ones."""

import asyncio
from dataclasses import dataclass
from typing import NamedTuple

from podtrail.otlp import PolicyVote
from podtrail.story import (
    AttemptStory,
    DecisionStory,
    Explanation,
    Library,
    LinkStory,
    SamplerView,
    selector,
    several,
)
from podtrail.story.decisions import select
from podtrail.story.explain_trace import explain_trace
from podtrail_extensions.viewer.read_ahead import decided_links
from podtrail_extensions.viewer.sampler_metrics import SamplerMetrics
from podtrail_extensions.viewer.views import PAGE_ROWS, PodRow

MAX_ROWS = 1_000
_MANY = 2_000
"""Decisions from which on a thread looks for those asked for."""
_ENOUGH = 100
"""Traces from which on a policy that never says yes is worth a warning."""


class DecisionFilter(NamedTuple):
    """Which decisions are asked for, as in the query of the page's address."""

    policy: str = ""
    """One that said yes."""
    decision: str = ""
    """`sampled`, or `not_sampled` for all that is not kept; "" for any."""
    q: str = ""
    """Part of namespace/name, of a uid, a cluster (of several) or a root's name, or how a trace id begins."""
    limit: int = PAGE_ROWS
    before: int | None = None
    """The place of a decision: only older ones are asked for."""


@dataclass(frozen=True, slots=True)
class DecisionsView:
    """The list of decisions, the latest first."""

    filter: DecisionFilter
    decisions: tuple[DecisionStory, ...]
    matching: int
    """Decisions held that the filter admits, on whatever page."""
    held: int
    taken: int
    """Decisions since the start."""
    forgotten: int
    since_unix_nano: int | None
    """When the oldest decision held was made."""
    explained_since_unix_nano: int | None
    """When the oldest was made whose votes can still be explained."""
    more: int | None
    """`before` of the next page; None on the last."""


@dataclass(frozen=True, slots=True)
class TableView:
    """What the samplers and their policies did in the last hour."""

    samplers: tuple[SamplerView, ...]
    warnings: tuple[str, ...]
    since_unix_nano: int | None
    """When the first decision was made; None before it."""
    undecided: int | None
    """Traces that wait for their decision; None without a sampler."""


@dataclass(frozen=True, slots=True)
class PoliciesView:
    """The page about policies: the table, and decisions below."""

    table: TableView
    decisions: DecisionsView
    names: tuple[str, ...]
    """Of all policies, for the filter."""


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One decision in full."""

    decision: DecisionStory
    votes: tuple[PolicyVote, ...]
    explained: bool
    """The votes say why; else the spans are no longer held."""
    others: tuple[DecisionStory, ...]
    """Made before about the same trace, or in another pipeline."""
    pod: PodRow | None
    attempt: AttemptStory | None
    held: bool
    """Its trace can be opened."""
    fate: str
    links: tuple[LinkStory, ...]
    explanation: Explanation
    """What `podtrail why` says."""


class DecisionViews:
    """Puts together what is asked for about decisions."""

    def __init__(self, library: Library, measures: SamplerMetrics) -> None:
        self._library = library
        self._measures = measures

    def table(self, now: int) -> TableView:
        """Return the table of policies for the hour before `now`."""
        window = self._library.window
        samplers = tuple(window.tell(now, self._library.policy_types(), self._measures.costs()))
        return TableView(samplers, tuple(_warnings(samplers)), window.began or None, self._measures.undecided())

    async def policies(self, wanted: DecisionFilter, now: int) -> PoliciesView:
        """Return table and list."""
        listed = await self.decisions(wanted)
        table = self.table(now)
        names = dict.fromkeys(row.policy for sampler in table.samplers for row in sampler.policies)
        return PoliciesView(table, listed, tuple(names))

    async def decisions(self, wanted: DecisionFilter) -> DecisionsView:
        """Return the decisions of a filter; a thread looks through many."""
        ring = self._library.decisions
        several = self._library.stories.several_clusters
        asked = selector(wanted.policy, wanted.decision, wanted.q, several_clusters=several)
        if asked is None or len(ring) <= _MANY:
            found, matching = ring.select(asked, wanted.limit + 1, wanted.before)
        else:
            found, matching = await asyncio.to_thread(select, [*ring.latest()], asked, wanted.limit + 1, wanted.before)
        shown = found[: wanted.limit]
        return DecisionsView(
            filter=wanted,
            decisions=tuple(map(self._library.decision_story, shown)),
            matching=matching,
            held=len(ring),
            taken=ring.taken,
            forgotten=ring.forgotten,
            since_unix_nano=ring.since,
            explained_since_unix_nano=ring.whole_since,
            more=shown[-1].seq if len(found) > len(shown) else None,
        )

    async def decision(self, trace_id: bytes) -> DecisionView | None:
        """Return the latest decision about a trace; None when none is held."""
        facts = self._library.trace_facts(trace_id, await decided_links(self._library, trace_id))
        if facts is None or not facts.decisions:
            return None
        latest, *others = map(self._library.decision_story, facts.decisions)
        return DecisionView(
            decision=latest,
            votes=tuple(facts.votes),
            explained=facts.explained,
            others=tuple(others),
            pod=PodRow.of(facts.attempt[0]) if facts.attempt else None,
            attempt=facts.attempt[1] if facts.attempt else None,
            held=facts.fate.held,
            fate=facts.fate.words,
            links=tuple(facts.links or ()),
            explanation=explain_trace(facts),
        )


def _warnings(samplers: tuple[SamplerView, ...]) -> list[str]:
    said: list[str] = []
    for sampler in samplers:
        for row in sampler.policies:
            if row.errors:
                said.append(f"'{row.policy}' failed on {several(row.errors, 'trace')}: it had no vote there.")
            if not row.shadow and not row.voted_yes and sampler.traces - sampler.evicted >= _ENOUGH:
                said.append(f"'{row.policy}' said yes to none of {sampler.traces - sampler.evicted:,} traces.")
            if row.covered_by:
                said.append(f"'{row.policy}' said yes only where '{row.covered_by}' did: without it nothing is lost.")
        if sampler.evicted:
            said.append(f"{several(sampler.evicted, 'trace')} evicted before the decision: num_traces is too small.")
    return said
