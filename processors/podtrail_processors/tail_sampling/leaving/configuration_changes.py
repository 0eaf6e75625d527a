"""Traces of operators that may have changed the scheduler's configuration, until a kept attempt was made with it.

Such a trace concerns no Pod, so policies about Pods drop it, minutes or hours before the attempt that links to it is
decided. The latest are remembered for a day, in a bounded number of bytes.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from podtrail.config.types import HOUR
from podtrail.otlp import Group, raw_span_reader
from podtrail.otlp.byte_search import key_value, link_targets, spans_with
from podtrail.otlp.native import has
from podtrail.recent import Recent, first
from podtrail_processors.tail_sampling.judging.judge import Judgement

POLICY: Final = "configuration"
"""The name in a verdict in place of a policy."""
_LINK: Final = key_value("podtrail.link.type", "configuration")
_CONSUMER: Final = b"\x30\x05"
"""The field `kind` of a span of kind CONSUMER, as the calls of operators are (KEP-5915)."""
_CONSUMER_KIND: Final = 5
_MOST_TRACES: Final = 512
_MOST_BYTES: Final = 2 << 20
"""Of spans, resources and scopes."""
_GROUP_BYTES: Final = 200
_LARGEST: Final = 64 << 10
_MOST_WANTED: Final = 4_096
_MOST_LINKS: Final = 8
_TTL: Final = 24 * HOUR
_kinds = raw_span_reader(("kind",))
_links = raw_span_reader(("links",))


class RememberedChange(NamedTuple):
    """A trace that was not kept, and may have changed the configuration."""

    groups: tuple[Group, ...]
    arrived: int
    spans: int
    size: int


class SavedChanges(NamedTuple):
    """What is remembered, in a saved state."""

    changes: tuple[tuple[bytes, int, RememberedChange], ...]
    wanted: tuple[tuple[bytes, int, bytes], ...]


class ConfigurationChanges:
    """Remembers operators' traces, and returns the one that made a kept attempt's configuration."""

    def __init__(self) -> None:
        self._changes: Recent[bytes, RememberedChange] = Recent(_MOST_TRACES, _TTL, self._forgotten)
        self._bytes = 0
        self._wanted: Recent[bytes, bytes] = Recent(_MOST_WANTED, _TTL, lambda *_: None)
        """Traces that kept attempts link to and that were not decided then, with the attempt's trace."""

    def __len__(self) -> int:
        return len(self._changes)

    def wants(self, trace_id: bytes) -> bytes:
        """Return the kept attempt that links to a trace as the maker of its configuration; b"" for none."""
        return self._wanted.get(trace_id) or b""

    def remember(
        self, trace_id: bytes, raw: bytes, groups: Sequence[Group], arrived: int, spans: int, now: int
    ) -> None:
        """Remember a trace that is not kept at `now`, if it is an operator's; `raw` are its spans."""
        if len(raw) > _LARGEST or not has(raw, _CONSUMER) or all(span.kind != _CONSUMER_KIND for span in _kinds(raw)):
            return
        headers = {header for group in groups for header in group[:2]}
        size = len(raw) + sum(map(len, headers)) + _GROUP_BYTES * len(groups)
        if size > _LARGEST:
            return
        self.forget(trace_id)
        self._bytes += size
        self._changes.put(trace_id, RememberedChange(tuple(groups), arrived, spans, size), now)
        while self._bytes > _MOST_BYTES:
            self._changes.forget_oldest()

    def _forgotten(self, _trace_id: bytes, change: RememberedChange, _reason: str) -> None:
        self._bytes -= change.size

    def forget(self, trace_id: bytes) -> None:
        """Forget a trace: it was kept after all."""
        if (known := self._changes.pop(trace_id)) is not None:
            self._bytes -= known.size

    def deadline(self) -> int | None:
        """Return when the first trace is too old; None while none is remembered."""
        return first((self._changes.deadline(), self._wanted.deadline()))

    def expire(self, now: int) -> None:
        """Forget traces that are too old."""
        self._changes.expire(now)
        self._wanted.expire(now)

    def made(self, trace_id: bytes, groups: Iterable[Group], now: int) -> Iterator[tuple[bytes, RememberedChange]]:
        """Yield the remembered traces that a kept one links to as the change that made its configuration."""
        for group in groups:
            for target in _targets(trace_id, group.spans) if has(group.spans, _LINK) else ():
                known = self._changes.get(target)
                if known is None:
                    self._wanted.put(target, trace_id, now)
                else:
                    self.forget(target)
                    yield target, known

    def saved(self) -> "SavedChanges":
        """Return what is remembered."""
        return SavedChanges(self._changes.saved(), self._wanted.saved())

    def restore(self, saved: "SavedChanges") -> None:
        """Remember what was saved."""
        self._bytes = sum(known.size for _, _, known in saved.changes)
        self._changes.restore(saved.changes)
        self._wanted.restore(saved.wanted)

    def take_over(self, other: "ConfigurationChanges") -> None:
        """Copy the traces of another instance."""
        for trace_id, known, seen in other._changes.dated():
            self.forget(trace_id)
            self._bytes += known.size
            self._changes.put(trace_id, known, seen)
        self._wanted.move_in(other._wanted)


def _targets(trace_id: bytes, spans: bytes) -> Iterable[bytes]:
    found = _links(b"".join(spans_with(_LINK, spans, trace_id, _MOST_LINKS)))
    links = [link for span in found for link in span.links if _LINK in link]
    return dict.fromkeys(link_targets(links, _MOST_LINKS))


def configuring(judgement: Judgement, attempt: bytes) -> Judgement:
    """Return the judgement on a trace that made the configuration of a kept attempt."""
    reason = f"it changed the configuration of attempt {attempt.hex()}"
    return judgement._replace(decision="sampled", policy=POLICY, reason=reason)
