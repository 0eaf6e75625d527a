"""The page's addresses: what is asked for, answered as HTML or JSON."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from podtrail.component import Metrics
from podtrail.config.secret_keys import without_remembered
from podtrail.otlp.decision_words import read_decision
from podtrail.story import (
    ANY_STATE,
    STATES_ASKED,
    HeardBetween,
    Library,
    OverviewAnswer,
    OverviewQuestion,
    PodSuggestions,
    WhyAnswer,
    WhyQuestion,
    answer_query,
    to_json,
)
from podtrail.story.short_ids import TRACE_DIGITS, is_beginning
from podtrail.story.suggestions import gather
from podtrail_extensions.viewer.alike import AlikeGroups
from podtrail_extensions.viewer.asked_host import note_host, only_here
from podtrail_extensions.viewer.asked_range import read_range
from podtrail_extensions.viewer.attempt_pages import AttemptPages
from podtrail_extensions.viewer.bad_query import BadQuery, passed_over
from podtrail_extensions.viewer.decision_views import MAX_ROWS, DecisionFilter, DecisionViews
from podtrail_extensions.viewer.drawn import in_parts
from podtrail_extensions.viewer.guard import add_headers, refusal
from podtrail_extensions.viewer.last_came import LastCame
from podtrail_extensions.viewer.listings import Listings
from podtrail_extensions.viewer.live import LiveFeed, LiveState
from podtrail_extensions.viewer.overviews import overview
from podtrail_extensions.viewer.read_ahead import read_ahead
from podtrail_extensions.viewer.reports import Reports
from podtrail_extensions.viewer.sampler_metrics import SamplerMetrics
from podtrail_extensions.viewer.shape_views import ShapeViews, drawing
from podtrail_extensions.viewer.static_files import static_files
from podtrail_extensions.viewer.tap import Taps
from podtrail_extensions.viewer.top import top
from podtrail_extensions.viewer.trace_list import TraceList
from podtrail_extensions.viewer.trace_pages import TracePages, hex_id
from podtrail_extensions.viewer.trace_places import lead_on, place_of_beginning, place_of_trace
from podtrail_extensions.viewer.unknown_pod import unknown_pod
from podtrail_extensions.viewer.views import MAX_QUERY, SORTS, PodFilter, PodViews

if TYPE_CHECKING:
    from jinja2 import Environment

_asked_at: ContextVar[int] = ContextVar("asked_at")
"""How many changes there were when a page was asked for: while it is made and drawn there may be more."""


class SourceTime(NamedTuple):
    """Where the source's clock stands."""

    now: int
    """Unix nanoseconds."""
    live: bool
    """It is the present: spans are not of a simulation or a recording."""


Clock = Callable[[], SourceTime]


@dataclass(frozen=True, slots=True)
class Backend:
    """What every page's frame tells."""

    otlp_endpoint: str
    """"" where spans come from the pipelines."""
    max_mib: int
    max_decisions_mib: int
    since: int
    """Unix nanoseconds: nothing older is held."""


