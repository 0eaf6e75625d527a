"""Reads decisions from spans: from what a sampler wrote on their root (`record_reason`, `dry_run`)."""

import re
from typing import cast

from podtrail.otlp import Decision, Group, SpanView, Verdict, split

_MARK = b"podtrail.sampling."
_DECISIONS = ("sampled", "not_sampled", "dropped")
_VOTE = re.compile(rf"(.+?): ({'|'.join(_DECISIONS)})(?:, |$)", re.DOTALL)
"""Of a list of them: a policy's name may have a comma or a colon in it."""


def read_inscription(group: Group) -> Verdict | None:
    """Return the decision that one of these spans of a trace bears; None where none does.

    When it was made is not written, so that its times are 0, nor on how many spans; votes may be left out.
    """
    if _MARK not in group.spans:
        return None
    for raw in split(group.spans):
        verdict = _read(group.trace_id, raw) if _MARK in raw else None
        if verdict is not None:
            return verdict
    return None


def _read(trace_id: bytes, raw: bytes) -> Verdict | None:
    attributes = SpanView(raw).attributes
    told = [attributes.get(f"podtrail.sampling.{key}", "") for key in ("decision", "policy", "reason", "votes")]
    decision, policy, reason, votes = (value if isinstance(value, str) else "" for value in told)
    if not (decision in _DECISIONS or policy):
        return None
    return Verdict(
        trace_id=trace_id,
        decision=cast("Decision", decision) if decision in _DECISIONS else "sampled",
        policy=policy,
        reason=reason,
        decided_at=0,
        arrived=0,
        spans=0,
        votes={name: cast("Decision", vote) for name, vote in _VOTE.findall(votes)},
        dry_run=bool(decision),
    )
