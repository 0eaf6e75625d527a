"""Addresses of a trace: its page, its rows as JSON for the page's script, one span by itself."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial

from aiohttp import web

from podtrail.otlp import Group
from podtrail.story import (
    BackLink,
    Library,
    SpanRow,
    TimeShare,
    TraceStory,
    clip,
    tell_trace,
    time_shares,
    trace_rows,
    unresolved,
    visible,
)
from podtrail_extensions.viewer.attempt_pages import JsonWriter
from podtrail_extensions.viewer.bad_query import BadQuery
from podtrail_extensions.viewer.drawn import PageWriter
from podtrail_extensions.viewer.read_ahead import decided_links
from podtrail_extensions.viewer.trace_places import lead_on, why_not_held
from podtrail_extensions.viewer.views import PodViews

MOST_ROWS = 5000
"""Of one answer; a trace that has more is asked for in several."""
_ROWS_A_PAGE = 500
_OFF_LOOP = 500
"""Spans from which a trace is read in a thread."""
_SHARES = 10
_LONGEST_NAME = 256
_COLUMNS = ("spanId", "depth", "name", "service", "offset", "duration", "flags", "children", "links")
_ERROR, _ORPHAN, _CRITICAL = 1, 2, 4
_HEX = frozenset("0123456789abcdef")
_LONGEST_NUMBER = 9


class TracePages:
    """Answers for one trace."""

    def __init__(self, library: Library, page: PageWriter, api: JsonWriter) -> None:
        self._library = library
        self._views = PodViews(library)
        self._page = page
        self._json = api

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the addresses."""
        yield web.get("/traces/{id}", self._trace)
        yield web.get("/traces/{id}/spans/{span}", self._span)
        yield web.get("/api/v1/traces/{id}/rows", self._rows)

    async def _trace(self, request: web.Request) -> web.Response:
        lead_on(self._library, request.match_info["id"], "traces")
        trace_id = hex_id(request.match_info["id"], 32, "trace")
        span_id = hex_id(request.query.get("span", ""), 16, "span") if request.query.get("span") else b""
        first = _number(request, "from", -1 if span_id else 0, 10**_LONGEST_NUMBER - 1)
        groups = tuple(self._library.store.get(trace_id))
        arriving = tuple(self._library.arriving(trace_id, await decided_links(self._library, trace_id)))
        read = partial(_read, groups, arriving, span_id, first)
        many = sum(group.span_count for group in groups) >= _OFF_LOOP
        trace, shares = await asyncio.to_thread(read) if many else read()
        if trace is None:
            return await self._page("no_trace.html", why_not_held(self._library, trace_id), 404)
        view = self._views.about(self._library.resolved(trace))
        return await self._page("trace.html", {"view": view, "shares": shares[:_SHARES], "page_rows": _ROWS_A_PAGE})

    async def _span(self, request: web.Request) -> web.Response:
        trace_id = hex_id(request.match_info["id"], 32, "trace")
        span_id = hex_id(request.match_info["span"], 16, "span")
        place = self._library.span(trace_id, span_id)
        if place is None:
            context = {"trace_id": trace_id, "fate": self._views.fate(trace_id, span_id), "decided": False}
            return await self._page("no_trace.html", context, 404)
        return await self._page("span.html", {"trace_id": trace_id, "place": place})

    async def _rows(self, request: web.Request) -> web.Response:
        trace_id = hex_id(request.match_info["id"], 32, "trace")
        first = _number(request, "from", 0, 10**_LONGEST_NUMBER - 1)
        limit = _number(request, "limit", MOST_ROWS, MOST_ROWS)
        # What is held may change while a thread reads it: groups themselves don't.
        groups = tuple(self._library.store.get(trace_id))
        if not groups:
            return self._json({"error": self._views.fate(trace_id).words}, 404)
        told = await asyncio.to_thread(trace_rows, groups, first, limit)
        return self._json(
            {
                "traceId": trace_id.hex(),
                "spans": told.span_count,
                "duration": told.duration,
                "first": first,
                "columns": _COLUMNS,
                "rows": [_compact(row) for row in told.rows],
            }
        )


def hex_id(text: str, digits: int, what: str) -> bytes:
    """Return the bytes of an id.

    Raises:
        BadQuery: It is none.
    """
    if len(text) != digits or not _HEX.issuperset(text.lower()):
        raise BadQuery(f"A {what} id has {digits} hexadecimal digits.")
    return bytes.fromhex(text)


def _read(
    groups: Sequence[Group], arriving: Sequence[BackLink], span_id: bytes, first: int
) -> tuple[TraceStory | None, Sequence[TimeShare]]:
    """Return a trace and where its time went, told from nothing but these: it may run in a thread."""
    trace = tell_trace(groups, unresolved, arriving, span_id=span_id, limit=_ROWS_A_PAGE, first=first)
    return trace, time_shares(groups)


def _compact(row: SpanRow) -> list[str | int | None]:
    flags = _ERROR * row.error + _ORPHAN * row.orphan + _CRITICAL * row.critical
    return [
        row.span_id.hex(),
        row.depth,
        visible(clip(row.name, _LONGEST_NAME)),
        visible(clip(row.service, _LONGEST_NAME)),
        row.offset,
        row.duration,
        flags,
        row.children,
        row.links,
    ]


def _number(request: web.Request, name: str, otherwise: int, most: int) -> int:
    text = request.query.get(name, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER and int(text) <= most):
        raise BadQuery(f"{name} is a number from 0 to {most:,}.")
    return int(text)
