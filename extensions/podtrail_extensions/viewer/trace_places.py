"""Where a trace is told of, by its id or by how that begins."""

from typing import Literal, NamedTuple

from aiohttp import web

from podtrail.story import Library
from podtrail.story.short_ids import TRACE_DIGITS, is_beginning, traces_beginning
from podtrail_extensions.viewer.bad_query import NothingHeld

_MOST = 20


class TraceNotHeld(NamedTuple):
    """A trace that was decided about and whose spans are not held."""

    trace_id: bytes
    became: str
    """What became of it, in words."""


def place_of_trace(library: Library, trace_id: bytes) -> str:
    """Return where a trace is told of: of one that was not kept the decision tells why."""
    decided = not library.store.get(trace_id) and library.decisions.find(trace_id)
    return f"/{'decisions' if decided else 'traces'}/{trace_id.hex()}"


def place_of_beginning(library: Library, text: str) -> str:
    """Return where the one trace is told of whose id begins so, or the list of several; "" for none."""
    found = traces_beginning(library, text) if is_beginning(text) else ()
    if len(found) == 1:
        return place_of_trace(library, found[0])
    return f"/traces?q={text.lower()}" if found else ""


def lead_on(library: Library, text: str, asked: Literal["decisions", "traces"]) -> None:
    """Lead from an address of `asked` with how an id begins to the one trace, or the list of several.

    A whole id, and what is none, stay for the page to answer.

    Raises:
        HTTPSeeOther: there is another address for it.
        NothingHeld: no trace begins so.
    """
    if len(text) >= TRACE_DIGITS or not is_beginning(text):
        return
    found = traces_beginning(library, text)
    if not found:
        raise NothingHeld(f"No trace that is held begins with {text.lower()}.")
    if len(found) == 1 and asked == "decisions" and library.decisions.find(found[0]):
        raise web.HTTPSeeOther(f"/decisions/{found[0].hex()}")
    raise web.HTTPSeeOther(place_of_beginning(library, text))


def not_held(library: Library, text: str) -> tuple[TraceNotHeld, ...]:
    """Return the traces whose id begins so, or is this, and whose spans are not held; `_MOST` at most."""
    found = traces_beginning(library, text) if is_beginning(text) else ()
    without = [one for one in found if not library.store.get(one)][:_MOST]
    return tuple(TraceNotHeld(one, library.became(one)) for one in without)


def why_not_held(library: Library, trace_id: bytes) -> dict[str, object]:
    """Return what `no_trace.html` tells of a trace that is not held."""
    return {"trace_id": trace_id, "fate": library.fate(trace_id), "decided": bool(library.decisions.find(trace_id))}
