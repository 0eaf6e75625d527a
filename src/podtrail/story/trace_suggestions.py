"""What a search for traces may go on with: keys, and the values that the traces held have."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

from podtrail.story.library import Library
from podtrail.story.suggestions import MOST_SUGGESTED, SearchSuggestion, completed, frequent, term
from podtrail.story.trace_search import TRACE_LANGUAGE, TRACE_STATES, in_state, latest_traces

_LOOKED_AT: Final = 1_000
"""Traces, the latest: what they have is suggested."""


class TraceSuggestions:
    """Suggests searches for traces; gathered anew where other spans are held."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._gathered_of: tuple[int, int] | None = None
        self._known: dict[str, list[tuple[str, int]]] = {}

    def options(self) -> tuple[SearchSuggestion, ...]:
        """Return what a field may offer before anything is typed, a few of each key."""
        return tuple(one for key in ("state", "name", "service") for one in islice(self._values(key), MOST_SUGGESTED))

    def complete(self, text: str) -> tuple[SearchSuggestion, ...]:
        """Return how a text may go on, by its last term."""
        return completed(text, TRACE_LANGUAGE, self._values)

    def _values(self, key: str) -> Iterator[SearchSuggestion]:
        self._gather()
        return (term(key, value, count, "trace") for value, count in self._known.get(key, ()))

    def _gather(self) -> None:
        held = self._library.store
        if self._gathered_of == (len(held), held.spans):
            return
        self._gathered_of = len(held), held.spans
        looked_at = latest_traces(self._library, _LOOKED_AT)
        states = [(state, sum(in_state(one, state) for one in looked_at)) for state in TRACE_STATES]
        self._known = {
            "state": states,
            "name": frequent(Counter(one.outline.name for one in looked_at)),
            "service": frequent(Counter(one.outline.service for one in looked_at)),
        }
