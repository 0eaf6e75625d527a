"""podtrail's own spans (`service::telemetry::traces`): made where something is done, if anybody wants them."""

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from podtrail.otlp import Group

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

OWN_SCOPE: Final = "podtrail/own"
"""The scope of podtrail's own spans; what carries it is not traced again, wherever it comes by."""
_MARK: Final = OWN_SCOPE.encode()


def own_span(
    tracer: "Tracer | None", name: str, *, inside: bool = False, **attributes: str | int
) -> "AbstractContextManager[Span | None]":
    """Return a context in which a span is under way; an exception ends it as an error.

    Args:
        tracer: None where nobody wants any spans.
        name: the span's.
        inside: of the span that is under way; otherwise a trace begins, for a task has the context of whoever happened
            to start it.
        attributes: of the span.
    """
    if tracer is None:
        return nullcontext()
    from opentelemetry.context import Context

    return tracer.start_as_current_span(name, None if inside else Context(), attributes=attributes)


def are_own(groups: Iterable[Group]) -> bool:
    """Say whether there are own spans of any podtrail among these."""
    return any(_MARK in group.scope for group in groups)
