"""What the pages show, as view models: the templates and the JSON API render the same ones."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from podtrail.story import (
    ANY_STATE,
    NOTHING,
    POD_STATES,
    SLOW_STATE,
    TO_LOOK_AT,
    AttemptStory,
    Explanation,
    HeardBetween,
    Library,
    LifeMoment,
    LinkStory,
    PodState,
    PodStory,
    PodWay,
    SearchError,
    SpanFate,
    TraceStory,
    answer,
    begun,
    in_state,
    of_plugin,
    plain,
    read_pod_search,
    sentence,
    shell_word,
    tried_during,
    where_in_a_line,
    why_node,
)

PAGE_ROWS = 100
MAX_QUERY = 256
_MANY = 2_000
"""Pods from which on a thread looks through them."""
_LEAST_FOLDED = 5
_SHOWN_ATTEMPTS = 50
_SAME = "same answer"
_SAME_LEFT_OUT = "same answer, not listed"


class PodRow(NamedTuple):
    """One Pod in the list."""

    key: str
    cluster: str
    several_clusters: bool
    """Pods of several clusters are held, so that a name alone may be that of several."""
    namespace: str
    name: str
    state: PodState
    slow: bool
    since_unix_nano: int | None
    until_unix_nano: int | None
    tries: int
    headline: str
    reason: str
    """What the plugin said that refused most nodes, where no node fits; "" elsewhere."""
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
    "pod": lambda pod: (pod.namespace, pod.name, pod.cluster, pod.key),
    "cluster": lambda pod: (pod.cluster, pod.namespace, pod.name, pod.key),
    "waiting": lambda pod: (POD_STATES[pod.state].settled, pod.since_unix_nano or 0),
    "tries": lambda pod: -pod.tries,
    "last": lambda pod: -(pod.last_try_unix_nano or 0),
}
SORTS = ("state", *_SORTS)


class PodFilter(NamedTuple):
    """Which Pods are asked for, as in the query of the page's address."""

    q: str = ""
    """A search: words that are part of namespace/name or uid, or of the cluster's name where there are several, and
    `key:value`.
    """
    state: str = TO_LOOK_AT
    """A state, `slow`, `to look at` (not scheduled, slow, or long not ready) or `all`."""
    sort: str = "state"
    cluster: str = ""
    """Its name, where Pods of several are held; "" for all."""
    plugin: str = ""
    """One that refused it or took its time, by its whole name; "" for any."""
    during: HeardBetween = HeardBetween()
    """When an attempt of it began."""
    after: int = 0
    """How many Pods to pass over."""

    def admits(self, pod: PodStory) -> bool:
        """Return whether a Pod is of the cluster, the plugin and the time asked for."""
        return (
            (not (self.cluster and pod.several_clusters) or pod.cluster == self.cluster)
            and (not self.plugin or any(of_plugin([pod], self.plugin)))
            and (self.during == HeardBetween() or tried_during(pod, *self.during))
        )


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
    clusters: tuple[str, ...]
    """Of all Pods, where there are several; () for one alone."""
    forgotten: int
    changes: int
    """Grows with every change: another number, another page."""
    range: HeardBetween
    """What the search asks for by `since:` and `until:`."""
    problem: str
    """Why the search can't be understood, and what would be right; no Pod is found then."""


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
    of_other_clusters: tuple[PodRow, ...]
    """Pods of the same name in other clusters."""
    question: str
    """What to type behind `podtrail why pod` to ask for it."""
    trace: TraceStory | None
    """Of the latest attempt whose spans are held."""
    trace_attempt: int | None
    chosen: AttemptStory | None
    """The attempt that found a node."""
    why_node: str
    """Why it took that node; "" where no span tells."""
    lifetime: tuple[LifeMoment, ...]
    """From its creation to its end, where its node tells of it."""
    way: PodWay | None
    """From its creation to now, on one axis."""
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
        return self._found(self._stories.pods(), self._stories.changes, wanted, now)

    async def asked(self, wanted: PodFilter, now: int) -> PodsView:
        """Return the same; a thread looks through many Pods."""
        everyone, changes = self._stories.pods(), self._stories.changes
        if len(everyone) <= _MANY:
            return self._found(everyone, changes, wanted, now)
        return await asyncio.to_thread(self._found, everyone, changes, wanted, now)

    def _found(self, everyone: Sequence[PodStory], changes: int, wanted: PodFilter, now: int) -> PodsView:
        problem = ""
        try:
            search = read_pod_search(wanted.q, now)
        except SearchError as error:
            search, problem = NOTHING, str(error)
        state = ANY_STATE if search.asks_for("state") else wanted.state
        matching = [pod for pod in everyone if search.finds(pod) and wanted.admits(pod)]
        key = _SORTS.get(wanted.sort)
        if key is not None:
            matching.sort(key=key)  # type: ignore[arg-type] # each gives values of one type
        found = [pod for pod in matching if in_state(pod, state, now)]
        elsewhere = [pod for pod in matching if not in_state(pod, state, now)] if wanted.q else []
        tallies = Counter[str](pod.state for pod in everyone)
        tallies[SLOW_STATE] = sum(pod.slow for pod in everyone)
        return PodsView(
            filter=wanted,
            pods=tuple(_row(pod, now) for pod in found[wanted.after : wanted.after + PAGE_ROWS]),
            matching=len(found),
            elsewhere=tuple(map(PodRow.of, elsewhere[:PAGE_ROWS])),
            matching_elsewhere=len(elsewhere),
            total=len(everyone),
            tallies={state: count for state, count in tallies.items() if count},
            clusters=_clusters(everyone) if self._stories.several_clusters else (),
            forgotten=self._stories.tallies.forgotten_pods,
            changes=changes,
            range=search.range,
            problem=problem,
        )

    def pod(self, asked: str, now: int, *, live: bool = True) -> PodView | None:
        """Return a Pod's story by its key, or the latest's of NAMESPACE/NAME; None for an unknown one.

        `live`: `now` is the present.
        """
        pod = self._library.meant(asked)
        if pod is None:
            return None
        key = pod.key
        held = next((one for one in reversed(pod.attempts) if self._store.get(one.trace_id)), None)
        others = self._stories.namesakes(pod)
        same = {key, *(other.key for other in others)}
        abroad = [other for other in self._stories.named(pod.name, pod.namespace) if other.key not in same]
        attempts = self._attempts(pod)
        created, _ = self._library.requests_of(pod)
        chosen = next((one for one in reversed(pod.attempts) if one.result == "Success"), None)
        return PodView(
            pod=pod,
            sentence=sentence(pod, now),
            explanation=self._library.why_pod(pod, now, live=live) or Explanation(()),
            attempts=attempts,
            outline=_outline(attempts, pod.tries - pod.same + 1),
            namesakes=tuple(map(PodRow.of, others)),
            of_other_clusters=tuple(map(PodRow.of, sorted(abroad, key=lambda other: (other.cluster, begun(other))))),
            question=_question(pod),
            trace=self._library.trace(held.trace_id) if held else None,
            trace_attempt=held.number if held else None,
            chosen=chosen,
            why_node=_why_node(pod, chosen),
            way=self._library.way_of(pod, now),
            lifetime=self._library.life_of(pod) if pod.on_node else (),
            spent=" ".join(map(plain, where_in_a_line(pod, created))),
            life_trace_id=pod.life_trace_id if self._store.get(pod.life_trace_id) else b"",
        )

    def trace(self, trace_id: bytes, span_id: bytes = b"") -> TracePage | None:
        """Return a trace with `span_id` told in full; None when nothing of it is held."""
        trace = self._library.trace(trace_id, span_id)
        return self.about(trace) if trace else None

    def about(self, trace: TraceStory) -> TracePage:
        """Return a trace with the Pod that it is about."""
        here = tuple(link for link in trace.links if link.here == trace.chosen.span_id)
        known = self._stories.attempt(trace.trace_id)
        if known is None:
            lived = self._stories.life(trace.trace_id)
            return TracePage(trace, PodRow.of(lived) if lived else None, None, "", here)
        pod, attempt = known
        return TracePage(trace, PodRow.of(pod), attempt, _why_node(pod, attempt), here)

    def fate(self, trace_id: bytes, span_id: bytes = b"") -> SpanFate:
        """Return what became of a trace, and of one span in it."""
        return self._library.fate(trace_id, span_id)

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


