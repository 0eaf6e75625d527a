"""Trace context in what a handler makes: objects, and the Pod templates in them (KEP-5915).

An annotation in a Pod template is a change of the template: written anew at every look, it would roll a Deployment out
for ever. So it is written where an object is created or changes, and what is otherwise the same keeps what it carries.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opentelemetry.trace import SpanContext

from podtrail_instrumentation.annotations import PropagationCounters, inject_span_context

_TEMPLATES = (("spec", "template"), ("spec", "jobTemplate"), ("spec", "jobTemplate", "spec", "template"))
_DEEPEST = 64
"""Levels of an object that are compared; deeper is taken as changed."""


def carry(
    wanted: Any, context: SpanContext, live: Any, prefix: str, counters: PropagationCounters, *, changes: bool
) -> bool:
    """Writes `context` into the annotations of `wanted` and its Pod templates; says whether it is something known.

    What carries an annotation already keeps it. Where `live`, the object as it is in the cluster, has all that is
    wanted of the object or of one of its templates, or nothing was to change, the annotations there are taken over.
    """
    places = list(_annotated(wanted, make=True))
    if not places:
        return False
    kept = dict(_annotated(live, make=False)) if live is not None else {}
    old, new = _plain(live), _plain(wanted)
    for path, annotations in places:
        before = {key: value for key, value in kept.get(path, {}).items() if key in _keys(prefix)}
        if live is not None and (not changes or _has(_at(old, path), _at(new, path))):
            for key, value in before.items():
                annotations.setdefault(key, value)
        elif not any(annotations.get(key) for key in _keys(prefix)):
            added = inject_span_context({}, context, prefix, counters)
            annotations.update({key: value for key, value in added.items() if value})
    return True


def _keys(prefix: str) -> tuple[str, str]:
    return prefix + "traceparent", prefix + "tracestate"


def _annotated(given: Any, *, make: bool) -> Iterator[tuple[tuple[str, ...], dict[str, str]]]:
    """The annotations of an object and of its templates, by the path of what has them; made where asked for."""
    given = _of_client(given)
    for path in ((), *_TEMPLATES):
        place = given
        for key in path:
            place = place.get(key) if isinstance(place, dict) else getattr(place, _snake(key), None)
        annotations = _of_dictionary(place, make) if isinstance(place, dict) else _of_model(place, make)
        if isinstance(annotations, dict):
            yield path, annotations


def _of_dictionary(place: dict[str, Any], make: bool) -> Any:
    metadata = place.get("metadata")
    if metadata is None and make:
        metadata = place["metadata"] = {}
    if not isinstance(metadata, dict):
        return None
    if metadata.get("annotations") is None and make:
        metadata["annotations"] = {}
    return metadata.get("annotations")


def _of_model(place: Any, make: bool) -> Any:
    metadata = getattr(place, "metadata", None)
    if make and getattr(metadata, "annotations", metadata) is None and metadata is not None:
        metadata.annotations = {}
    return getattr(metadata, "annotations", None)


def _of_client(given: Any) -> Any:
    """The dictionary of an object of pykube's; anything else as it is."""
    held = getattr(given, "obj", None)
    return held if isinstance(held, dict) else given


def _snake(key: str) -> str:
    return "job_template" if key == "jobTemplate" else key


def _plain(given: Any) -> Any:
    given = _of_client(given)
    return given.to_dict() if hasattr(given, "to_dict") else given


def _at(given: Any, path: Sequence[str]) -> Any:
    """What a plain object has at a path; None where it ends before."""
    for key in path:
        given = given.get(key, given.get(_snake(key))) if isinstance(given, Mapping) else None
    return given


def _has(live: Any, wanted: Any, depth: int = 0) -> bool:
    """Whether all that is wanted is so; the API server fills in more, and None is nothing wanted."""
    if depth > _DEEPEST:
        return False
    if isinstance(wanted, Mapping):
        if not isinstance(live, Mapping):
            return not any(value is not None for value in wanted.values())
        return all(value is None or _has(live.get(key), value, depth + 1) for key, value in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        if not isinstance(live, Sequence) or isinstance(live, str) or len(live) != len(wanted):
            return live is None and not wanted
        return all(_has(one, other, depth + 1) for one, other in zip(live, wanted, strict=True))
    return bool(live == wanted)
