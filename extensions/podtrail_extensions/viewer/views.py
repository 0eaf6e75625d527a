"""What the pages show, as view models: the templates and the JSON API render the same ones."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podtrail.story import (
    POD_STATES,
    AttemptStory,
    Explanation,
    Library,
    LifeMoment,
    LinkStory,
    PodState,
    PodStory,
    SpanFate,
    TraceStory,
    answer,
    lifetime,
    plain,
    sentence,
    where_in_a_line,
    why_node,
)

PAGE_ROWS = 100
MAX_QUERY = 256
_TO_LOOK_AT = "to look at"
_SLOW = "slow"
STATES_ASKED = (_TO_LOOK_AT, "all", _SLOW, *POD_STATES)
"""What the list of Pods can be asked for."""
_LEAST_FOLDED = 5
_SHOWN_ATTEMPTS = 50


class PodRow(NamedTuple):
    """One Pod in the list."""

    key: str
    namespace: str
    name: str
    state: PodState
    slow: bool
    since_unix_nano: int | None
    until_unix_nano: int | None
    tries: int
    headline: str
    last_try_unix_nano: int | None

    @classmethod
    def of(cls, pod: PodStory) -> "PodRow":
        """Return a Pod's row."""
        return cls(*[getattr(pod, name) for name in cls._fields])

    def waiting(self, now: int) -> int | None:
        """Return for how many nanoseconds it has waited, at `now`."""
        if self.since_unix_nano is None:
            return None
        return max(0, (now if self.until_unix_nano is None else self.until_unix_nano) - self.since_unix_nano)


_SORTS: dict[str, Callable[[PodStory], object]] = {
    "pod": lambda pod: (pod.namespace, pod.name, pod.key),
    "waiting": lambda pod: (POD_STATES[pod.state].settled, pod.since_unix_nano or 0),
    "tries": lambda pod: -pod.tries,
    "last": lambda pod: -(pod.last_try_unix_nano or 0),
}
SORTS = ("state", *_SORTS)


class PodFilter(NamedTuple):
    """Which Pods are asked for, as in the query of the page's address."""

    q: str = ""
    """Part of namespace/name or uid."""
    state: str = _TO_LOOK_AT
    """A state, `slow`, `to look at` (not scheduled, slow, or long not ready) or `all`."""
    sort: str = "state"
    after: int = 0
    """How many Pods to pass over."""

    def finds(self, pod: PodStory) -> bool:
        """Return whether a Pod is searched for, whatever its state."""
        return self.q.lower() in f"{pod.namespace}/{pod.name} {pod.uid}".lower()

    def admits(self, pod: PodStory, now: int) -> bool:
        """Return whether a Pod is in a state that is asked for."""
        match self.state:
            case "all":
                return True
            case "to look at":
                return not POD_STATES[pod.state].settled or pod.slow or pod.unready(now)
            case "slow":
                return pod.slow
            case state:
                return pod.state == state


@dataclass(frozen=True, slots=True)
class PodsView:
    """The list of Pods."""

    filter: PodFilter
    pods: tuple[PodRow, ...]
    matching: int
    """Pods that the filter finds, in the state asked for."""
    elsewhere: tuple[PodRow, ...]
    """Pods that it finds in other states, at most `PAGE_ROWS`; none where nothing is searched for."""
    matching_elsewhere: int
    total: int
    tallies: dict[str, int]
    """All Pods by state, `slow` among them; only those that there are."""
    forgotten: int
    changes: int
    """Grows with every change: another number, another page."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """An attempt in a Pod's table."""

    attempt: AttemptStory
    held: bool
    """Its spans are here."""
    fate: str
    """What was decided, and what became of its spans, in words."""
    same: bool
    """Its answer is that of the attempt before it."""


@dataclass(frozen=True, slots=True)
class FoldedAttempts:
    """Attempts in a row that stand in one line, by number."""

    first: int
    last: int
    words: str
    """Why."""


@dataclass(frozen=True, slots=True)
class PodView:
    """A Pod's story with what the store has of it."""

    pod: PodStory
    sentence: str
    explanation: Explanation
    """What `podtrail why` says."""
    attempts: tuple[AttemptRow, ...]
    outline: tuple[AttemptRow | FoldedAttempts, ...]
    """The attempts, with the middle of each long run of equal answers folded, and a line for those not listed."""
    namesakes: tuple[PodRow, ...]
    """Other Pods of the same name: it was created anew."""
    trace: TraceStory | None
    """Of the latest attempt whose spans are held."""
    trace_attempt: int | None
    chosen: AttemptStory | None
    """The attempt that found a node."""
    why_node: str
    """Why it took that node; "" where no span tells."""
    lifetime: tuple[LifeMoment, ...]
    """From its creation to its end, where its node tells of it."""
    spent: str
    """Where the time until its first container ran went; "" where that is not told."""
    life_trace_id: bytes
    """Of the trace of its life, where that is held; b"" where it is not."""


@dataclass(frozen=True, slots=True)
class TracePage:
    """A trace, with the Pod whose attempt it records, or whose life it is."""

    trace: TraceStory
    pod: PodRow | None
    attempt: AttemptStory | None
    why_node: str
    links_here: tuple[LinkStory, ...]
    """Those of the span that is told in full."""


