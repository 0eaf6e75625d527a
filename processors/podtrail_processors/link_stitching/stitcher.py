"""What is written on a span when it leaves: its number, its links, and the marks on those that it brought along."""

from collections.abc import Mapping
from typing import Final

from podtrail.component import Context
from podtrail.otlp import (
    Group,
    Link,
    Value,
    frame,
    raw_span_reader,
    read_attempt,
    split,
)
from podtrail.pod_identity import PodClues, PodEvidence, SpanSource
from podtrail_processors.link_stitching import links
from podtrail_processors.link_stitching.amendment import Amendment
from podtrail_processors.link_stitching.joining import (
    AMBIGUOUS,
    NO_REQUEST,
    NOT_BOUND,
    TOLD,
    TOLD_ONCE,
    PodJoiner,
    kind_of,
)
from podtrail_processors.link_stitching.memory import EarlyJoin, StitchingMemory
from podtrail_processors.link_stitching.neighbours import status_code_of
from podtrail_processors.link_stitching.numbering import NumberedAttempt, RequestSpan
from podtrail_processors.link_stitching.prefilter import ATTEMPT_MARK
from podtrail_processors.link_stitching.reorder_window import Held, ReorderWindow
from podtrail_processors.link_stitching.span_writing import SpanWriting

_METHOD: Final = "http.request.method"
_REFUSED: Final = 300
_NOTHING: Final[Mapping[str, Value]] = {}
_read = raw_span_reader(("span_id", "links"))


