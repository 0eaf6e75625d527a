"""The page's addresses: what is asked for, answered as HTML or JSON."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from podtrail import pages
from podtrail.story import Library, WhyQuestion, answer_query, to_json
from podtrail_extensions.viewer.decision_views import DECISIONS, MAX_ROWS, DecisionFilter, DecisionViews
from podtrail_extensions.viewer.guard import add_headers, refusal
from podtrail_extensions.viewer.sampler_metrics import SamplerMetrics
from podtrail_extensions.viewer.views import MAX_QUERY, SORTS, PodFilter, PodViews

if TYPE_CHECKING:
    from jinja2 import Environment

_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEX = frozenset("0123456789abcdef")
_TRACE_DIGITS = 32


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
    max_mib: int
    max_decisions_mib: int
    since: int
    """Unix nanoseconds: nothing older is held."""


class BadQuery(ValueError):
    """A query that can't be answered; the text says why."""


class Site:
    """Serves pages and API from stories and store."""

    def __init__(
        self,
        library: Library,
        backend: Backend,
        allowed_hosts: tuple[str, ...],
        clock: Clock,
        measures: SamplerMetrics,
    ) -> None:
        """Make it; `clock` gives the source's time and whether that is the present."""
        self._library = library
        self._stories = library.stories
        self._store = library.store
        self._backend = backend
        self._allowed_hosts = allowed_hosts
        self._clock = clock
        self._views = PodViews(library)
        self._decision_views = DecisionViews(library, measures)
        self._static = {
            one.name: (one.read_bytes(), _TYPES[one.name[one.name.rindex(".") :]])
            for one in (*(files(__package__) / "static").iterdir(), files(pages) / "templates" / "common.css")
        }

    @cached_property
    def _templates(self) -> "Environment":
        # Nobody waits for jinja2 before the first page.
        from podtrail_extensions.viewer.render import environment

        return environment()

    def application(self) -> web.Application:
        """Return the aiohttp application."""
        application = web.Application(middlewares=[self._guard])
        application.on_response_prepare.append(add_headers)
        application.add_routes(
            [
                web.get("/", self._pods),
                web.get("/pods/{key:.+}", self._pod),
                web.get("/traces/{id}", self._trace),
                web.get("/policies", self._policies),
                web.get("/decisions/{id}", self._decision),
                web.get("/api/v1/pods", self._api_pods),
                web.get("/api/v1/pods/{key:.+}", self._api_pod),
                web.get("/api/v1/traces/{id}", self._api_trace),
                web.get("/api/v1/policies", self._api_policies),
                web.get("/api/v1/decisions", self._api_decisions),
                web.get("/api/v1/decisions/{id}", self._api_decision),
                web.get("/api/v1/why", self._api_why),
                web.get("/api/v1/changes", self._api_changes),
                web.get("/static/{name}", self._file),
            ]
        )
        return application

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        refused = refusal(request.method, request.headers, self._allowed_hosts)
        if refused:
            return self._problem(request, *refused)
        try:
            return await handler(request)
        except BadQuery as error:
            return self._problem(request, 400, str(error))
        except web.HTTPNotFound:
            return self._problem(request, 404, "There is no such page.")

    def _problem(self, request: web.Request, status: int, words: str) -> web.Response:
        if request.path.startswith("/api/"):
            return _json({"error": words}, status)
        title = HTTPStatus(status).phrase
        response = self._page("problem.html", {"status": status, "title": title, "words": words}, status)
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            response.headers["Allow"] = "GET, HEAD"
        return response

    def _page(self, template: str, context: Mapping[str, object], status: int = 200) -> web.Response:
        frame = {
            "backend": self._backend,
            "store": self._store,
            "stories": self._stories,
            "decisions": self._library.decisions,
            "now": self._clock().now,
        }
        text = self._templates.get_template(template).render({**frame, **context})
        return web.Response(text=text, status=status, content_type="text/html")

    async def _pods(self, request: web.Request) -> web.Response:
        wanted = _filter(request)
        if _is_hex(wanted.q, _TRACE_DIGITS):
            raise web.HTTPSeeOther(f"/traces/{wanted.q.lower()}")
        return self._page("pods.html", {"view": self._views.pods(wanted, self._clock().now)})

    async def _api_pods(self, request: web.Request) -> web.Response:
        return _json(to_json(self._views.pods(_filter(request), self._clock().now)))

    async def _pod(self, request: web.Request) -> web.Response:
        now, live = self._clock()
        view = self._views.pod(request.match_info["key"], now, live=live)
        if view is None:
            return self._page("no_pod.html", {"key": request.match_info["key"]}, 404)
        return self._page("pod.html", {"view": view})

    async def _api_pod(self, request: web.Request) -> web.Response:
        now, live = self._clock()
        view = self._views.pod(request.match_info["key"], now, live=live)
        return _json(to_json(view)) if view else _json({"error": "this Pod is not held"}, 404)

    async def _trace(self, request: web.Request) -> web.Response:
        trace_id, span_id = _trace_and_span(request)
        view = self._views.trace(trace_id, span_id)
        if view is None:
            decided = bool(self._library.decisions.find(trace_id))
            context = {"trace_id": trace_id, "fate": self._views.fate(trace_id), "decided": decided}
            return self._page("no_trace.html", context, 404)
        return self._page("trace.html", {"view": view})

    async def _api_trace(self, request: web.Request) -> web.Response:
        trace_id, span_id = _trace_and_span(request)
        view = self._views.trace(trace_id, span_id)
        return _json(to_json(view)) if view else _json({"error": self._views.fate(trace_id).words}, 404)

    async def _policies(self, request: web.Request) -> web.Response:
        view = self._decision_views.policies(_decision_filter(request), self._clock().now)
        return self._page("policies.html", {"view": view})

    async def _decision(self, request: web.Request) -> web.Response:
        trace_id = _id(request.match_info["id"], _TRACE_DIGITS, "trace")
        view = self._decision_views.decision(trace_id)
        if view is None:
            context = {"trace_id": trace_id.hex(), "fate": self._views.fate(trace_id)}
            return self._page("no_decision.html", context, 404)
        return self._page("decision.html", {"view": view})

    async def _api_policies(self, _request: web.Request) -> web.Response:
        return _json(to_json(self._decision_views.table(self._clock().now)))

    async def _api_decisions(self, request: web.Request) -> web.Response:
        return _json(to_json(self._decision_views.decisions(_decision_filter(request))))

    async def _api_decision(self, request: web.Request) -> web.Response:
        trace_id = _id(request.match_info["id"], _TRACE_DIGITS, "trace")
        view = self._decision_views.decision(trace_id)
        if view is None:
            return _json({"error": "no decision about this trace is held", **self._held()}, 404)
        return _json(to_json(view))

    async def _api_why(self, request: web.Request) -> web.Response:
        now, live = self._clock()
        try:
            answer = answer_query(self._library, WhyQuestion.read(request.query), now, live=live)
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

    async def _api_changes(self, _request: web.Request) -> web.Response:
        return _json({"changes": self._stories.changes})

    async def _file(self, request: web.Request) -> web.Response:
        found = self._static.get(request.match_info["name"])
        if not found:
            raise web.HTTPNotFound
        return web.Response(body=found[0], content_type=found[1], charset="utf-8")


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(text=json.dumps(value, ensure_ascii=True), status=status, content_type="application/json")


