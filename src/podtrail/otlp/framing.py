"""Spans side by side in one `bytes`: parting them and putting them together."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from podtrail.otlp.lite import SCOPE_SPANS, lite_type

_SPANS = cast("Any", lite_type(SCOPE_SPANS, {"spans": None}))


def split(spans: bytes) -> Sequence[bytes]:
    """Return the spans of a group's `spans`, each without its frame."""
    return list(_SPANS.FromString(spans).spans)


def frame(spans: Iterable[bytes]) -> bytes:
    """Return spans as they stand in a ScopeSpans message: what `split` parts again."""
    framed: bytes = _SPANS(spans=spans).SerializeToString()
    return framed