class Stitcher:
    """Writes on the spans of groups that leave, and gathers amendments for those that have left."""

    def __init__(self, memory: StitchingMemory, room: ReorderWindow, context: Context, *, amend: bool) -> None:
        self._memory = memory
        self._room = room
        self._amend = amend
        self._joiner = PodJoiner(memory, context)
        self.amendments: list[Amendment] = []
        """For spans that have left, until they are taken."""
        self._labels = (context.id,)
        self._numbered = context.metrics.counter(
            "otelcol_processor_link_stitching_attempts_numbered",
            "Attempts that left with their number.",
            ("processor",),
        )
        self._links = context.metrics.counter(
            "otelcol_processor_link_stitching_links",
            "Links of spans that left, by type and by what became of their target.",
            ("processor", "type", "target"),
        )

    def take_amendments(self) -> list[Amendment]:
        """Return what came up for spans that have left, since the last call."""
        taken, self.amendments = self.amendments, []
        return taken

    def announce(self, group: Group, clues: Mapping[bytes, PodClues], now: int) -> None:
        """Note what the spans of a group that comes in link to, so that these learn of it should they leave first."""
        for raw, span in zip(split(group.spans), _read(group.spans), strict=True):
            if span.links:
                writing = SpanWriting(raw, len(span.links), clues.get(span.span_id))
                for position, (target, kind) in self._own_links(writing).items():
                    if target and target != writing.key and kind not in links.UNANSWERED:
                        answer = links.answer(writing.links[position], writing.key, kind)
                        self._memory.wait(target, writing.key, answer, now)

    def stitch(self, held: Held, now: int) -> Group:
        """Return a held group as it leaves."""
        group, clues = held.group, held.clues
        source = self._memory.directory.source(group.resource)
        spans: list[bytes] = []
        changed = False
        for raw, span in zip(split(group.spans), _read(group.spans), strict=True):
            key = group.trace_id + span.span_id
            told = span.span_id in clues or span.span_id in held.creating
            if told or span.links or ATTEMPT_MARK in raw or self._memory.waits_for(key):
                written = self._write(
                    SpanWriting(raw, len(span.links), clues.get(span.span_id)),
                    held.creating.get(span.span_id, ""),
                    source,
                    now,
                )
                changed = changed or written is not raw
                spans.append(written)
            else:
                spans.append(raw)
        return group._replace(spans=frame(spans)) if changed else group

    def _write(self, writing: SpanWriting, audit_id: str, source: SpanSource, now: int) -> bytes:
        self._mark_links(writing, now)
        if writing.is_root:
            self._number(writing)
        elif writing.clues is not None:
            self._join(writing, writing.clues, source, now)
        if audit_id:
            self._join_owner(writing, audit_id)
        for link in self._memory.claim(writing.key):
            writing.add(link)
        return writing.result()

    # Links that a span brought along

    def _own_links(self, writing: SpanWriting) -> Mapping[int, tuple[bytes, str]]:
        """Return target ("" when it can't be one) and type of the links a span has by itself, by their position."""
        found: dict[int, tuple[bytes, str]] = {}
        attempt = self._memory.attempt(writing.key) if writing.is_root else None
        origin = writing.is_root
        for position, link in enumerate(writing.links):
            if links.is_back_link(link):
                continue
            target = links.key_of(link)
            kind = link.attributes.get(links.TYPE)
            if not isinstance(kind, str):
                other = self._memory.attempt(target)
                if attempt and other and other.pod_uid == attempt.pod_uid:
                    kind = links.PREVIOUS_ATTEMPT if other.number < attempt.number else links.NEXT_ATTEMPT
                elif origin:
                    # What made the Pod is the first that its scheduling links to (KEP-5915: one annotation).
                    kind, origin = links.CREATION, False
                else:
                    kind = links.kind_by_bearer(writing.view, writing.clues, to_attempt=other is not None)
            found[position] = (target, kind)
        return found

    def _mark_links(self, writing: SpanWriting, now: int) -> None:
        for position, (target, kind) in self._own_links(writing).items():
            fate = self._memory.fate_of(target) if target else None
            evidence: dict[str, Value] = {links.EVIDENCE: links.stated(kind).value}
            writing.marks[position] = {**links.typed(kind), **links.outcome(fate), **evidence}
            self._count(kind, fate.kept if fate else None)
            if target and self._memory.withdraw(target, writing.key):
                link = links.answer(writing.links[position], writing.key, kind)
                if fate is None or self._room.holds(target):
                    self._memory.wait(target, writing.key, link, now)
                elif fate.kept:
                    self._tell(target, link, fate.at or writing.view.start)

    # Links that follow from what is remembered

    def _number(self, writing: SpanWriting) -> None:
        known = self._memory.attempt(writing.key)
        if known:
            writing.number = known.number
        elif attempt := read_attempt(writing.view):
            writing.number = attempt.declared
        if writing.number:
            self._numbered.add(1, *self._labels)
        chain = self._memory.chain(known.pod_uid) if known else None
        if known is None or chain is None:
            return
        known.left = True
        if known.number == 1:
            self._join_creation(writing, known)
        previous = chain.before(known)
        if previous:
            self._link(writing, previous, links.PREVIOUS_ATTEMPT, PodEvidence.POD_UID, inferred=False)
            if previous.left and not previous.told_next:
                previous.told_next = True
                self._tell(previous.key, self._next(known), previous.end)
        following = chain.after(known)
        if following and following.fate.kept:
            known.told_next = True
            writing.add(self._next(following))

    def _next(self, attempt: NumberedAttempt) -> Link:
        return links.backward(attempt.key, links.PREVIOUS_ATTEMPT, PodEvidence.POD_UID)

    def _join(self, writing: SpanWriting, clues: PodClues, source: SpanSource, now: int) -> None:
        """Link a span about a Pod with the attempt that bound it, or that it was made in."""
        code = status_code_of(writing.view) if clues.server else None
        deletes = writing.view.attributes.get(_METHOD) == "DELETE" and (code or 0) < _REFUSED
        kind = kind_of(clues, is_delete=deletes)
        found = self._joiner.join(clues, kind, source, now) if kind else None
        if found is None:
            return
        attempt = found.attempt
        if attempt is None:
            self._memory.await_binding(found.uid, EarlyJoin(writing.key, kind, found.evidence, clues.start), now)
            if not (kind == links.SCHEDULING and self._join_creation_of_unscheduled(writing, found.uid)):
                self._joiner.missed(kind, NOT_BOUND)
            return
        if kind == links.BINDING and (code or 0) < _REFUSED:
            attempt.binding = RequestSpan(writing.key, clues.start, clues.end, found.evidence)
        if any(link.trace_id == attempt.trace_id for link in writing.links):
            return
        self._link(writing, attempt, kind, found.evidence, inferred=True)
        if kind in TOLD and not (kind in TOLD_ONCE and kind in attempt.told):
            attempt.told |= {kind}
            answered: dict[str, Value] = {} if code is None else {links.CODE: code}
            self._tell_attempt(attempt, writing.key, kind, found.evidence, now, answered)

    def settle(self, attempt: NumberedAttempt, now: int) -> None:
        """Join what came before the attempt that bound its Pod: what has left is told by an amendment."""
        for early in self._memory.bound(attempt.pod_uid) if attempt.succeeded else ():
            link = links.forward(attempt.key, early.kind, attempt.fate, early.evidence, inferred=True)
            self._tell(early.span, link, early.at)
            self._count(early.kind, attempt.fate.kept)
            if early.kind not in TOLD_ONCE or early.kind not in attempt.told:
                attempt.told |= {early.kind}
                self._tell_attempt(attempt, early.span, early.kind, early.evidence, now)

    def _join_creation(self, writing: SpanWriting, attempt: NumberedAttempt) -> None:
        contexts = frozenset(links.key_of(link) for link in writing.links)
        creation, evidence = self._memory.directory.creation_of(attempt.pod_uid, contexts)
        if creation is None:
            possible = self._memory.directory.creations_possible(attempt.pod_uid)
            self._joiner.missed(links.CREATION, AMBIGUOUS if possible else NO_REQUEST)
            return
        if any(link.trace_id == creation.span[:16] for link in writing.links):
            return
        fate = self._memory.fate_of(creation.span)
        writing.add(links.forward(creation.span, links.CREATION, fate, evidence, inferred=True))
        self._count(links.CREATION, fate.kept if fate else None)
        if fate and fate.kept:
            back = links.backward(attempt.key, links.CREATION, evidence, inferred=True)
            self._tell(creation.span, back, creation.start.time)

    def _join_creation_of_unscheduled(self, writing: SpanWriting, uid: str) -> bool:
        """Link the sync of a Pod of which no attempt is known, static or bound directly, with the Pod's creation."""
        if self._memory.chain(uid) is not None:
            return False
        contexts = frozenset(links.key_of(link) for link in writing.links)
        creation, evidence = self._memory.directory.creation_of(uid, contexts)
        if creation is None or any(link.trace_id == creation.span[:16] for link in writing.links):
            return False
        fate = self._memory.fate_of(creation.span)
        writing.add(links.forward(creation.span, links.CREATION, fate, evidence, inferred=True))
        self._count(links.CREATION, fate.kept if fate else None)
        return True

    def _join_owner(self, writing: SpanWriting, audit_id: str) -> None:
        creation = self._memory.creations.of(audit_id)
        owners = self._memory.owners.owners(creation) if creation else []
        if len(owners) > 1:
            self._joiner.missed(links.OWNER, AMBIGUOUS)
        elif owners and owners[0].span[:16] != writing.key[:16]:
            fate = self._memory.fate_of(owners[0].span)
            writing.add(links.forward(owners[0].span, links.OWNER, fate, PodEvidence.NAME, inferred=True))
            self._count(links.OWNER, fate.kept if fate else None)

    def _link(
        self, writing: SpanWriting, attempt: NumberedAttempt, kind: str, evidence: PodEvidence, *, inferred: bool
    ) -> None:
        writing.add(links.forward(attempt.key, kind, attempt.fate, evidence, inferred=inferred))
        self._count(kind, attempt.fate.kept)

    def _tell_attempt(
        self,
        attempt: NumberedAttempt,
        source: bytes,
        kind: str,
        evidence: PodEvidence,
        now: int,
        told: Mapping[str, Value] = _NOTHING,
    ) -> None:
        link = links.backward(source, kind, evidence, inferred=True)
        link = link._replace(attributes={**link.attributes, **told})
        if attempt.left:
            self._tell(attempt.key, link, attempt.end)
        elif attempt.fate.kept:
            self._memory.wait(attempt.key, source, link, now)

    def _tell(self, target: bytes, link: Link, at: int) -> None:
        if self._amend:
            self.amendments.append(Amendment(target, link, at))

    def _count(self, kind: str, kept: bool | None) -> None:
        became = "unknown" if kept is None else "kept" if kept else "dropped"
        known_kind = kind if kind in links.TYPES else "other"
        self._links.add(1, *self._labels, known_kind, became)
