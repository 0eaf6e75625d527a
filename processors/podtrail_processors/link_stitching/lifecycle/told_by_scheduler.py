"""Parts that a scheduling attempt tells: itself, with who said no on how many nodes, and the binding."""

from collections.abc import Iterable
from typing import Final

from podtrail.otlp import Attempt, Rejection, Value, read_message, read_rejections, split
from podtrail.pod_identity import PodEvidence
from podtrail_processors.link_stitching.lifecycle.part import ATTEMPT, BOUND, BY_ATTEMPT, BY_CALLER, Part

_MOST_REASONS: Final = 16
_LONGEST: Final = 500


def parts_of(attempt: Attempt, spans: bytes) -> Iterable[Part]:
    """Yield the parts that an attempt tells; `spans` are those that came along of a trace that is its own."""
    original, evidence = attempt.trace_id + attempt.span_id, PodEvidence.POD_UID.value
    attributes: dict[str, Value] = {}
    if attempt.result:
        attributes["scheduler.result"] = attempt.result
    if attempt.profile:
        attributes["scheduler.profile"] = attempt.profile
    if attempt.queue_wait is not None:
        attributes["scheduler.queue_wait_ms"] = attempt.queue_wait // 1_000_000
    if attempt.failed and (said := said_no(attempt, spans)):
        attributes["podtrail.attempt.rejections"] = said
    error = (attempt.message[:_LONGEST] or attempt.result) if attempt.failed else ""
    yield Part(ATTEMPT, original, attempt.start, attempt.end, original, evidence, BY_CALLER, attributes, error)
    if attempt.result == "Success":
        yield Part(BOUND, b"", attempt.end, attempt.end, original, evidence, BY_ATTEMPT)


def said_no(attempt: Attempt, spans: bytes) -> list[Value]:
    """Return who said no on how many nodes and why, one text each."""
    told: list[Rejection] = []
    for raw in split(spans):
        told += read_rejections(raw)
    told = told or list(read_message(attempt.message).rejections)
    return [_in_words(one) for one in told[:_MOST_REASONS]]


def _in_words(one: Rejection) -> str:
    nodes = "" if one.nodes is None else f": {one.nodes} node{'' if one.nodes == 1 else 's'}"
    reason = f" ({one.reason})" if one.reason else ""
    return f"{one.plugin or 'not said by whom'}{nodes}{reason}"[:_LONGEST]