def _filter(request: web.Request) -> PodFilter:
    query = request.query
    wanted = PodFilter(
        q=query.get("q", "").strip(),
        state=query.get("state", PodFilter().state),
        sort=query.get("sort", PodFilter().sort),
    )
    after = query.get("after", "0")
    if len(wanted.q) > MAX_QUERY or len(wanted.state) > MAX_QUERY:
        raise BadQuery(f"A filter has at most {MAX_QUERY} characters.")
    if wanted.sort not in SORTS:
        raise BadQuery(f"sort is one of {', '.join(SORTS)}.")
    if not (after.isascii() and after.isdecimal() and len(after) < 9):
        raise BadQuery("after is the number of Pods to pass over.")
    return wanted._replace(after=int(after))


def _decision_filter(request: web.Request) -> DecisionFilter:
    query = request.query
    wanted = DecisionFilter(
        policy=query.get("policy", ""), decision=query.get("decision", ""), q=query.get("q", "").strip()
    )
    if max(map(len, wanted[:3])) > MAX_QUERY:
        raise BadQuery(f"A filter has at most {MAX_QUERY} characters.")
    if wanted.decision and wanted.decision not in DECISIONS:
        raise BadQuery(f"decision is one of {', '.join(DECISIONS)}.")
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


def _trace_and_span(request: web.Request) -> tuple[bytes, bytes]:
    return _id(request.match_info["id"], _TRACE_DIGITS, "trace"), _id(request.query.get("span", ""), 16, "span")


def _id(text: str, digits: int, what: str) -> bytes:
    if (not text and what == "span") or _is_hex(text, digits):
        return bytes.fromhex(text)
    raise BadQuery(f"A {what} id has {digits} hexadecimal digits.")


def _is_hex(text: str, digits: int) -> bool:
    return len(text) == digits and _HEX.issuperset(text.lower())
