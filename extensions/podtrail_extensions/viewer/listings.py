"""The lists of nodes and plugins, and the page of each."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote

from aiohttp import web

from podtrail.pages.environment import FullText
from podtrail.story import Library, PodStory, to_json
from podtrail.story.listing import (
    NODE_SORTS,
    NodeRow,
    PluginRow,
    list_nodes,
    list_plugins,
    pods_on_nodes,
    tell_node,
    tell_plugin,
)
from podtrail.story.node_question import NodeAnswer, ask_node
from podtrail.story.plugin_question import ask_plugin
from podtrail.story.plugin_times import MINUTE, PointTimes, SlowCall, usual_pace
from podtrail.story.refusals import RefusalCount
from podtrail_extensions.viewer.bad_query import BadQuery, passed_over
from podtrail_extensions.viewer.drawn import PageWriter
from podtrail_extensions.viewer.plugin_order import PLUGIN_SORTS, in_order
from podtrail_extensions.viewer.shape_views import ShapeViews, drawing
from podtrail_extensions.viewer.views import MAX_QUERY, PAGE_ROWS, PodRow

Answer = Callable[[object, int], web.Response]
_BARS = 60
"""Minutes in a drawing, the latest."""
_HEIGHT = 100


class NameFilter(NamedTuple):
    """Which of a list are asked for, as in the query of the page's address."""

    q: str = ""
    """Part of the name."""
    after: int = 0
    sort: str = ""
    """"" for the list's usual order."""


@dataclass(frozen=True, slots=True)
class NodesView:
    """The list of nodes."""

    filter: NameFilter
    nodes: tuple[NodeRow, ...]
    matching: int
    total: int


@dataclass(frozen=True, slots=True)
class PluginsView:
    """The list of plugins."""

    filter: NameFilter
    plugins: tuple[PluginRow, ...]
    matching: int
    total: int


@dataclass(frozen=True, slots=True)
class NodePage:
    """One node."""

    row: NodeRow
    states: Mapping[str, int]
    told: NodeAnswer
    """What `podtrail why node` says."""
    pods: tuple[PodRow, ...]
    waiting: tuple[PodRow, ...]


class SlowestRow(NamedTuple):
    """One of the calls of a plugin that took longest."""

    call: SlowCall
    pod: PodRow | None
    attempt: int | None
    held: bool
    """Its trace is here."""


@dataclass(frozen=True, slots=True)
class PluginPage:
    """One plugin."""

    row: PluginRow
    refusals: tuple[RefusalCount, ...]
    """What `podtrail why plugin` says."""
    slowest: tuple[SlowestRow, ...]
    pods: tuple[PodRow, ...]


class MinuteBar(NamedTuple):
    """A minute as it is drawn: heights of 100, from the left."""

    x: int
    mean: int
    longest: int


