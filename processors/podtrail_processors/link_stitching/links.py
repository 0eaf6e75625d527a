"""The vocabulary of links: what we write on them, and how they are told apart.

A link's type names the relation of the two spans. The side that has the link by itself, and the one that is told of it
(`podtrail.link.back`), carry the same type, but for attempts of one Pod, which have an order.
"""

from typing import Final

from podtrail.otlp import Link, SpanView, Value
from podtrail.pod_identity import AUDIT_ID, PodClues, PodEvidence
from podtrail_processors.link_stitching.trace_fate import TraceFate

TYPE: Final = "podtrail.link.type"
RESOLVED: Final = "podtrail.link.resolved"
"""Whether the target's trace was kept, as far as we know."""
TARGET: Final = "podtrail.link.target"
"""Why it is not resolved: `dropped` (by a sampler) or `unknown` (not received, or longer ago than is remembered)."""
POLICY: Final = "podtrail.link.target.policy"
REASON: Final = "podtrail.link.target.reason"
"""For a dropped target: the sampler's policy and its reason in words."""
BACK: Final = "podtrail.link.back"
"""True on what the linked side was told; absent on the link itself."""
INFERRED: Final = "podtrail.inferred"
"""True on a link that no span carried: concluded from names, uids and times."""
EVIDENCE: Final = "podtrail.link.evidence"
"""By what it is known that both are about one Pod: a `PodEvidence`."""

CODE: Final = "http.response.status_code"
"""What the API server answered, on links of requests: a refused binding is told by it alone."""

TRUSTED: Final = "podtrail.link.trusted"
"""False on a link whose target was chosen by whoever may write an annotation (KEP-5915), and on its other side."""

PREVIOUS_ATTEMPT: Final = "previous-attempt"
NEXT_ATTEMPT: Final = "next-attempt"
CREATION: Final = "creation"
BINDING: Final = "binding"
SCHEDULING: Final = "scheduling"
STATUS: Final = "status"
"""A scheduler's write of a Pod's status, after an attempt that failed or when it nominates a node."""
CONFIGURATION: Final = "configuration"
"""The change that made the scheduler's configuration, on each attempt that was made with it."""
TERMINATION: Final = "termination"
"""The kubelet's `syncTerminatingPod` and `syncTerminatedPod`, with the attempt that bound the Pod."""
REQUEST: Final = "request"
"""Any other request about a Pod, of the kubelet's or of others, with the attempt that bound it."""
DELETION: Final = "deletion"
"""A request that deletes a Pod, with the attempt that bound it."""
EVENT: Final = "event"
"""A request that writes an Event about a Pod, with the attempt that bound it."""
RUNTIME: Final = "runtime"
"""What the container runtime does for a Pod of its own accord, with the attempt that bound it."""
OWNER: Final = "owner"
"""A request that created an object, with the one that created what the object was made for."""
CLIENT: Final = "client"
"""An API server's span of a request, with the client's span of it: so it links where it does not trust the client."""

TYPES: Final = frozenset(
    {
        PREVIOUS_ATTEMPT,
        NEXT_ATTEMPT,
        CREATION,
        BINDING,
        SCHEDULING,
        STATUS,
        TERMINATION,
        REQUEST,
        DELETION,
        EVENT,
        RUNTIME,
        OWNER,
        CONFIGURATION,
        CLIENT,
    }
)
UNANSWERED: Final = frozenset({PREVIOUS_ATTEMPT, CONFIGURATION})
"""What the linked side is not told of: an attempt hears of the next from its chain, a change not of all attempts."""
_OPPOSITE: Final = {PREVIOUS_ATTEMPT: NEXT_ATTEMPT, NEXT_ATTEMPT: PREVIOUS_ATTEMPT}

_SERVER: Final = 2

MOST_LINKS: Final = 128
"""More links than SDKs allow on a span are no story: such a span's own links pass as they came."""


def key_of(link: Link) -> bytes:
    """Return the 24 bytes of trace and span id that a link points to; b"" when it can't point to a span."""
    whole = len(link.trace_id) == 16 and len(link.span_id) == 8 and any(link.trace_id) and any(link.span_id)
    return link.trace_id + link.span_id if whole else b""


def is_back_link(link: Link) -> bool:
    """Say whether a link was written as the other side of one."""
    return link.attributes.get(BACK) is True


def outcome(fate: TraceFate | None) -> dict[str, Value]:
    """Return the attributes that tell whether a link leads anywhere."""
    if fate is None:
        return {RESOLVED: False, TARGET: "unknown"}
    if fate.kept:
        return {RESOLVED: True}
    return {RESOLVED: False, TARGET: "dropped", POLICY: fate.policy, REASON: fate.reason}


def forward(target: bytes, kind: str, fate: TraceFate | None, evidence: PodEvidence, *, inferred: bool = False) -> Link:
    """Return a link of our own to a span."""
    attributes: dict[str, Value] = {TYPE: kind, **outcome(fate), EVIDENCE: evidence.value}
    if inferred:
        attributes[INFERRED] = True
    return Link(target[:16], target[16:], attributes)


def backward(
    source: bytes, kind: str, evidence: PodEvidence, *, inferred: bool = False, untrusted: bool = False
) -> Link:
    """Return the other side of a link of type `kind` ("" for none) that `source` has."""
    attributes: dict[str, Value] = {**typed(_OPPOSITE.get(kind, kind)), RESOLVED: True, BACK: True}
    attributes[EVIDENCE] = evidence.value
    if inferred:
        attributes[INFERRED] = True
    if untrusted:
        attributes[TRUSTED] = False
    return Link(source[:16], source[16:], attributes)


def answer(link: Link, source: bytes, kind: str) -> Link:
    """Return the other side of a link that `source` brought along. One chosen by anybody stays marked as such."""
    return backward(source, kind, stated(kind), untrusted=link.attributes.get(TRUSTED) is False)


def stated(kind: str) -> PodEvidence:
    """Return the evidence of a link that a span brought along: whoever made it was given the other's context."""
    return PodEvidence.POD_UID if kind in _OPPOSITE else PodEvidence.TRACE_CONTEXT


def typed(kind: str) -> dict[str, Value]:
    """Return the attribute of a link's type; nothing when there is none to tell."""
    return {TYPE: kind} if kind else {}


def kind_by_bearer(span: SpanView, clues: PodClues | None, *, to_attempt: bool) -> str:
    """Return the type of a link by the span that has it; "" when that does not tell."""
    if clues and clues.server and clues.action == "binding":
        return BINDING
    if clues and clues.sync:
        return SCHEDULING
    # Of all servers only that of Kubernetes' API gives its requests such an id.
    return CLIENT if not to_attempt and span.kind == _SERVER and AUDIT_ID in span.attributes else ""


def key_of_span(span: SpanView) -> bytes:
    """Return the 24 bytes of trace and span id of a span."""
    return span.trace_id + span.span_id
