"""What is written on a span when it leaves: its number, its links, and the marks on those that it brought along."""

from collections.abc import Mapping
from typing import Final

from podtrail.component import Context
from podtrail.otlp import (
    ROOT_NAME,
    Group,
    Link,
    SpanView,
    Value,
    annotate_links,
    append_attributes,
    append_links,
    frame,
    read_attempt,
    span_reader,
    split,
)
from podtrail_processors.link_stitching import links
from podtrail_processors.link_stitching.amendment import Amendment
from podtrail_processors.link_stitching.memory import StitchingMemory
from podtrail_processors.link_stitching.neighbours import binding_of, status_code_of, status_write_of, synced_pod
from podtrail_processors.link_stitching.numbering import NumberedAttempt
from podtrail_processors.link_stitching.prefilter import ATTEMPT_MARK, is_neighbour
from podtrail_processors.link_stitching.reorder_window import ReorderWindow
from podtrail_processors.pod_identity import CLOCK_SLACK

NUMBER: Final = "podtrail.attempt.number"

_NOTHING: Final[Mapping[str, Value]] = {}
_read = span_reader(("span_id", "links"))


class _Writing:
    """One span while it is being written on."""

    def __init__(self, raw: bytes, link_count: int) -> None:
        self.view = SpanView(raw)
        self.key = links.key_of_span(self.view)
        self.links = self.view.links if link_count <= links.MOST_LINKS else ()
        self.marks: dict[int, dict[str, Value]] = {}
        self.added: list[Link] = []
        self.number = 0
        self.is_root = self.view.name == ROOT_NAME

    def add(self, link: Link) -> None:
        """Add a link; one to the same span that is there already is marked instead."""
        for position, present in enumerate(self.links):
            if present.trace_id == link.trace_id and present.span_id == link.span_id:
                if links.is_back_link(present) or not links.is_back_link(link):
                    self.marks[position] = {**self.marks.get(position, {}), **link.attributes}
                return
        self.added.append(link)

    def result(self) -> bytes:
        """Return the bytes of the span with all that was written."""
        raw = self.view.raw
        if self.marks:
            raw = annotate_links(raw, self.marks)
        if self.number:
            raw = append_attributes(raw, {NUMBER: self.number})
        return append_links(raw, self.added) if self.added else raw


