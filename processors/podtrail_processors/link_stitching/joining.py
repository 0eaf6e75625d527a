"""Which attempt a span of another component belongs to: whose Pod it is about, and which attempt bound that.

What can't be told for certain is not joined, but counted with its reason.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podtrail.component import Context
from podtrail.pod_identity import (
    ACCOUNT,
    CLOCK_SLACK,
    CLOCKS_APART,
    EVENT,
    IdentifiedPod,
    PodClues,
    PodEvidence,
    SpanSource,
)
from podtrail_processors.link_stitching import links
from podtrail_processors.link_stitching.memory import StitchingMemory
from podtrail_processors.link_stitching.numbering import AttemptChain, NumberedAttempt

_BINDING: Final = "binding"
_STATUS: Final = "status"
_STARTS: Final = "syncPod"

AMBIGUOUS: Final = "ambiguous"
"""Several Pods can be meant, or what says which contradicts itself."""
UNKNOWN_POD: Final = "unknown_pod"
"""Nobody told which Pod has this name or id."""
NO_ATTEMPT: Final = "no_attempt"
"""The Pod is known, but no attempt of it: it is static, of another scheduler, or it was not seen."""
NOT_BOUND: Final = "not_bound"
"""None of the Pod's attempts bound it, as far as is known."""
NO_REQUEST: Final = "no_request"
"""The request that created the Pod was not seen."""

TOLD_ONCE: Final = frozenset({links.SCHEDULING, links.DELETION})
"""Types of links of which the attempt is told by the first alone."""
TOLD: Final = frozenset({links.BINDING, links.STATUS, links.TERMINATION}) | TOLD_ONCE
"""Types of links of which the attempt is told; of what is not among these there are too many."""


class Join(NamedTuple):
    """What a span is to be linked with."""

    kind: str
    evidence: PodEvidence
    attempt: NumberedAttempt | None
    """None where none has bound the Pod yet."""
    uid: str


def kind_of(clues: PodClues, *, is_delete: bool) -> str:
    """Return the type of link that a span gets; "" for one that gets none, such as a part of what gets one."""
    if not clues.stands_for_all:
        return ""
    if clues.sync:
        return links.SCHEDULING if clues.sync == _STARTS else links.TERMINATION
    if clues.action == EVENT:
        return links.EVENT
    if not clues.place and clues.action != ACCOUNT:
        return links.RUNTIME
    if clues.server and clues.action == _BINDING:
        return links.BINDING
    if clues.server and clues.action == _STATUS and clues.by_scheduler:
        return links.STATUS
    return links.DELETION if is_delete and clues.server else links.REQUEST


class PodJoiner:
    """Finds the attempts that spans belong to."""

    def __init__(self, memory: StitchingMemory, context: Context) -> None:
        self._memory = memory
        self._directory = memory.directory
        self._labels = (context.id,)
        self._unjoined = context.metrics.counter(
            "otelcol_processor_link_stitching_unjoined",
            "Spans about a Pod that were not linked to an attempt, by type of the link and by why.",
            ("processor", "type", "reason"),
        )

    def missed(self, kind: str, reason: str) -> None:
        """Count a link that was not made."""
        self._unjoined.add(1, *self._labels, kind, reason)

    def join(self, clues: PodClues, kind: str, source: SpanSource, now: int) -> Join | None:
        """Return what a span with these clues is to be linked with by a link of a type; None for nothing."""
        identity = self._directory.identify(clues, source)
        if kind in (links.BINDING, links.STATUS):
            return self._by_time(clues, kind, identity, source)
        if kind == links.RUNTIME and self._memory.has_story(clues.trace_id):
            return None
        if identity is None or not identity.uid:
            self.missed(kind, UNKNOWN_POD if identity is None else AMBIGUOUS)
            return None
        self._directory.confirm(clues, identity, source, now)
        chain = self._memory.chain(identity.uid)
        attempt = chain.bound() if chain else None
        if attempt is None and not clues.sync:
            self.missed(kind, NO_ATTEMPT if chain is None else NOT_BOUND)
            return None
        return Join(kind, identity.evidence, attempt, identity.uid)

    def _by_time(self, clues: PodClues, kind: str, identity: IdentifiedPod | None, source: SpanSource) -> Join | None:
        """Return the attempt that a scheduler's request was made in: that under way then, or just before.

        The time tells attempts of one Pod apart, not Pods: of the one before it under its name nobody may have told.
        """
        chain = self._memory.chain(identity.uid) if identity and identity.uid else None
        if identity is None or chain is None:
            self.missed(kind, UNKNOWN_POD if identity is None else NO_ATTEMPT if identity.uid else AMBIGUOUS)
            return None
        near = _near(chain, clues, kind)
        if kind == links.BINDING:
            attempt = _holding(near, clues)
            if attempt:
                self._memory.clocks.compare(clues, source, attempt)
        else:
            attempt = chain.failing_at(clues.start, CLOCK_SLACK)
            if len(near) > 1 and attempt and not self._memory.clocks.agree(source, attempt):
                self.missed(kind, AMBIGUOUS)
                return None
        if attempt is None or clues.start > attempt.end + CLOCK_SLACK:
            self.missed(kind, NO_ATTEMPT)
            return None
        return Join(kind, identity.evidence, attempt, attempt.pod_uid)


def _near(chain: AttemptChain, clues: PodClues, kind: str) -> list[NumberedAttempt]:
    """Return the attempts that may have made a request, be their clock as far off as clocks may be."""
    near = chain.between(clues.start - CLOCKS_APART, clues.end + CLOCKS_APART)
    return [attempt for attempt in near if kind == links.STATUS or attempt.may_bind]


def _holding(near: Sequence[NumberedAttempt], clues: PodClues) -> NumberedAttempt | None:
    """Return the only one of these attempts that a request was made in, or if there is none, close to which it was."""
    for slack in (0, CLOCK_SLACK):
        found = [one for one in near if one.start - slack <= clues.start <= one.end + slack]
        if found:
            return found[0] if len(found) == 1 else None
    return None
