"""The last traces, as they came, bounded in bytes; the oldest go first."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from podtrail.lru import Lru
from podtrail.otlp import Group, SpanView, raw_span_reader, split
from podtrail.otlp.reader import SpanFields
from podtrail.story.link import BackLink, is_back_link, link_type
from podtrail.story.trace_outline import NOTHING_OF_IT, TraceOutline

_read = raw_span_reader(("parent_span_id", "name", "start_time_unix_nano", "end_time_unix_nano", "status", "links"))
_GROUP_SIZE = 500
_OUTLINE_SIZE = 400
_LINK_SIZE = 300
_MAX_EVICTED = 20_000
_MAX_BACK_LINKS = 200
_SHARE_OF_ONE = 4
"""No trace may fill more than a quarter of the store."""


@dataclass(slots=True)
class _HeldTrace:
    groups: list[Group] = field(default_factory=list)
    targets: set[bytes] = field(default_factory=set)
    """Traces that its spans link to."""
    size: int = 0
    outline: TraceOutline = NOTHING_OF_IT


class TraceStore:
    """Traces by id, with the links that point at them from others held."""

    def __init__(self, max_bytes: int) -> None:
        """Hold at most about `max_bytes`."""
        self._max_bytes = max_bytes
        self._held: OrderedDict[bytes, _HeldTrace] = OrderedDict()
        self._back: dict[bytes, list[BackLink]] = {}
        self._evicted: Lru[bytes, None] = Lru(_MAX_EVICTED)
        self.size = 0
        """About how many bytes are held."""
        self.received = 0
        """Spans taken in since the start."""
        self.spans = 0
        """Spans held."""
        self.oversized = 0
        """Spans not held because their trace grew too large."""

    def __len__(self) -> int:
        return len(self._held)

    def put(self, groups: Iterable[Group]) -> None:
        """Hold groups, letting go of the oldest traces for them."""
        for group in groups:
            self._put(group)
        self._make_room(self._max_bytes)

    def shrink(self) -> None:
        """Forget the older half."""
        self._make_room(self.size // 2)

    def get(self, trace_id: bytes) -> Sequence[Group]:
        """Return what is held of a trace; nothing for an unknown one."""
        held = self._held.get(trace_id)
        return held.groups if held else ()

    def beginning(self, digits: bytes) -> Iterator[bytes]:
        """Yield the traces held whose id begins so."""
        return (trace_id for trace_id in self._held if trace_id.startswith(digits))

    def latest(self) -> Iterator[Sequence[Group]]:
        """Yield what is held, the latest trace first."""
        return (held.groups for held in reversed(self._held.values()))

    def outlines(self) -> dict[bytes, TraceOutline]:
        """Return what is known of each trace in a few words, the one whose first spans came latest at the end."""
        return {trace_id: held.outline for trace_id, held in self._held.items()}

    def latest_outlines(self, most: int) -> dict[bytes, TraceOutline]:
        """Return what is known of so many traces, those whose first spans came latest."""
        return {trace_id: self._held[trace_id].outline for trace_id in islice(reversed(self._held), most)}

    def arriving(self, trace_id: bytes) -> Sequence[BackLink]:
        """Return the links that point at a trace from others held."""
        return self._back.get(trace_id, ())

    def was_evicted(self, trace_id: bytes) -> bool:
        """Return whether a trace was held once, lately."""
        return trace_id in self._evicted

    def find(self, trace_id: bytes, span_id: bytes) -> SpanView | None:
        """Return one span."""
        for group in self.get(trace_id):
            for raw in split(group.spans) if span_id in group.spans else ():
                if span_id in raw and (span := SpanView(raw)).span_id == span_id:
                    return span
        return None

    def _put(self, group: Group) -> None:
        size = len(group.resource) + len(group.scope) + len(group.spans) + _GROUP_SIZE
        held = self._held.get(group.trace_id)
        self.received += group.span_count
        if size + (held.size if held else 0) > self._max_bytes // _SHARE_OF_ONE:
            self.oversized += group.span_count
            return
        if held is None:
            held = self._held[group.trace_id] = _HeldTrace()
            size += _OUTLINE_SIZE
            self._evicted.pop(group.trace_id, None)
        held.groups.append(group)
        fields = _read(group.spans)
        held.outline = held.outline.grown(fields, group)
        size += self._note_links(group, held, fields)
        held.size += size
        self.size += size
        self.spans += group.span_count

    def _note_links(self, group: Group, held: _HeldTrace, fields: Sequence[SpanFields]) -> int:
        noted = 0
        linking = [at for at, span in enumerate(fields) if span.links]
        spans = split(group.spans) if linking else ()
        for at in linking:
            span = SpanView(spans[at])
            for link in span.links:
                known = self._back.get(link.trace_id, [])
                if link.trace_id == group.trace_id or is_back_link(link) or len(known) >= _MAX_BACK_LINKS:
                    continue
                back = BackLink(link.span_id, group.trace_id, span.span_id, link_type(link))
                self._back[link.trace_id] = [*known, back]
                held.targets.add(link.trace_id)
                noted += _LINK_SIZE
        return noted

    def _make_room(self, most_bytes: int) -> None:
        while self.size > most_bytes and self._held:
            self._evict()

    def _evict(self) -> None:
        trace_id, held = self._held.popitem(last=False)
        self.size -= held.size
        self.spans -= sum(group.span_count for group in held.groups)
        for target in held.targets:
            left = [link for link in self._back[target] if link.trace_id != trace_id]
            if left:
                self._back[target] = left
            else:
                del self._back[target]
        self._evicted.put(trace_id, None)