class Listings:
    """Answers for the addresses of nodes and plugins."""

    def __init__(self, library: Library, page: PageWriter, answer: Answer) -> None:
        """Make it; `page` draws a template, `answer` writes JSON."""
        self._library = library
        self._stories = library.stories
        self._shapes = ShapeViews(library)
        self._page = page
        self._answer = answer

    def routes(self) -> list[web.RouteDef]:
        """Return its addresses."""
        return [
            web.get("/nodes", self._nodes),
            web.get("/nodes/{name:(?s:.+)}", self._node),
            web.get("/plugins", self._plugins),
            web.get("/plugins/{name:(?s:.+)}", self._plugin),
            web.get("/api/v1/nodes", self._api_nodes),
            web.get("/api/v1/nodes/{name:(?s:.+)}", self._api_node),
            web.get("/api/v1/plugins", self._api_plugins),
            web.get("/api/v1/plugins/{name:(?s:.+)}", self._api_plugin),
        ]

    async def _nodes(self, request: web.Request) -> web.Response:
        return await self._page("nodes.html", {"view": await self._nodes_view(request)}, 200)

    async def _api_nodes(self, request: web.Request) -> web.Response:
        return self._answer(to_json(await self._nodes_view(request)), 200)

    async def _plugins(self, request: web.Request) -> web.Response:
        return await self._page("plugins.html", {"view": self._plugins_view(request)}, 200)

    async def _api_plugins(self, request: web.Request) -> web.Response:
        return self._answer(to_json(self._plugins_view(request)), 200)

    async def _node(self, request: web.Request) -> web.Response:
        view = await self._node_view(request.match_info["name"])
        if view is None:
            return await self._unknown("node", request.match_info["name"])
        return await self._page("node.html", {"view": view}, 200)

    async def _api_node(self, request: web.Request) -> web.Response:
        view = await self._node_view(request.match_info["name"])
        return self._answer(to_json(view) if view else {"error": "nothing is known of this node"}, 200 if view else 404)

    async def _plugin(self, request: web.Request) -> web.Response:
        view = await self._plugin_view(request.match_info["name"])
        if view is None:
            return await self._unknown("plugin", request.match_info["name"])
        shape = await self._shapes.plugin(view.row.plugin)
        pace = usual_pace(view.row.points)
        drawn = drawing(shape, changes=self._stories.configurations.changes())
        return await self._page("plugin.html", {"view": view, "pace": pace, "drawn": drawn}, 200)

    async def _api_plugin(self, request: web.Request) -> web.Response:
        view = await self._plugin_view(request.match_info["name"])
        found = to_json(view) if view else {"error": "nothing is known of this plugin"}
        return self._answer(found, 200 if view else 404)

    async def _unknown(self, kind: str, name: str) -> web.Response:
        words = f"Nothing is known of {kind} {name}: no attempt that is held names it."
        return await self._page("problem.html", {"status": 404, "title": "Not Found", "words": words}, 404)

    async def _nodes_view(self, request: web.Request) -> NodesView:
        wanted = _wanted(request, NODE_SORTS)
        on = await asyncio.to_thread(pods_on_nodes, self._stories.pods())
        found = list_nodes(self._stories, on, wanted.q, wanted.after, PAGE_ROWS, wanted.sort)
        return NodesView(wanted, tuple(found.rows), found.matching, found.total)

    def _plugins_view(self, request: web.Request) -> PluginsView:
        wanted = _wanted(request, PLUGIN_SORTS)
        rows = list_plugins(self._stories)
        found = [row for row in rows if wanted.q.lower() in row.plugin.lower()]
        if wanted.sort:
            found = in_order(found, wanted.sort)
        return PluginsView(wanted, tuple(found[wanted.after :][:PAGE_ROWS]), len(found), len(rows))

    async def _node_view(self, name: str) -> NodePage | None:
        told = tell_node(self._stories, name)
        if told is None:
            return None
        answer = await asyncio.to_thread(ask_node, self._stories.pods(), name)
        return NodePage(told.row, told.states, answer, _rows(told.pods), _rows(told.waiting))

    async def _plugin_view(self, name: str) -> PluginPage | None:
        told = tell_plugin(self._stories, name)
        if told is None:
            return None
        pods, past = self._stories.pods(), self._stories.past.told()
        answer = await asyncio.to_thread(ask_plugin, pods, {}, name, past)
        slowest = tuple(
            SlowestRow(
                one.call,
                PodRow.of(one.pod) if one.pod else None,
                one.attempt.number if one.attempt else None,
                bool(self._library.store.get(one.call.trace_id)),
            )
            for one in told.slowest
        )
        return PluginPage(told.row, answer.refusals, slowest, _rows(told.pods))


def _wanted(request: web.Request, sorts: tuple[str, ...] = ()) -> NameFilter:
    """Return what is asked for; `sorts`: what the list can be sorted by, the usual order first."""
    q = request.query.get("q", "").strip()
    sort = request.query.get("sort", "") if sorts else ""
    if sort and sort not in sorts:
        raise BadQuery(f"sort is one of {', '.join(sorts)}.")
    if len(q) > MAX_QUERY:
        raise BadQuery(f"A filter has at most {MAX_QUERY} characters.")
    return NameFilter(q, passed_over(request.query, "rows"), "" if sort in sorts[:1] else sort)


def _rows(pods: tuple[PodStory, ...]) -> tuple[PodRow, ...]:
    return tuple(map(PodRow.of, pods))


def minute_bars(times: PointTimes) -> tuple[MinuteBar, ...]:
    """Return the latest minutes of a plugin as bars: 1 wide, at most 100 high, the longest call the highest."""
    last = times.minutes[-1].start_unix_nano
    shown = [minute for minute in times.minutes if minute.start_unix_nano > last - _BARS * MINUTE]
    highest = max(minute.longest for minute in shown) or 1
    return tuple(
        MinuteBar(
            _BARS - 1 - (last - minute.start_unix_nano) // MINUTE,
            max(1, _HEIGHT * minute.mean // highest),
            max(1, _HEIGHT * minute.longest // highest),
        )
        for minute in shown
    )


def node_path(name: str) -> FullText:
    """Return the address of a node's page."""
    return FullText(f"/nodes/{quote(name, safe='')}")


def plugin_path(name: str) -> FullText:
    """Return the address of a plugin's page."""
    return FullText(f"/plugins/{quote(name, safe='')}")


def names_path(page: str, wanted: NameFilter, after: int) -> FullText:
    """Return the address of another part of a list."""
    query = {"q": wanted.q, "sort": wanted.sort, "after": after or ""}
    asked = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in query.items() if value)
    return FullText(f"/{page}?{asked}" if asked else f"/{page}")