class PodViews:
    """Puts together what is asked for from stories and store."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._stories = library.stories
        self._store = library.store

    def pods(self, wanted: PodFilter, now: int) -> PodsView:
        """Return the Pods of a filter at `now`, at most `PAGE_ROWS`."""
        everyone = self._stories.pods()
        matching = [pod for pod in everyone if wanted.finds(pod)]
        key = _SORTS.get(wanted.sort)
        if key is not None:
            matching.sort(key=key)  # type: ignore[arg-type] # each gives values of one type
        found = [pod for pod in matching if wanted.admits(pod, now)]
        elsewhere = [pod for pod in matching if not wanted.admits(pod, now)] if wanted.q else []
        tallies = Counter[str](pod.state for pod in everyone)
        tallies[_SLOW] = sum(pod.slow for pod in everyone)
        return PodsView(
            filter=wanted,
            pods=tuple(_row(pod, now) for pod in found[wanted.after : wanted.after + PAGE_ROWS]),
            matching=len(found),
            elsewhere=tuple(map(PodRow.of, elsewhere[:PAGE_ROWS])),
            matching_elsewhere=len(elsewhere),
            total=len(everyone),
            tallies={state: count for state, count in tallies.items() if count},
            forgotten=self._stories.tallies.forgotten_pods,
            changes=self._stories.changes,
        )

    def pod(self, key: str, now: int, *, live: bool = True) -> PodView | None:
        """Return a Pod's story by its key; None for an unknown one. `live`: `now` is the present."""
        pod = self._library.pod(key)
        if pod is None:
            return None
        held = next((one for one in reversed(pod.attempts) if self._store.get(one.trace_id)), None)
        others = [other for other in self._stories.named(pod.name, pod.namespace) if other.key != key]
        attempts = self._attempts(pod)
        created, deleted = self._library.requests_of(pod)
        chosen = next((one for one in reversed(pod.attempts) if one.result == "Success"), None)
        return PodView(
            pod=pod,
            sentence=sentence(pod, now),
            explanation=self._library.why_pod(pod, now, live=live) or Explanation(()),
            attempts=attempts,
            outline=_outline(attempts, pod.tries - pod.same + 1),
            namesakes=tuple(PodRow.of(other) for other in others),
            trace=self._library.trace(held.trace_id) if held else None,
            trace_attempt=held.number if held else None,
            chosen=chosen,
            why_node=_why_node(pod, chosen),
            lifetime=tuple(lifetime(pod, created, deleted)) if pod.on_node else (),
            spent=" ".join(map(plain, where_in_a_line(pod, created))),
            life_trace_id=pod.life_trace_id if self._store.get(pod.life_trace_id) else b"",
        )

    def trace(self, trace_id: bytes, span_id: bytes = b"") -> TracePage | None:
        """Return a trace with `span_id` told in full; None when nothing of it is held."""
        trace = self._library.trace(trace_id, span_id)
        if trace is None:
            return None
        here = tuple(link for link in trace.links if link.here == trace.chosen.span_id)
        known = self._stories.attempt(trace_id)
        if known is None:
            lived = self._stories.life(trace_id)
            return TracePage(trace, PodRow.of(lived) if lived else None, None, "", here)
        pod, attempt = known
        return TracePage(trace, PodRow.of(pod), attempt, _why_node(pod, attempt), here)

    def fate(self, trace_id: bytes) -> SpanFate:
        """Return what became of a trace."""
        return self._library.fate(trace_id)

    def _attempts(self, pod: PodStory) -> tuple[AttemptRow, ...]:
        rows: list[AttemptRow] = []
        for attempt in _shown(pod.attempts):
            held = bool(self._store.get(attempt.trace_id))
            same = bool(rows) and answer(attempt) == answer(rows[-1].attempt)
            rows.append(AttemptRow(attempt, held, self._library.decision(attempt), same))
        return tuple(rows)


def _row(pod: PodStory, now: int) -> PodRow:
    row = PodRow.of(pod)
    return row._replace(headline=f"not ready; {row.headline}".removesuffix("; ")) if pod.unready(now) else row


def _why_node(pod: PodStory, attempt: AttemptStory | None) -> str:
    return " ".join(map(plain, why_node(pod, attempt))) if attempt and attempt.result == "Success" else ""


def _outline(rows: Sequence[AttemptRow], same_from: int) -> tuple[AttemptRow | FoldedAttempts, ...]:
    """Fold the middle of each long run of attempts with the same answer, and what is missing between them.

    `same_from`: from this attempt on all gave the answer of the last.
    """
    outline: list[AttemptRow | FoldedAttempts] = []
    first = 0
    for end in range(1, len(rows) + 1):
        missing = _missing(rows[end - 1], rows[end], same_from) if end < len(rows) else None
        if end < len(rows) and rows[end].same and missing is None:
            continue
        run = rows[first:end]
        if len(run) >= _LEAST_FOLDED:
            fold = FoldedAttempts(run[1].attempt.number or 0, run[-2].attempt.number or 0, "same answer")
            outline += (run[0], fold, run[-1])
        else:
            outline += run
        if missing is not None:
            outline.append(missing)
        first = end
    return tuple(outline)


def _missing(row: AttemptRow, following: AttemptRow, same_from: int) -> FoldedAttempts | None:
    """Return the attempts between two rows."""
    one, other = row.attempt.number, following.attempt.number
    if one is None or other is None or other <= one + 1:
        return None
    return FoldedAttempts(one + 1, other - 1, "same answer, not listed" if one + 1 >= same_from else "not listed")


def _shown(attempts: Sequence[AttemptStory]) -> Sequence[AttemptStory]:
    if len(attempts) <= _SHOWN_ATTEMPTS:
        return attempts
    return [attempts[0], *attempts[-_SHOWN_ATTEMPTS + 1 :]]
