"""The list of all traces that are held, those that are no attempts among them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from aiohttp import web

from podtrail.pages.environment import FullText
from podtrail.story import NOTHING, HeardBetween, Library, SearchError, to_json
from podtrail.story.trace_search import (
    TRACE_SORTS,
    HeldOutline,
    TraceRow,
    TraceSort,
    find_traces,
    read_trace_search,
    trace_row,
    with_pods,
)
from podtrail.story.trace_suggestions import TraceSuggestions
from podtrail_extensions.viewer.bad_query import BadQuery, passed_over
from podtrail_extensions.viewer.drawn import PageWriter, in_chunks
from podtrail_extensions.viewer.trace_places import TraceNotHeld, not_held
from podtrail_extensions.viewer.views import MAX_QUERY, PAGE_ROWS

_MANY = 2_000
"""Traces from which on a thread looks for them."""


class TraceFilter(NamedTuple):
    """Which traces are asked for, as in the query of the page's address."""

    q: str = ""
    sort: TraceSort = "time"
    after: int = 0


@dataclass(frozen=True, slots=True)
class TracesView:
    """The list of traces."""

    filter: TraceFilter
    traces: tuple[TraceRow, ...]
    matching: int
    total: int
    range: HeardBetween
    """What the search asks for by `since:` and `until:`."""
    problem: str
    """Why the search can't be understood, and what would be right; no trace is found then."""
    not_held: tuple[TraceNotHeld, ...] = ()
    """Traces that a search by an id, or by how it begins, means and whose spans are not held."""


class TraceList:
    """Answers for the addresses of the list of traces."""

    def __init__(
        self,
        library: Library,
        clock: Callable[[], int],
        page: PageWriter,
        answer: Callable[[object, int], web.Response],
    ) -> None:
        """Make it; `clock` gives the source's time, `page` draws a template, `answer` writes JSON."""
        self._library = library
        self._clock = clock
        self._page = page
        self._answer = answer
        self._suggestions = TraceSuggestions(library)

    def routes(self) -> list[web.RouteDef]:
        """Return its addresses."""
        return [
            web.get("/traces", self._traces),
            web.get("/api/v1/traces", self._api_traces),
            web.get("/api/v1/traces/suggest", self._api_suggest),
        ]

    async def _traces(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        return await self._page(
            "traces.html", {"view": view, "offered": self._suggestions.options()}, 400 if view.problem else 200
        )

    async def _api_traces(self, request: web.Request) -> web.Response:
        view = await self._view(request)
        if view.problem:
            raise BadQuery(view.problem)
        return self._answer(to_json(view), 200)

    async def _api_suggest(self, request: web.Request) -> web.Response:
        typed = request.query.get("q", "")
        if len(typed) > MAX_QUERY:
            raise BadQuery(f"A search has at most {MAX_QUERY} characters.")
        return self._answer({"suggestions": to_json(self._suggestions.complete(typed))}, 200)

    async def _held(self) -> list[HeldOutline]:
        """Return all traces that are held, or were as the answer began."""
        held: list[HeldOutline] = []
        async for outlines in in_chunks(self._library.store.outlines().items()):
            held += with_pods(self._library, outlines)
        return held

    async def _view(self, request: web.Request) -> TracesView:
        wanted = _wanted(request)
        search, problem = NOTHING, ""
        try:
            search = read_trace_search(wanted.q, self._clock())
        except SearchError as error:
            problem = str(error)
        held = await self._held()
        if len(held) > _MANY:
            found = await asyncio.to_thread(find_traces, held, search, wanted.sort)
        else:
            found = find_traces(held, search, wanted.sort)
        shown = found.traces[wanted.after : wanted.after + PAGE_ROWS]
        rows = tuple(trace_row(self._library, one) for one in shown)
        return TracesView(
            wanted, rows, len(found.traces), found.held, search.range, problem, not_held(self._library, wanted.q)
        )


def _wanted(request: web.Request) -> TraceFilter:
    query = request.query
    q, asked = query.get("q", "").strip(), query.get("sort", TRACE_SORTS[0])
    sort = next((sort for sort in TRACE_SORTS if sort == asked), None)
    if len(q) > MAX_QUERY:
        raise BadQuery(f"A search has at most {MAX_QUERY} characters.")
    if sort is None:
        raise BadQuery(f"sort is one of {', '.join(TRACE_SORTS)}.")
    return TraceFilter(q, sort, passed_over(query, "traces"))


def traces_path(wanted: TraceFilter, **changes: str | int) -> FullText:
    """Return the address of the list of traces with a filter; changing it starts at the first page."""
    target = wanted._replace(after=0)._replace(**changes)  # type: ignore[arg-type] # named by the templates
    query = {name: value for name, value in target._asdict().items() if value != TraceFilter._field_defaults[name]}
    return FullText("/traces?" + urlencode(query) if query else "/traces")