class Site:
    """Serves pages and API from stories and store."""

    def __init__(
        self,
        library: Library,
        backend: Backend,
        allowed_hosts: tuple[str, ...],
        clock: Clock,
        metrics: Metrics,
        taps: Taps,
        came: LastCame,
    ) -> None:
        """Make it; `clock` gives the source's time and whether that is the present, `came` our time of the latest."""
        self._library = library
        self._stories = library.stories
        self._store = library.store
        self._backend = backend
        self._allowed_hosts = allowed_hosts
        self._clock = clock
        self._views = PodViews(library)
        self._shapes = ShapeViews(library)
        self._suggestions = PodSuggestions(library.stories)
        self._alike = AlikeGroups(library.stories)
        self._decision_views = DecisionViews(library, SamplerMetrics(metrics))
        self._metrics = metrics
        self._taps = taps
        self._came = came
        self._reports = Reports(library, clock, self._page, self._pod)
        self._attempts = AttemptPages(library, clock, self._page, _json)
        self._traces = TracePages(library, self._page, _json)
        self._static = static_files()

    @cached_property
    def _templates(self) -> "Environment":
        # Nobody waits for jinja2 before the first page.
        from podtrail_extensions.viewer.render import environment

        return environment(self._static)

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        application = web.Application(middlewares=[self._guard])
        application.on_response_prepare.append(add_headers)
        live = LiveFeed(lambda: LiveState(self._stories.changes, *self._clock(), self._came.silent_since()))
        application.on_shutdown.extend((live.end, self._taps.end))
        application.add_routes(
            [
                *self._attempts.routes(self._pod, self._api_pod),
                web.get("/", self._pods),
                *self._reports.routes(),
                *Listings(self._library, self._page, _json).routes(),
                *TraceList(self._library, lambda: self._clock().now, self._page, _json).routes(),
                web.get("/pods/{key:(?s:.+)}", self._pod),
                *self._traces.routes(),
                web.get("/policies", self._policies),
                web.get("/decisions/{id}", self._decision),
                web.get("/api/v1/pods", self._api_pods),
                web.get("/api/v1/pods/{key:(?s:.+)}", self._api_pod),
                web.get("/api/v1/traces/{id}", self._api_trace),
                web.get("/api/v1/policies", self._api_policies),
                web.get("/api/v1/decisions", self._api_decisions),
                web.get("/api/v1/decisions/{id}", self._api_decision),
                web.get("/api/v1/why", self._api_why),
                web.get("/api/v1/top", self._api_top),
                web.get("/api/v1/shape", self._api_shape),
                web.get("/api/v1/suggest", self._api_suggest),
                web.get("/api/v1/changes", self._api_changes),
                web.get("/api/v1/live", live.listen),
                web.get("/api/v1/tap", self._taps.listen),
                *self._static.routes(),
            ]
        )
        return application

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        _asked_at.set(self._stories.changes)
        refused = refusal(request.method, request.headers, self._allowed_hosts)
        if refused:
            return await self._problem(request, *refused)
        note_host(request)
        try:
            response = await handler(request)
        except BadQuery as error:
            return await self._problem(request, error.status, str(error))
        except web.HTTPNotFound:
            return await self._problem(request, 404, "There is no such page.")
        if isinstance(response, web.Response) and isinstance(response.body, bytes):
            response.body = without_remembered(response.body)
        return response

    async def _problem(self, request: web.Request, status: int, words: str) -> web.Response:
        if request.path.startswith("/api/"):
            return _json({"error": words}, status)
        title = HTTPStatus(status).phrase
        response = await self._page("problem.html", {"status": status, "title": title, "words": words}, status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            response.headers["Allow"] = "GET, HEAD"
        return response

    async def _page(self, template: str, context: Mapping[str, object], status: int = 200) -> web.Response:
        frame = {
            "backend": self._backend,
            "store": self._store,
            "stories": self._stories,
            "decisions": self._library.decisions,
            "changes": _asked_at.get(),
            "now": self._clock().now,
            "silent_since": self._came.silent_since(),
            "only_here": only_here(),
        }
        text = await in_parts(self._templates.get_template(template), {**frame, **context})
        return web.Response(text=text, status=status, content_type="text/html")

    async def _pods(self, request: web.Request) -> web.Response:
        wanted = _filter(request, self._during(request))
        if len(wanted.q) == TRACE_DIGITS and is_beginning(wanted.q):
            raise web.HTTPSeeOther(place_of_trace(self._library, bytes.fromhex(wanted.q)))
        view = await self._views.asked(wanted, self._clock().now)
        if not (view.matching or view.matching_elsewhere) and (place := place_of_beginning(self._library, wanted.q)):
            raise web.HTTPSeeOther(place)
        await asyncio.sleep(0)  # receivers, on the same loop, come between two parts
        await self._gather_suggestions()
        known = self._suggestions.options()
        shape = await self._shapes.around(wanted.during, wanted.plugin)
        context = {
            "view": view,
            "suggestions": known,
            "drawn": drawing(shape, wanted.during, self._stories.configurations.changes()),
        }
        context["alike"] = await self._alike.of(wanted)
        await asyncio.sleep(0)
        return await self._page("pods.html", context, 400 if view.problem else 200)

    def _during(self, request: web.Request) -> HeardBetween:
        try:
            return read_range(request.query, self._clock().now)
        except ValueError as error:
            raise BadQuery(str(error)) from None

    async def _api_shape(self, request: web.Request) -> web.Response:
        query = request.query
        shape = await self._shapes.asked(query.get("plugin", ""), query.get("pod", ""), self._during(request))
        return _json(to_json(shape)) if shape else _json({"error": "this Pod is not held"}, 404)

    async def _api_pods(self, request: web.Request) -> web.Response:
        view = await self._views.asked(_filter(request, self._during(request)), self._clock().now)
        if view.problem:
            raise BadQuery(view.problem)
        return _json(to_json(view))

    async def _api_suggest(self, request: web.Request) -> web.Response:
        typed = request.query.get("q", "")
        if len(typed) > MAX_QUERY:
            raise BadQuery(f"A search has at most {MAX_QUERY} characters.")
        await self._gather_suggestions()
        return _json({"suggestions": to_json(self._suggestions.complete(typed))})

    async def _gather_suggestions(self) -> None:
        if pods := self._suggestions.stale():
            self._suggestions.note(await asyncio.to_thread(gather, pods))

    async def _pod(self, request: web.Request) -> web.Response:
        await read_ahead(self._library, request.match_info["key"])
        now, live = self._clock()
        view = self._views.pod(request.match_info["key"], now, live=live)
        if view is None:
            unknown = unknown_pod(request.match_info["key"], self._stories.pods())
            return await self._page("no_pod.html", {"unknown": unknown}, 404)
        within = self._during(request)
        shape = self._shapes.pod(view.pod.key, within)
        changes = self._stories.configurations.changes(view.pod.cluster)
        drawn = drawing(shape, changes=changes) if shape else None
        return await self._page("pod.html", {"view": view, "drawn": drawn, "within": within})

    async def _api_pod(self, request: web.Request) -> web.Response:
        await read_ahead(self._library, request.match_info["key"])
        now, live = self._clock()
        view = self._views.pod(request.match_info["key"], now, live=live)
        return _json(to_json(view)) if view else _json({"error": "this Pod is not held"}, 404)

    async def _api_trace(self, request: web.Request) -> web.Response:
        trace_id, span = hex_id(request.match_info["id"], TRACE_DIGITS, "trace"), request.query.get("span", "")
        span_id = hex_id(span, 16, "span") if span else b""
        view = self._views.trace(trace_id, span_id)
        return _json(to_json(view)) if view else _json({"error": self._views.fate(trace_id).words}, 404)

    async def _policies(self, request: web.Request) -> web.Response:
        view = await self._decision_views.policies(_decision_filter(request), self._clock().now)
        return await self._page("policies.html", {"view": view})

    async def _decision(self, request: web.Request) -> web.Response:
        lead_on(self._library, request.match_info["id"], "decisions")
        trace_id = hex_id(request.match_info["id"], TRACE_DIGITS, "trace")
        view = await self._decision_views.decision(trace_id)
        if view is None:
            context = {"trace_id": trace_id.hex(), "fate": self._views.fate(trace_id)}
            return await self._page("no_decision.html", context, 404)
        return await self._page("decision.html", {"view": view})

    async def _api_policies(self, _request: web.Request) -> web.Response:
        return _json(to_json(self._decision_views.table(self._clock().now)))

    async def _api_decisions(self, request: web.Request) -> web.Response:
        return _json(to_json(await self._decision_views.decisions(_decision_filter(request))))

    async def _api_decision(self, request: web.Request) -> web.Response:
        trace_id = hex_id(request.match_info["id"], TRACE_DIGITS, "trace")
        view = await self._decision_views.decision(trace_id)
        if view is None:
            return _json({"error": "no decision about this trace is held", **self._held()}, 404)
        return _json(to_json(view))

    async def _api_why(self, request: web.Request) -> web.Response:
        now, live = self._clock()
        try:
            answer: WhyAnswer | OverviewAnswer
            if OverviewQuestion.asked(request.query):
                answer = await overview(self._library, OverviewQuestion.read(request.query), now, live=live)
            else:
                question = WhyQuestion.read(request.query)
                await read_ahead(self._library, question.pod, question.cluster)
                answer = answer_query(self._library, question, now, live=live)
        except ValueError as error:
            raise BadQuery(str(error)) from None
        return _json({**answer.as_json(), **self._held()}, 404 if answer.problem else 200)

    def _held(self) -> dict[str, str | int | None]:
        """Return since when what is held."""
        decisions = self._library.decisions
        since = decisions.since
        return {
            "heldSinceUnixNano": str(self._backend.since),
            "decisionsSinceUnixNano": None if since is None else str(since),
            "forgottenPods": self._stories.tallies.forgotten_pods,
        }

    async def _api_top(self, _request: web.Request) -> web.Response:
        now, live = self._clock()
        return _json(to_json(await top(self._library, self._metrics, now, live=live)))

    async def _api_changes(self, _request: web.Request) -> web.Response:
        return _json({"changes": self._stories.changes})


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(text=json.dumps(value, ensure_ascii=True), status=status, content_type="application/json")


def _filter(request: web.Request, during: HeardBetween) -> PodFilter:
    query = request.query
    wanted = PodFilter(
        q=query.get("q", "").strip(),
        state=query.get("state", ANY_STATE if during != HeardBetween() else PodFilter().state),
        sort=query.get("sort", PodFilter().sort),
        cluster=query.get("cluster", ""),
        plugin=query.get("plugin", ""),
        during=during,
    )
    if max(map(len, (wanted.q, wanted.state, wanted.cluster, wanted.plugin))) > MAX_QUERY:
        raise BadQuery(f"A filter has at most {MAX_QUERY} characters.")
    if wanted.state not in STATES_ASKED:
        raise BadQuery(f"state is one of {', '.join(STATES_ASKED)}.")
    if wanted.sort not in SORTS:
        raise BadQuery(f"sort is one of {', '.join(SORTS)}.")
    return wanted._replace(after=passed_over(query, "Pods"))


def _decision_filter(request: web.Request) -> DecisionFilter:
    query = request.query
    wanted = DecisionFilter(
        policy=query.get("policy", ""), decision=query.get("decision", ""), q=query.get("q", "").strip()
    )
    if max(map(len, wanted[:3])) > MAX_QUERY:
        raise BadQuery(f"A filter has at most {MAX_QUERY} characters.")
    if wanted.decision:
        try:
            wanted = wanted._replace(decision=read_decision(wanted.decision))
        except ValueError as error:
            raise BadQuery(str(error)) from None
    limit, before = (_number(query.get(name, ""), name) for name in ("limit", "before"))
    if limit is not None and not 1 <= limit <= MAX_ROWS:
        raise BadQuery(f"limit is a number from 1 to {MAX_ROWS}.")
    return wanted._replace(limit=limit or wanted.limit, before=before)


def _number(text: str, what: str) -> int | None:
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise BadQuery(f"{what} is a number.")
    return int(text)
