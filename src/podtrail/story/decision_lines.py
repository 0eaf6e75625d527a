"""Reads the lines that the `file` exporter writes decisions as (`podtrail.otlp.decisions`)."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from podtrail.otlp import Attempt, Decision, PolicyVote, Shadow, Verdict

_DECISIONS = ("sampled", "not_sampled", "dropped")
_TRACE_BYTES = 16
_SPAN_BYTES = 8
_MOST_DIGITS = 20


class WrittenDecision(NamedTuple):
    """A decision that was written down."""

    verdict: Verdict
    attempt: Attempt | None
    """That it was about."""
    cluster: str
    """Of the attempt; "" where nobody said it."""


def read_decision(raw: bytes) -> WrittenDecision:
    """Return the decision on a line, and the attempt it was about.

    Raises:
        ValueError: the line is none; the text says why.
    """
    told = json.loads(raw)
    if not isinstance(told, dict):
        raise ValueError("not an object")
    trace_id = _id(told, "traceId", _TRACE_BYTES)
    if not trace_id:
        raise ValueError("no traceId")
    verdict = Verdict(
        trace_id=trace_id,
        decision=_decision(told.get("decision")),
        policy=_text(told, "policy"),
        reason=_text(told, "reason"),
        decided_at=_number(told, "decidedAtUnixNano"),
        arrived=_number(told, "arrivedAtUnixNano"),
        spans=_number(told, "spans"),
        votes=_votes(told),
        dry_run=told.get("dryRun") is True,
    )
    shadow = told.get("shadow")
    if isinstance(shadow, dict):
        verdict.explainer = _WrittenVotes(_shadow(shadow))
    root = _id(told, "rootSpanId", _SPAN_BYTES)
    if not root:
        return WrittenDecision(verdict, None, "")
    attempt = Attempt(
        trace_id=trace_id,
        span_id=root,
        start=_number(told, "startTimeUnixNano"),
        end=_number(told, "endTimeUnixNano"),
        pod_uid=_text(told, "podUid"),
        namespace=_text(told, "podNamespace"),
        name=_text(told, "podName"),
        result=_text(told, "result"),
        profile=_text(told, "profile"),
        message=_text(told, "message"),
    )
    return WrittenDecision(verdict, attempt, _text(told, "cluster"))


class _WrittenVotes(NamedTuple):
    """Stands for the sampler that decided: knows what shadows said, and of no vote why."""

    shadow: Shadow

    def explain(self, verdict: Verdict) -> Sequence[PolicyVote]:
        """Return the votes as they were written."""
        tried = {**self.shadow.votes, **self.shadow.set_votes}
        return [
            *(PolicyVote(policy, "", vote, "") for policy, vote in verdict.votes.items()),
            *(PolicyVote(policy, "", vote, "", shadow=True) for policy, vote in tried.items()),
        ]


def _shadow(told: Mapping[str, Any]) -> Shadow:
    other = told.get("set")
    if not isinstance(other, dict):
        return Shadow(_votes(told))
    decision = _decision(other.get("decision"))
    return Shadow(_votes(told), decision, _text(other, "policy"), _text(other, "reason"), _votes(other))


def _votes(told: Mapping[str, Any]) -> dict[str, Decision]:
    votes = told.get("votes")
    return {policy: _decision(vote) for policy, vote in votes.items()} if isinstance(votes, dict) else {}


def _decision(value: object) -> Decision:
    if value not in _DECISIONS:
        raise ValueError(f"decision is none of {', '.join(_DECISIONS)}")
    return cast("Decision", value)


def _text(told: Mapping[str, Any], key: str) -> str:
    value = told.get(key, "")
    return value if isinstance(value, str) else ""


def _number(told: Mapping[str, Any], key: str) -> int:
    value = told.get(key, 0)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _id(told: Mapping[str, Any], key: str, size: int) -> bytes:
    try:
        found = bytes.fromhex(_text(told, key))
    except ValueError:
        return b""
    return found if len(found) == size else b""
