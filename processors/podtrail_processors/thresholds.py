"""Probability sampling in trace states: the Collector's gate `usetracestate`.

What spans say of their randomness decides for `probabilistic`, and kept spans tell with what probability they were.
"""

from collections.abc import Iterable
from typing import NamedTuple

from podtrail.otlp import Group, frame, raw_span_reader, set_trace_state, split
from podtrail.otlp.remembering import remembering
from podtrail_processors.probability import ALWAYS, randomness_of, read_sampling_state

MARK = b"ot="
"""Without these bytes among them, spans tell of no sampling."""
_read = raw_span_reader({"trace_state"})


def randomness_in(trace_states: Iterable[bytes], trace_id: bytes) -> int | None:
    """Return a trace's randomness: the first explicit one, else its id's; None when no span tells of any sampling."""
    sampled = False
    for trace_state in trace_states:
        randomness, threshold = _said(trace_state)
        if randomness is not None:
            return randomness
        sampled = sampled or threshold is not None
    return randomness_of(trace_id) if sampled else None


class Before(NamedTuple):
    """What a trace brings along for a decision by chance."""

    randomness: int
    threshold: int
    """At which it was sampled before; `ALWAYS` when nobody says so."""


def sampled_before(trace_states: Iterable[bytes], trace_id: bytes) -> Before:
    """Return a trace's randomness, the first explicit one or else its id's, and the lowest threshold of its spans.

    A threshold that the randomness does not reach can't be the one that it was sampled at, and does not count.
    """
    given, lowest = None, None
    for trace_state in trace_states:
        randomness, threshold = _said(trace_state)
        given = randomness if given is None else given
        if threshold is not None and (lowest is None or threshold < lowest):
            lowest = threshold
    randomness = randomness_of(trace_id) if given is None else given
    return Before(randomness, ALWAYS if lowest is None or lowest > randomness else lowest)


@remembering(1024, 512)
def _said(trace_state: bytes) -> tuple[int | None, int | None]:
    state = read_sampling_state(trace_state.decode("utf-8", "replace"))
    return (state.randomness, state.threshold) if state.sound else (None, None)


class Weighed(NamedTuple):
    """Spans that tell their threshold."""

    group: Group
    unparseable: int
    """How many could not be told it, for their trace state breaks the rules."""


def weighed(group: Group, threshold: int) -> Weighed:
    """Write a threshold into the trace states of spans, but for those that have a higher one."""
    spans: list[bytes] = []
    unparseable = 0
    for raw, span in zip(split(group.spans), _read(group.spans), strict=True):
        told = _told(span.trace_state, threshold)
        if told is None:
            unparseable += 1
        spans.append(set_trace_state(raw, told) if told else raw)
    return Weighed(group._replace(spans=frame(spans)), unparseable)


@remembering(1024, 512)
def _told(trace_state: bytes, threshold: int) -> str | None:
    """Return a trace state that tells a threshold; "" when it tells a higher one, None when it breaks the rules."""
    state = read_sampling_state(trace_state.decode("utf-8", "replace"))
    if not state.sound:
        return None
    return state.text() if state.update(threshold) else ""