class Stitcher:
    """Writes on the spans of groups that leave, and gathers amendments for those that have left."""

    def __init__(self, memory: StitchingMemory, room: ReorderWindow, context: Context, *, amend: bool) -> None:
        self._memory = memory
        self._room = room
        self._amend = amend
        self._amendments: list[Amendment] = []
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
        taken, self._amendments = self._amendments, []
        return taken

    def announce(self, group: Group, now: int) -> None:
        """Note what the spans of a group that comes in link to, so that these learn of it should they leave first."""
        for raw, span in zip(split(group.spans), _read(group.spans), strict=True):
            if span.links:
                writing = _Writing(raw, len(span.links))
                for position, (target, kind) in self._own_links(writing).items():
                    if target and target != writing.key and kind not in links.UNANSWERED:
                        answer = links.answer(writing.links[position], writing.key, kind)
                        self._memory.wait(target, writing.key, answer, now)

    def stitch(self, group: Group, now: int) -> Group:
        """Return a group as it leaves."""
        spans: list[bytes] = []
        changed = False
        for raw, span in zip(split(group.spans), _read(group.spans), strict=True):
            waits = self._memory.waits_for(group.trace_id + span.span_id)
            if waits or span.links or ATTEMPT_MARK in raw or is_neighbour(raw):
                written = self._write(_Writing(raw, len(span.links)), now)
                changed = changed or written is not raw
                spans.append(written)
            else:
                spans.append(raw)
        return group._replace(spans=frame(spans)) if changed else group

    def _write(self, writing: _Writing, now: int) -> bytes:
        self._mark_links(writing, now)
        if writing.is_root:
            self._number(writing)
        else:
            self._join_sync(writing, now)
            self._join_request(writing, now)
        for link in self._memory.claim(writing.key):
            writing.add(link)
        return writing.result()

    # Links that a span brought along

    def _own_links(self, writing: _Writing) -> Mapping[int, tuple[bytes, str]]:
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
                    kind = links.kind_by_bearer(writing.view)
            found[position] = (target, kind)
        return found

    def _mark_links(self, writing: _Writing, now: int) -> None:
        for position, (target, kind) in self._own_links(writing).items():
            fate = self._memory.fate_of(target) if target else None
            writing.marks[position] = {**links.typed(kind), **links.outcome(fate)}
            self._count(kind, fate.kept if fate else None)
            if target and self._memory.withdraw(target, writing.key):
                link = links.answer(writing.links[position], writing.key, kind)
                if fate is None or self._room.holds(target):
                    self._memory.wait(target, writing.key, link, now)
                elif fate.kept:
                    self._tell(target, link, fate.at or writing.view.start)

    # Links that follow from what is remembered

    def _number(self, writing: _Writing) -> None:
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
            self._join_creation(writing, chain.place, known)
        previous = chain.before(known)
        if previous:
            self._link(writing, previous, links.PREVIOUS_ATTEMPT, inferred=False)
            if previous.left and not previous.told_next:
                previous.told_next = True
                self._tell(previous.key, links.backward(known.key, links.PREVIOUS_ATTEMPT), previous.end)
        following = chain.after(known)
        if following and following.fate.kept:
            known.told_next = True
            writing.add(links.backward(following.key, links.PREVIOUS_ATTEMPT))

    def _join_sync(self, writing: _Writing, now: int) -> None:
        uid = synced_pod(writing.view)
        chain = self._memory.chain(uid) if uid else None
        attempt = chain.success_before(writing.view.start) if chain else None
        if attempt is None:
            return
        self._link(writing, attempt, links.SCHEDULING, inferred=True)
        if not attempt.told_sync:
            # The first is what started the Pod; the kubelet goes on for as long as it runs.
            attempt.told_sync = True
            self._tell_attempt(attempt, writing.key, links.SCHEDULING, now)

    def _join_creation(self, writing: _Writing, place: str, attempt: NumberedAttempt) -> None:
        creation = self._memory.creation_before(place, attempt.start + CLOCK_SLACK)
        if creation is None or any(link.trace_id == creation.key[:16] for link in writing.links):
            return
        fate = self._memory.fate_of(creation.key)
        writing.add(links.forward(creation.key, links.CREATION, fate, inferred=True))
        self._count(links.CREATION, fate.kept if fate else None)
        if fate and fate.kept:
            self._tell(creation.key, links.backward(attempt.key, links.CREATION, inferred=True), creation.at)

    def _join_request(self, writing: _Writing, now: int) -> None:
        """Link a scheduler's request about a Pod with the attempt that it was made in."""
        start = writing.view.start
        if binding := binding_of(writing.view):
            kind, chain = links.BINDING, self._memory.chain_at(binding.place, binding.at)
            attempt = chain.running_at(start + CLOCK_SLACK) if chain else None
        elif status := status_write_of(writing.view):
            kind, chain = links.STATUS, self._memory.chain_at(status.place, status.at)
            attempt = chain.failing_at(start, CLOCK_SLACK) if chain else None
        else:
            return
        if attempt is None or start > attempt.end + CLOCK_SLACK:
            return
        if any(link.trace_id == attempt.trace_id for link in writing.links):
            return
        code = status_code_of(writing.view)
        answered: dict[str, Value] = {} if code is None else {links.CODE: code}
        self._link(writing, attempt, kind, inferred=True)
        self._tell_attempt(attempt, writing.key, kind, now, answered)

    def _link(self, writing: _Writing, attempt: NumberedAttempt, kind: str, *, inferred: bool) -> None:
        writing.add(links.forward(attempt.key, kind, attempt.fate, inferred=inferred))
        self._count(kind, attempt.fate.kept)

    def _tell_attempt(
        self, attempt: NumberedAttempt, source: bytes, kind: str, now: int, told: Mapping[str, Value] = _NOTHING
    ) -> None:
        link = links.backward(source, kind, inferred=True)
        link = link._replace(attributes={**link.attributes, **told})
        if attempt.left:
            self._tell(attempt.key, link, attempt.end)
        elif attempt.fate.kept:
            self._memory.wait(attempt.key, source, link, now)

    def _tell(self, target: bytes, link: Link, at: int) -> None:
        if self._amend:
            self._amendments.append(Amendment(target, link, at))

    def _count(self, kind: str, kept: bool | None) -> None:
        became = "unknown" if kept is None else "kept" if kept else "dropped"
        known_kind = kind if kind in links.TYPES else "other"
        self._links.add(1, *self._labels, known_kind, became)
