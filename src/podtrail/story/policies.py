"""What each policy did lately: its votes, what it decided, what would be lost without it."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from podtrail.otlp import Decision, Shadow, Verdict

HOUR = 3_600_000_000_000
_PARTS = 12
_MOST_ROWS = 2_048

Votes = tuple[tuple[str, Decision], ...]


class _VoteRow(NamedTuple):
    pipeline: str
    decision: Decision
    policy: str
    votes: Votes
    shadows: Votes = ()
    """Of policies that are only tried, those of an alternative list among them."""
    alternative: Decision | None = None
    """What an alternative list of policies would have decided."""


@dataclass(slots=True)
class _VoteCounts:
    traces: int = 0
    spans: int = 0
    last: int = 0
    """Unix nanoseconds of the latest decision."""


class SamplerPolicy(NamedTuple):
    """A policy of one pipeline's sampler."""

    pipeline: str
    name: str
    shadow: bool = False
    """It is only tried."""


class PolicyCost(NamedTuple):
    """What a policy has cost since the start."""

    microseconds: float | None
    """A trace; None where it is not measured."""
    errors: int


@dataclass(slots=True)
class PolicyRow:
    """One policy in the table. Traces and spans are those of the last hour."""

    policy: str
    type: str = ""
    shadow: bool = False
    voted_yes: int = 0
    decided: int = 0
    only_it: int | None = 0
    """Traces that nobody else said yes to; None where the others were not asked."""
    spans: int = 0
    """Of the traces it decided; of a shadow policy, those nobody kept that it would have."""
    would_keep: int = 0
    """Traces that were not kept and that it would have kept, being a shadow."""
    microseconds: float | None = None
    errors: int = 0
    last_yes_unix_nano: int | None = None
    covered_by: str = ""
    """A policy that said yes to every trace that this one said yes to; "" where there is none."""


@dataclass(slots=True)
class Alternative:
    """Traces that a list of shadow policies would have decided otherwise."""

    kept: int = 0
    """Kept by it in all."""
    gained: int = 0
    """Kept by it alone."""
    lost: int = 0
    """Kept, but not by it."""


@dataclass(slots=True)
class SamplerView:
    """What the sampler of one pipeline did in the last hour, and its policies."""

    pipeline: str
    traces: int = 0
    kept: int = 0
    spans: int = 0
    kept_spans: int = 0
    nothing: int = 0
    """Traces that no policy decided on."""
    nothing_spans: int = 0
    evicted: int = 0
    """Of these, traces that had no decision because they were evicted."""
    alternative: "Alternative | None" = None
    """What a list of shadow policies would have done; None without one."""
    policies: list[PolicyRow] = field(default_factory=list)


