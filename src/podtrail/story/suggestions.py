"""What a search may go on with: keys, and the values that the Pods held have."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from podtrail.story.pod import PodStory
from podtrail.story.pod_search import POD_LANGUAGE, STATES_ASKED
from podtrail.story.search import RANGE_KEYS, Language, quoted
from podtrail.story.stories import Stories
from podtrail.story.words import several

_LOOKED_AT: Final = 1_000
"""Pods, the urgent first: what they have is suggested."""
_VALUES: Final = 40
"""Of each key, the most frequent."""
MOST_SUGGESTED: Final = 20
_LONGEST: Final = 120
_LAST: Final = re.compile(r'(?:^|(?<=\s))(-?)(?:([A-Za-z]+):)?("?)((?:(?<=")[^"]*)|[^\s"]*)$')


Gathered = dict[str, list[tuple[str, int]]]
"""Values with how many have them, by key."""


class SearchSuggestion(NamedTuple):
    """How a search may go on."""

    text: str
    """The whole search."""
    meaning: str


def completed(
    text: str, language: Language[Any], values: Callable[[str], Iterable[SearchSuggestion]]
) -> tuple[SearchSuggestion, ...]:
    """Return how a search may go on, by its last term.

    Args:
        text: what was typed.
        language: what it is written in.
        values: returns the terms that a key may be in.
    """
    last = _LAST.search(text)
    if last is None:
        return ()
    before, (minus, key, _, part) = text[: last.start()], last.groups()
    keys = {name: one.meaning for name, one in language.keys.items()} | RANGE_KEYS
    offered = (SearchSuggestion(f"{name}:", meaning) for name, meaning in keys.items())
    found = values(key.lower()) if key else offered
    fitting = (one for one in found if part.lower() in one.text.partition(":")[2 if key else 0].lower())
    return tuple(SearchSuggestion(before + minus + one.text, one.meaning) for one in islice(fitting, MOST_SUGGESTED))


def term(key: str, value: str, count: int, what: str) -> SearchSuggestion:
    """Return a term that so many of what is held fit; `what`: one of these."""
    return SearchSuggestion(f"{key}:{quoted(value)}", several(count, what) if count else "")


def frequent(values: Counter[str]) -> list[tuple[str, int]]:
    """Return the values that are worth to be suggested, with how often they are."""
    return [(value, count) for value, count in values.most_common(_VALUES) if value and len(value) <= _LONGEST]


class PodSuggestions:
    """Suggests searches for Pods; gathered anew where stories have changed."""

    def __init__(self, stories: Stories) -> None:
        self._stories = stories
        self._gathered_at = -1
        self._known: Gathered = {}

    def options(self) -> tuple[SearchSuggestion, ...]:
        """Return what a field may offer before anything is typed, a few of each key."""
        keys = ("state", "ns", "plugin", "reason", "node")
        return tuple(one for key in keys for one in islice(self._values(key), MOST_SUGGESTED))

    def complete(self, text: str) -> tuple[SearchSuggestion, ...]:
        """Return how a text may go on, by its last term."""
        return completed(text, POD_LANGUAGE, self._values)

    def _values(self, key: str) -> Iterator[SearchSuggestion]:
        self._gather()
        for value, count in self._known.get(key, ()):
            yield term(key, value, count, "Pod")

    def stale(self) -> list[PodStory]:
        """Return the Pods that are to be looked at anew, for `gather`, in a thread perhaps; none without a change."""
        if self._gathered_at == self._stories.changes:
            return []
        self._gathered_at = self._stories.changes
        return self._stories.pods()[:_LOOKED_AT]

    def note(self, known: Gathered) -> None:
        """Suggest from now on what was gathered."""
        self._known = known

    def _gather(self) -> None:
        if pods := self.stale():
            self.note(gather(pods))


def gather(pods: Iterable[PodStory]) -> Gathered:
    """Return what Pods can be searched for by."""
    counts: dict[str, Counter[str]] = {key: Counter() for key in POD_LANGUAGE.keys}
    for pod in pods:
        for key, value in _facts(pod):
            counts[key][value] += 1
    known = {key: frequent(values) for key, values in counts.items()}
    return known | {"state": [(state, counts["state"][state]) for state in STATES_ASKED]}


def _facts(pod: PodStory) -> Iterable[tuple[str, str]]:
    """Yield what can be searched for that a Pod has, each once."""
    yield "ns", pod.namespace
    yield "node", pod.node
    yield "cluster", pod.cluster
    yield "state", pod.state
    yield "profile", pod.last.profile if pod.last else ""
    yield from (("plugin", plugin) for plugin in sorted(pod.plugins))
    if pod.explained:
        yield from (("reason", reason) for reason in dict.fromkeys(no.reason for no in pod.explained.why.rejections))
