"""Decisions as lines: what a sampler decided about a trace, in the form in which it is written to a file."""

import json
from typing import Any

from podtrail.otlp.attempt import attempt_of
from podtrail.otlp.cluster import cluster_name
from podtrail.otlp.verdict import Shadow, Verdict


def written_decision(verdict: Verdict) -> bytes:
    """Return a verdict as a line of a file of decisions, whoever writes it."""
    return json.dumps(decision_line(verdict), separators=(",", ":")).encode() + b"\n"


def decision_line(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a mapping for JSON, in OTLP's manner: ids in hex, nanoseconds since the epoch as strings.

    Where policies are only tried there is `shadow`: their `votes`, and as `set` what the alternative list says.
    Always `traceId`, `decision`, `policy`, `reason`, `decidedAtUnixNano`, `arrivedAtUnixNano`, `spans` and `votes`;
    `dryRun` (true) where the spans passed whatever was decided; of a scheduling attempt also `rootSpanId`,
    `startTimeUnixNano`, `endTimeUnixNano`, `podUid`, `podNamespace`, `podName`, `result`, `profile` and `message`, each
    where the attempt says it, and `cluster` where its resource does.
    """
    line: dict[str, Any] = {
        "traceId": verdict.trace_id.hex(),
        "decision": verdict.decision,
        "policy": verdict.policy,
        "reason": verdict.reason,
        "decidedAtUnixNano": str(verdict.decided_at),
        "arrivedAtUnixNano": str(verdict.arrived),
        "spans": verdict.spans,
        "votes": dict(verdict.votes),
    }
    if verdict.dry_run:
        line["dryRun"] = True
    if verdict.shadow is not None:
        line["shadow"] = _shadow_line(verdict.shadow)
    group, attempt = next(
        ((group, attempt) for group in verdict.groups if (attempt := attempt_of([group]))), (None, None)
    )
    if group is not None and attempt is not None:
        told = {
            "rootSpanId": attempt.span_id.hex(),
            "startTimeUnixNano": str(attempt.start),
            "endTimeUnixNano": str(attempt.end),
            "podUid": attempt.pod_uid,
            "podNamespace": attempt.namespace,
            "podName": attempt.name,
            "result": attempt.result,
            "profile": attempt.profile,
            "message": attempt.message,
            "cluster": cluster_name(group.resource),
        }
        line.update({key: value for key, value in told.items() if value})
    return line


def _shadow_line(shadow: Shadow) -> dict[str, Any]:
    line: dict[str, Any] = {"votes": dict(shadow.votes)}
    if shadow.decision is not None:
        line["set"] = {"decision": shadow.decision, "policy": shadow.policy, "reason": shadow.reason}
        line["set"]["votes"] = dict(shadow.set_votes)
    return line