def _clusters(pods: Sequence[PodStory]) -> tuple[str, ...]:
    return tuple(sorted({pod.cluster for pod in pods} - {""}))


def _question(pod: PodStory) -> str:
    """Return the words after `podtrail why pod` by which a Pod is asked for."""
    if not pod.name or (pod.several_clusters and not pod.cluster):
        return shell_word(pod.key)
    of = f"--cluster {shell_word(pod.cluster)} " if pod.several_clusters else ""
    return f"{of}{shell_word(f'{pod.namespace}/{pod.name}')}"


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
        left_out = outline[-1] if outline else None
        if isinstance(left_out, FoldedAttempts) and left_out.words == _SAME_LEFT_OUT and run[0].same and run[1:]:
            outline[-1:] = FoldedAttempts(left_out.first, run[-2].attempt.number or 0, _SAME), run[-1]
        elif len(run) >= _LEAST_FOLDED:
            fold = FoldedAttempts(run[1].attempt.number or 0, run[-2].attempt.number or 0, _SAME)
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
    return FoldedAttempts(one + 1, other - 1, _SAME_LEFT_OUT if one + 1 >= same_from else "not listed")


def _shown(attempts: Sequence[AttemptStory]) -> Sequence[AttemptStory]:
    if len(attempts) <= _SHOWN_ATTEMPTS:
        return attempts
    return [attempts[0], *attempts[-_SHOWN_ATTEMPTS + 1 :]]
