"""One span while it is being written on."""

from typing import Final

from podtrail.otlp import ROOT_NAME, Link, SpanView, Value, annotate_links, append_attributes, append_links
from podtrail.pod_identity import PodClues
from podtrail_processors.link_stitching import links

NUMBER: Final = "podtrail.attempt.number"


class SpanWriting:
    """What a span has, and what it is to get."""

    def __init__(self, raw: bytes, link_count: int, clues: PodClues | None) -> None:
        self.view = SpanView(raw)
        self.clues = clues
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