class PolicyWindow:
    """Counts rows of votes in parts of an hour by pipeline time; forgets the oldest part. A few us a decision."""

    def __init__(self) -> None:
        self._parts: deque[tuple[int, dict[_VoteRow, _VoteCounts]]] = deque(maxlen=_PARTS + 1)
        self._last_yes: dict[SamplerPolicy, int] = {}
        self.began = 0
        """When the first decision was made, Unix nanoseconds; 0 before."""

    def note(self, pipeline: str, verdict: Verdict) -> None:
        """Count a decision."""
        self.began = self.began or verdict.decided_at
        part = verdict.decided_at // (HOUR // _PARTS)
        if not self._parts or part > self._parts[-1][0]:
            if len(self._parts) == self._parts.maxlen:
                self._remember(self._parts[0][1])
            self._parts.append((part, {}))
        rows = self._parts[-1][1]
        evicted = verdict.reason.startswith("evicted")
        policy = _EVICTED if evicted and not verdict.policy else verdict.policy
        shadow = verdict.shadow
        row = _VoteRow(
            pipeline,
            verdict.decision,
            policy,
            tuple(verdict.votes.items()),
            shadow_votes(shadow),
            shadow.decision if shadow else None,
        )
        if row not in rows and len(rows) >= _MOST_ROWS:
            row = row._replace(votes=(), shadows=())
        counts = rows.setdefault(row, _VoteCounts())
        counts.traces += 1
        counts.spans += verdict.spans
        counts.last = max(counts.last, verdict.decided_at)

    def tell(
        self, now: int, types: Mapping[SamplerPolicy, str], costs: Mapping[str, PolicyCost]
    ) -> Sequence[SamplerView]:
        """Return what happened in the hour before `now`, by pipeline.

        `types` by policy, in the order of the configuration; `costs` by name.
        """
        rows: dict[_VoteRow, _VoteCounts] = {}
        for part, counted in self._parts:
            if (part + 1) * (HOUR // _PARTS) > now - HOUR:
                _add(rows, counted)
        samplers: dict[str, SamplerView] = {}
        for row, counts in rows.items():
            _sum(samplers.setdefault(row.pipeline, SamplerView(row.pipeline)), row, counts)
        for view in samplers.values():
            view.policies = self._policies(view.pipeline, rows, types, costs)
        return list(samplers.values())

    def _remember(self, rows: Mapping[_VoteRow, _VoteCounts]) -> None:
        for row, counts in rows.items():
            for policy, vote in _votes(row):
                if vote == "sampled" and (len(self._last_yes) < _MOST_ROWS or policy in self._last_yes):
                    self._last_yes[policy] = counts.last

    def _policies(
        self,
        pipeline: str,
        rows: Mapping[_VoteRow, _VoteCounts],
        types: Mapping[SamplerPolicy, str],
        costs: Mapping[str, PolicyCost],
    ) -> list[PolicyRow]:
        own = {row: counts for row, counts in rows.items() if row.pipeline == pipeline}
        voted = [policy for row in own for policy, _ in _votes(row)]
        known = [policy for policy in types if policy.pipeline == pipeline]
        found = {p: PolicyRow(p.name, types.get(p, ""), p.shadow) for p in dict.fromkeys((*known, *voted))}
        voters = [policy.name for policy in found if not policy.shadow]
        for row, counts in own.items():
            for policy, vote in _votes(row):
                if vote == "sampled":
                    _credit(found[policy], row, counts, voters)
        yes = [{policy for policy, vote in row.votes if vote == "sampled"} for row in own]
        for policy, one in found.items():
            one.covered_by = _covered(one, yes, voters)
            one.last_yes_unix_nano = one.last_yes_unix_nano or self._last_yes.get(policy)
            # A sampler with a name of its own puts it before the policy's.
            named = (cost for label, cost in costs.items() if label.endswith(f".{policy.name}"))
            cost = costs.get(policy.name) or next(named, None)
            # Of an alternative list, a policy may have the name of one that decides: the cost is that one's.
            if cost and not (policy.shadow and policy.name in voters):
                one.microseconds, one.errors = cost
        return list(found.values())


def shadow_votes(shadow: Shadow | None) -> Votes:
    """Return the votes of all policies that are only tried."""
    return (*shadow.votes.items(), *shadow.set_votes.items()) if shadow else ()


def _votes(row: _VoteRow) -> Iterator[tuple[SamplerPolicy, Decision]]:
    for name, vote in row.votes:
        yield SamplerPolicy(row.pipeline, name), vote
    for name, vote in row.shadows:
        yield SamplerPolicy(row.pipeline, name, shadow=True), vote


_EVICTED = "\0evicted"
"""Stands for a policy in rows of traces that none was asked about."""


def _add(rows: dict[_VoteRow, _VoteCounts], counted: Mapping[_VoteRow, _VoteCounts]) -> None:
    for row, counts in counted.items():
        total = rows.setdefault(row, _VoteCounts())
        total.traces += counts.traces
        total.spans += counts.spans
        total.last = max(total.last, counts.last)


def _sum(view: SamplerView, row: _VoteRow, counts: _VoteCounts) -> None:
    view.traces += counts.traces
    view.spans += counts.spans
    _try(view, row, counts)
    if row.decision == "sampled":
        view.kept += counts.traces
        view.kept_spans += counts.spans
    elif row.policy in ("", _EVICTED):
        view.nothing += counts.traces
        view.nothing_spans += counts.spans
        view.evicted += counts.traces * (row.policy == _EVICTED)


def _try(view: SamplerView, row: _VoteRow, counts: _VoteCounts) -> None:
    if row.alternative is None:
        return
    view.alternative = view.alternative or Alternative()
    kept, would = row.decision == "sampled", row.alternative == "sampled"
    view.alternative.kept += counts.traces * would
    view.alternative.gained += counts.traces * (would and not kept)
    view.alternative.lost += counts.traces * (kept and not would)


def _credit(one: PolicyRow, row: _VoteRow, counts: _VoteCounts, voters: Sequence[str]) -> None:
    one.voted_yes += counts.traces
    one.last_yes_unix_nano = max(one.last_yes_unix_nano or 0, counts.last)
    if one.shadow:
        if row.decision != "sampled":
            one.would_keep += counts.traces
            one.spans += counts.spans
        return
    if row.policy != one.policy or row.decision != "sampled":
        return
    one.decided += counts.traces
    one.spans += counts.spans
    said = dict(row.votes)
    # One that failed has no vote; those behind the last vote were not asked.
    last = max(at for at, voter in enumerate(voters) if voter in said)
    if last + 1 < len(voters):
        one.only_it = None
    elif one.only_it is not None and not any(said.get(voter) == "sampled" for voter in voters if voter != one.policy):
        one.only_it += counts.traces


def _covered(one: PolicyRow, yes: Sequence[Collection[str]], voters: Sequence[str]) -> str:
    """Return a policy that said yes whenever this one did, and more often; `yes` by row of votes."""
    mine = [said for said in yes if one.policy in said]
    if not mine or one.shadow:
        return ""
    for other in sorted(set(voters).intersection(*mine) - {one.policy}):
        if sum(other in said for said in yes) > len(mine):
            return other
    return ""
