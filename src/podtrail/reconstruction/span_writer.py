"""Spans of one attempt, each at its place in the tree, with what was concluded about it."""

from collections.abc import Mapping, Sequence
from typing import Final

from podtrail.otlp import Event, Link, Status, Value, encode_span
from podtrail.reconstruction.identifiers import span_id

ROOT: Final = "root"
"""The place of the root; that of a span is its parent's with a name behind a slash."""
Inferred = Mapping[str, str]
"""What was concluded, to how."""
_NOTHING: Final[Mapping[str, str]] = {}


class SpanWriter:
    """Writes spans of one trace."""

    def __init__(self, trace: bytes, profile: str) -> None:
        self._trace = trace
        self._profile = profile

    def write(
        self,
        place: str,
        name: str,
        times: tuple[int, int],
        attributes: Mapping[str, Value],
        *,
        inferred: Inferred = _NOTHING,
        error: str = "",
        events: Sequence[Event] = (),
        links: Sequence[Link] = (),
    ) -> bytes:
        """Return a span; `times` are its start and end, `error` makes it one that failed."""
        start, end = times
        parent, _, _ = place.rpartition("/")
        return encode_span(
            trace_id=self._trace,
            span_id=span_id(self._trace, place),
            parent_span_id=span_id(self._trace, parent) if parent else b"",
            name=name,
            start=start,
            end=max(start, end),
            status=Status(2, error) if error else None,
            attributes={**attributes, "podtrail.inferred": _told_how(inferred)} if inferred else attributes,
            events=events,
            links=links,
        )

    def of_phase(self, phase: str) -> dict[str, Value]:
        """Return the attributes that every phase has."""
        told: dict[str, Value] = {"scheduler.phase": phase}
        if self._profile:
            told["scheduler.profile"] = self._profile
        return told


def _told_how(inferred: Inferred) -> list[Value]:
    """Return what was concluded, each way of concluding once: `start, end: as its phase …`."""
    of_way: dict[str, list[str]] = {}
    for what, how in inferred.items():
        of_way.setdefault(how, []).append(what)
    return [f"{', '.join(whats)}: {how}" for how, whats in of_way.items()]
