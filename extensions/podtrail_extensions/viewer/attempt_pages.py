"""Addresses of a Pod's attempts: the list from a number on, one of them, two side by side.

A key is one segment of the address, so that a namespace or a Pod of the name `attempts` stands in nobody's way: what is
no key of a Pod that is held is left to whoever knows names.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, Protocol

from aiohttp import web

from podtrail.story import Library, PodStory, attempt_numbered, to_json, why_not_held
from podtrail_extensions.viewer.attempt_views import AttemptNotHeld, AttemptViews, first_and_last
from podtrail_extensions.viewer.bad_query import BadQuery
from podtrail_extensions.viewer.drawn import PageWriter
from podtrail_extensions.viewer.read_ahead import read_ahead

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LONGEST_NUMBER = 9


class JsonWriter(Protocol):
    """Writes JSON."""

    def __call__(self, value: object, status: int = 200) -> web.Response:
        """Return the response."""


class AskedAttempts(NamedTuple):
    """Numbers of the attempts that are to be compared."""

    one: int
    other: int


class AttemptPages:
    """Answers for the attempts of a Pod that is named by its key."""

    def __init__(
        self, library: Library, clock: Callable[[], tuple[int, bool]], page: PageWriter, api: JsonWriter
    ) -> None:
        """Make it; `clock` gives the source's time and whether that is the present."""
        self._library = library
        self._views = AttemptViews(library)
        self._clock = clock
        self._page = page
        self._json = api

    def routes(self, others: Handler, others_api: Handler) -> Iterable[web.RouteDef]:
        """Return the addresses; `others` answer where the first segment is no key of a Pod that is held."""
        for prefix, fallback in (("/pods", others), ("/api/v1/pods", others_api)):
            for rest, handler in (
                ("attempts", self._attempts),
                ("attempts/{number}", self._attempt),
                ("compare", self._compare),
            ):
                answer = _of_a_pod(handler, self._library, fallback, rest)
                yield web.get(f"{prefix}/{{key:[^/]+}}/{rest}", answer)
                yield web.get(f"{prefix}/{{namespace:[^/]+}}/{{name:[^/]+}}/{rest}", answer)

    async def _attempts(self, request: web.Request, pod: PodStory) -> web.Response:
        view = self._views.listed(pod, _number(request.query.get("from", ""), "from", 1))
        return self._json(to_json(view)) if _is_api(request) else await self._page("attempts.html", {"view": view})

    async def _attempt(self, request: web.Request, pod: PodStory) -> web.Response:
        now, live = self._clock()
        number = _number(request.match_info["number"], "The number of an attempt", 1)
        view = self._views.one(pod, number, now, live=live)
        if isinstance(view, AttemptNotHeld):
            if _is_api(request):
                return self._json({"error": f"attempt {number:,} is not held: {view.why}"}, 404)
            return await self._page("no_attempt.html", {"view": view}, 404)
        return self._json(to_json(view)) if _is_api(request) else await self._page("attempt.html", {"view": view})

    async def _compare(self, request: web.Request, pod: PodStory) -> web.Response:
        first, last = first_and_last(pod.attempts)
        asked = AskedAttempts(
            _number(request.query.get("a", ""), "a", first), _number(request.query.get("b", ""), "b", last)
        )
        one, other = (attempt_numbered(pod, number) for number in asked)
        if one is None or other is None:
            number = asked.one if one is None else asked.other
            why = why_not_held(pod, number)
            if _is_api(request):
                return self._json({"error": f"attempt {number:,} is not held: {why}"}, 404)
            view = self._views.one(pod, number, self._clock()[0], live=True)
            return await self._page("no_attempt.html", {"view": view}, 404)
        view_of_both = self._views.compared(pod, one, other)
        if _is_api(request):
            return self._json(to_json(view_of_both))
        return await self._page("compare.html", {"view": view_of_both})


def _of_a_pod(
    handler: Callable[[web.Request, PodStory], Awaitable[web.Response]], library: Library, others: Handler, rest: str
) -> Handler:
    """Return a handler that finds the Pod of the key in the address first."""

    async def answer(request: web.Request) -> web.StreamResponse:
        info = request.match_info
        asked = info["key"] if "key" in info else f"{info['namespace']}/{info['name']}"
        await read_ahead(library, asked)
        pod = library.meant(asked)
        if pod is None:
            info["key"] = f"{asked}/{rest}".replace("{number}", info.get("number", ""))
            return await others(request)
        return await handler(request, pod)

    return answer


def _is_api(request: web.Request) -> bool:
    return request.path.startswith("/api/")


def _number(text: str, what: str, otherwise: int) -> int:
    if not text:
        return otherwise
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER):
        raise BadQuery(f"{what} is a number from 1 to {10**_LONGEST_NUMBER - 1:,}.")
    return int(text)
