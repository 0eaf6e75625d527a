"""The traces that are held, and what they can be searched for by."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from podtrail.config.problem import did_you_mean
from podtrail.otlp.decision_words import fits_decision, read_decision
from podtrail.story.library import Library
from podtrail.story.pod_facts import PodFacts
from podtrail.story.search import (
    Key,
    Language,
    Search,
    SearchError,
    Test,
    compared,
    length_of_time,
    named,
    read_search,
)
from podtrail.story.trace_outline import TraceOutline
from podtrail.story.words import clip, visible

TraceSort = Literal["time", "duration"]
TRACE_SORTS: Final[tuple[TraceSort, ...]] = ("time", "duration")
_FAILED: Final = "error"
TRACE_STATES: Final = (_FAILED, "ok", "success", "unschedulable")


class HeldOutline(NamedTuple):
    """A trace that is held, with the Pod whose attempt it records."""

    trace_id: bytes
    outline: TraceOutline
    pod: PodFacts | None
    result: str
    """Of the attempt; "" for another trace."""
    decision: str
    """`sampled`, `not_sampled`, `dropped`; "" where no sampler decided."""
    policy: str
    """Which decided; "" where none did."""


class TraceRow(NamedTuple):
    """One trace in the list."""

    trace_id: bytes
    name: str
    service: str
    start_unix_nano: int
    duration: int
    """Nanoseconds."""
    spans: int
    errors: int
    """Spans that ended in an error."""
    decision: str
    """`sampled`, `not_sampled`, `dropped`; "" where no sampler decided."""
    policy: str
    pod_key: str
    """Of the Pod whose attempt it records, or whose life it is; "" for neither."""
    namespace: str
    pod_name: str
    result: str
    """Of the attempt; "" for another trace."""


@dataclass(frozen=True, slots=True)
class FoundTraces:
    """Traces that a search finds, in the order asked for."""

    traces: tuple[HeldOutline, ...]
    held: int


def latest_traces(library: Library, most: int) -> list[HeldOutline]:
    """Return so many of the traces that are held, those that came latest."""
    return with_pods(library, library.store.latest_outlines(most).items())


def with_pods(library: Library, outlines: Iterable[tuple[bytes, TraceOutline]]) -> list[HeldOutline]:
    """Return traces with the Pods whose attempts they record."""
    result, decided = library.stories.owner_and_result, library.stories.decided
    found: list[HeldOutline] = []
    for trace_id, outline in outlines:
        verdict = decided(trace_id)
        decision, policy = (verdict.decision, verdict.policy) if verdict else ("", "")
        found.append(HeldOutline(trace_id, outline, *result(trace_id), decision, policy))
    return found


def find_traces(held: list[HeldOutline], search: Search[HeldOutline], sort: TraceSort) -> FoundTraces:
    """Return the traces of a search, the latest or the longest first; pure, for a thread where many are held."""
    found = [one for one in held if search.finds(one)]
    if sort == "duration":
        found.sort(key=lambda one: -one.outline.duration)
    else:
        found.sort(key=lambda one: -one.outline.start_unix_nano)
    return FoundTraces(tuple(found), len(held))


def trace_row(library: Library, held: HeldOutline) -> TraceRow:
    """Return a trace as it is listed."""
    lived = library.stories.life(held.trace_id) if held.pod is None else None
    pod = held.pod or lived
    outline = held.outline
    return TraceRow(
        trace_id=held.trace_id,
        name=outline.name,
        service=outline.service,
        start_unix_nano=outline.start_unix_nano,
        duration=outline.duration,
        spans=outline.spans,
        errors=outline.errors,
        decision=held.decision,
        policy=held.policy,
        pod_key=pod.key if pod else "",
        namespace=pod.namespace if pod else "",
        pod_name=pod.name if pod else "",
        result=held.result,
    )


def read_trace_search(text: str, now: int) -> Search[HeldOutline]:
    """Return the search for traces that a text asks for.

    Raises:
        SearchError: It is none.
    """
    return read_search(text, TRACE_LANGUAGE, now)


def _word(word: str) -> Test[HeldOutline]:
    def test(held: HeldOutline) -> bool:
        pod = f"{held.pod.namespace}/{held.pod.name} {held.pod.uid}" if held.pod else ""
        text = f"{held.outline.name} {held.outline.service} {pod}".lower()
        return word in text or held.trace_id.hex().startswith(word)

    return test


def _state(value: str, _now: int) -> Test[HeldOutline]:
    states = [one.strip().lower() for one in value.split(",") if one.strip()]
    for state in states:
        if state not in TRACE_STATES:
            hint = did_you_mean(state, TRACE_STATES, "states")
            raise SearchError(f"There is no state {visible(clip(state, 60))}. {hint[0].upper()}{hint[1:]}.")
    return lambda held: any(in_state(held, state) for state in states)


def in_state(held: HeldOutline, state: str) -> bool:
    """Return whether a trace is in one of `TRACE_STATES`."""
    if state == _FAILED:
        return held.outline.errors > 0 or held.result.lower() == _FAILED
    return held.outline.errors == 0 if state == "ok" else held.result.lower() == state


def _decision(value: str, _now: int) -> Test[HeldOutline]:
    try:
        wanted = read_decision(value)
    except ValueError as error:
        raise SearchError(str(error)[0].upper() + str(error)[1:]) from None
    return lambda held: bool(held.decision) and fits_decision(held.decision, wanted)


def _slower(value: str, _now: int) -> Test[HeldOutline]:
    least = length_of_time("slower", value)
    return lambda held: held.outline.duration >= least


def _spans(value: str, _now: int) -> Test[HeldOutline]:
    fits = compared("spans", value)
    return lambda held: fits(held.outline.spans)


def _lasted(held: HeldOutline) -> Iterator[tuple[int, int]]:
    yield held.outline.start_unix_nano, held.outline.end_unix_nano


_KEYS: Final[dict[str, Key[HeldOutline]]] = {
    "name": Key("of the root: name:SchedulePod, name:POST*", named(lambda held: held.outline.name)),
    "service": Key("of the root: service:kubelet", named(lambda held: held.outline.service)),
    "state": Key("a span in it failed, or an attempt's result: state:error, state:unschedulable", _state),
    "decision": Key("of the sampler: decision:kept, decision:not_sampled", _decision),
    "policy": Key("the policy that decided: policy:failed", named(lambda held: held.policy)),
    "slower": Key("took at least so long: slower:1s", _slower),
    "longer": Key("the same: longer:1s", _slower),
    "spans": Key("how many it has: spans:>100", _spans),
}
TRACE_LANGUAGE: Final = Language(_KEYS, _word, _lasted)
"""What traces are searched by."""
