"""What an admission request changes: which trace context is written, kept, replaced or removed, and why (KEP-5915).

The context is that of the request which the API server is serving, taken from the headers with which it calls the
webhook. An annotation that is there belongs to whoever wrote it: a valid one stays, unless only some may write them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from opentelemetry.trace import SpanContext
from podtrail_instrumentation.annotations import DEFAULT_PREFIX, find, inject_span_context, remote_context

from podtrail_webhook.places import is_controlled, place_of
from podtrail_webhook.review import AdmissionRequest, PatchOperation, Requester

TRACEPARENT: Final = DEFAULT_PREFIX + "traceparent"
TRACESTATE: Final = DEFAULT_PREFIX + "tracestate"
_CONTROLLERS: Final = frozenset(
    {
        "system:kube-controller-manager",
        *(
            f"system:serviceaccount:kube-system:{name}"
            for name in (
                *("cronjob-controller", "daemon-set-controller", "deployment-controller", "job-controller"),
                *("replicaset-controller", "replication-controller", "statefulset-controller"),
            )
        ),
    }
)
"""Kubernetes' own users that make Pods from templates: what they bring was judged when the template was made."""


class InjectionResult(StrEnum):
    """What became of a request, as the label `result` of `trace_context_annotations_injected_total` has it."""

    SUCCESS = "success"
    """The context was written, where none was."""
    UNCHANGED = "unchanged"
    """There is a valid annotation already, and it stays."""
    NO_CONTEXT = "no_context"
    """The request came without trace context."""
    NOT_SAMPLED = "not_sampled"
    """Nobody records the request's trace: a link to it would lead nowhere."""
    INVALID_CONTEXT = "invalid_context"
    """The request came with a header that is no traceparent."""
    REPLACED = "replaced"
    """An invalid annotation, or one of somebody who may write none, gave way to the request's context."""
    REMOVED = "removed"
    """The same, and the request has no context."""
    INVALID_KEPT = "invalid_kept"
    """An invalid annotation stays, because it is to."""
    CONTROLLED = "controlled"
    """The template belongs to a controller, which compares it with its own."""
    NOT_CONCERNED = "not_concerned"
    """Nothing is created, or nothing that has Pods."""


class Mutation(NamedTuple):
    """What is answered."""

    result: InjectionResult
    patch: Sequence[PatchOperation] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class AnnotationPolicy:
    """Whose annotations count, and what becomes of the others."""

    trusted_users: Collection[str] = frozenset()
    trusted_groups: Collection[str] = frozenset()
    """Who may write the annotation; nobody in either: everybody may."""
    keep_invalid: bool = False
    """Let an annotation stand that is no traceparent, instead of taking it away."""

    def trusts(self, requester: Requester) -> bool:
        """Whether an annotation that comes with a request of this user counts."""
        if not self.trusted_users and not self.trusted_groups:
            return True
        if requester.username in self.trusted_users or requester.username in _CONTROLLERS:
            return True
        return not set(self.trusted_groups).isdisjoint(requester.groups)


def mutate(
    request: AdmissionRequest, traceparent: str | None, tracestate: str | None, policy: AnnotationPolicy
) -> Mutation:
    """What a request changes, given the headers that came with it.

    Only what is created is touched: an update that removes the annotation, as a controller does that compares a
    template with its own, is not to be fought. A template that a controller owns is left alone for the same reason
    (a Deployment finds its ReplicaSet by comparing templates).

    Raises:
        RefusedReview: the object is not shaped as its kind is.
    """
    place = place_of(request) if request.operation == "CREATE" else None
    if place is None:
        return Mutation(InjectionResult.NOT_CONCERNED)
    if request.kind != "Pod" and is_controlled(request):
        return Mutation(InjectionResult.CONTROLLED)
    context, why_none = _context_of_request(traceparent, tracestate)
    if TRACEPARENT not in place.annotations:
        if context is None:
            return Mutation(why_none)
        return Mutation(InjectionResult.SUCCESS, place.patch(_written(context, place.annotations)))
    found = find(place.annotations, DEFAULT_PREFIX, None)
    if found is None and policy.keep_invalid:
        return Mutation(InjectionResult.INVALID_KEPT)
    if found is not None:
        # What was written when this webhook was called for the same request before is not somebody else's.
        own = context is not None and found[1] == f"{context.trace_id:032x}"
        if own or policy.trusts(request.requester):
            stays = remote_context(found, place.annotations, DEFAULT_PREFIX)
            return Mutation(InjectionResult.UNCHANGED, place.patch(_without_bad_state(stays, place.annotations)))
        why = f"{request.requester.username!r:.80} may not write it"
    else:
        why = "it is no traceparent of W3C Trace Context, version 00"
    if context is None:
        gone = {TRACEPARENT: None, TRACESTATE: None}
        return Mutation(InjectionResult.REMOVED, place.patch(gone), [f"{TRACEPARENT} was removed: {why}"])
    changes = _written(context, place.annotations)
    return Mutation(InjectionResult.REPLACED, place.patch(changes), [f"{TRACEPARENT} was replaced: {why}"])


def _context_of_request(traceparent: str | None, tracestate: str | None) -> tuple[SpanContext | None, InjectionResult]:
    """The context to write, or why there is none."""
    if traceparent is None:
        return None, InjectionResult.NO_CONTEXT
    headers = {"traceparent": traceparent, "tracestate": tracestate or ""}
    found = find(headers, "", None)
    if found is None:
        return None, InjectionResult.INVALID_CONTEXT
    context = remote_context(found, headers, "")
    return (context, InjectionResult.SUCCESS) if context.trace_flags.sampled else (None, InjectionResult.NOT_SAMPLED)


def _written(context: SpanContext, annotations: Mapping[str, str]) -> Mapping[str, str | None]:
    changes: dict[str, str | None] = dict(inject_span_context(annotations, context))
    if not changes.get(TRACESTATE, ""):
        changes[TRACESTATE] = None  # one that is there belongs to another traceparent
    return changes


def _without_bad_state(context: SpanContext, annotations: Mapping[str, str]) -> Mapping[str, str | None]:
    """Takes away a tracestate that nobody would read: too long, or not W3C's."""
    return {TRACESTATE: None} if annotations.get(TRACESTATE) and not context.trace_state else {}
