"""What a ticket takes along: reports of Pods and of incidents, traces for other programs; and the page of an incident.

What takes more than a moment is done in a thread, one at a time, on what was held when it was asked for.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from aiohttp import web

from podtrail.otlp.json import write_json_request
from podtrail.reports.document import ReportDocument
from podtrail.reports.incident import incident_report
from podtrail.reports.perfetto import DrawnTrace, to_perfetto
from podtrail.reports.pod import pod_report
from podtrail.story import Library, PodStory, to_json, trace_id
from podtrail.story.incident import Incident, tell_incident
from podtrail.story.listing import list_plugins
from podtrail.story.time_range import TimeRange
from podtrail_extensions.viewer.bad_query import BadQuery
from podtrail_extensions.viewer.drawn import PageWriter
from podtrail_extensions.viewer.read_ahead import read_ahead
from podtrail_extensions.viewer.trace_places import why_not_held

if TYPE_CHECKING:
    from podtrail_extensions.viewer.site import Clock

_FILES: Final = r"report\.md|report\.html|perfetto\.json"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9-]+")
_LONGEST_NAME: Final = 100
_LONGEST_TIME: Final = 40

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Reports:
    """Answers for addresses of reports."""

    def __init__(self, library: Library, clock: "Clock", page: PageWriter, pod: Handler) -> None:
        """Make it.

        Args:
            library: what is told of.
            clock: the source's.
            page: draws a template.
            pod: answers for what turns out to be the address of a Pod, for a Pod may be named `report.md`.
        """
        self._library = library
        self._clock = clock
        self._page = page
        self._pod = pod
        self._one_at_a_time = asyncio.Lock()

    def routes(self) -> list[web.RouteDef]:
        """Return its addresses; they come before those of Pods."""
        return [
            web.get("/incident", self._incident),
            web.get(r"/incident.{kind:md|html}", self._incident_file),
            web.get("/api/v1/incident", self._api_incident),
            web.get(rf"/pods/{{key:[^/]+}}/{{file:{_FILES}}}", self._pod_file),
            web.get(rf"/pods/{{namespace:[^/]+}}/{{name:[^/]+}}/{{file:{_FILES}}}", self._pod_file),
            web.get(r"/traces/{id}/{file:perfetto\.json|otlp\.json}", self._trace_file),
        ]

    async def _incident(self, request: web.Request) -> web.StreamResponse:
        asked = {name: request.query.get(name, "")[:_LONGEST_TIME] for name in ("from", "to")}
        try:
            span = self._range(request)
        except BadQuery as error:
            context = {"asked": asked, "problem": str(error), "report": None}
            return await self._page("incident.html", context, 400)
        report = await self._incident_report(request, span)
        stories = self._library.stories
        known = {
            "known_plugins": {row.plugin for row in list_plugins(stories)},
            "known_nodes": {*stories.refusals.nodes(), *(pod.node for pod in stories.each())},
        }
        shown: dict[str, object] = {"asked": asked, "problem": "", "report": report, "span": span, **known}
        return await self._page("incident.html", shown, 200)

    async def _incident_file(self, request: web.Request) -> web.StreamResponse:
        span = self._range(request)
        report = await self._incident_report(request, span)
        return await self._file(report, request.match_info["kind"], f"incident-{span.words.replace(' to ', '-')}")

    async def _api_incident(self, request: web.Request) -> web.StreamResponse:
        told = await self._told(self._range(request))
        return web.json_response(text=json.dumps({"sentence": told.sentence, **_members(told)}))

    def _range(self, request: web.Request) -> TimeRange:
        try:
            return TimeRange.read(request.query.get("from", ""), request.query.get("to", ""), self._clock().now)
        except ValueError as error:
            raise BadQuery(str(error)) from None

    async def _told(self, span: TimeRange) -> Incident:
        pods, past = self._library.stories.pods(), self._library.stories.past.told()
        async with self._one_at_a_time:
            return await asyncio.to_thread(tell_incident, pods, span, past)

    async def _incident_report(self, request: web.Request, span: TimeRange) -> ReportDocument:
        page = f"{request.url.origin()}/incident?{urlencode(span.query, safe=':')}"
        return incident_report(await self._told(span), page=page)

    async def _pod_file(self, request: web.Request) -> web.StreamResponse:
        info, file = request.match_info, request.match_info["file"]
        asked = info["key"] if "key" in info else f"{info['namespace']}/{info['name']}"
        await read_ahead(self._library, asked)
        pod = self._asked_pod(info)
        if pod is None:
            info["key"] = f"{asked}/{file}"
            return await self._pod(request)
        name = f"{pod.namespace}-{pod.name}" if pod.name else pod.key
        if file == "perfetto.json":
            return await self._drawn(self._traces_of(pod), name)
        now, live = self._clock()
        page = f"{request.url.origin()}{request.rel_url.raw_path.rpartition('/')[0]}"
        report = pod_report(self._library, pod, now, live=live, page=page)
        return await self._file(report, file.rpartition(".")[2], name)

    def _asked_pod(self, info: Mapping[str, str]) -> PodStory | None:
        if "key" in info:
            return self._library.pod(info["key"])
        found = self._library.find(info["name"], info["namespace"])
        return found[-1] if found else None

    def _traces_of(self, pod: PodStory) -> list[DrawnTrace]:
        created, deleted = self._library.requests_of(pod)
        wanted = {attempt.trace_id: f"attempt {attempt.number}" for attempt in pod.attempts}
        wanted |= {one.trace_id: what for one, what in ((created, "creation"), (deleted, "deletion")) if one}
        if pod.on_node is not None:
            wanted |= {step.trace_id: "on its node" for step in pod.on_node.steps if step.trace_id not in wanted}
        wanted |= {pod.life_trace_id: "its life"} if pod.life_trace_id else {}
        held = ((title, tuple(self._library.store.get(one))) for one, title in wanted.items())
        return [DrawnTrace(title, groups) for title, groups in held if groups]

    async def _trace_file(self, request: web.Request) -> web.StreamResponse:
        try:
            wanted = trace_id(request.match_info["id"])
        except ValueError as error:
            raise BadQuery(str(error)) from None
        groups = tuple(self._library.store.get(wanted))
        if not groups:
            return await self._page("no_trace.html", why_not_held(self._library, wanted), 404)
        if request.match_info["file"] == "otlp.json":
            async with self._one_at_a_time:
                body = await asyncio.to_thread(write_json_request, groups)
            return _download(body, "application/json", f"trace-{wanted.hex()}", "otlp.json")
        known = self._library.stories.attempt(wanted)
        title = f"attempt {known[1].number}" if known else "trace"
        return await self._drawn([DrawnTrace(title, groups)], f"trace-{wanted.hex()}")

    async def _drawn(self, traces: list[DrawnTrace], name: str) -> web.Response:
        async with self._one_at_a_time:
            body = await asyncio.to_thread(to_perfetto, traces)
        return _download(body, "application/json", name, "perfetto.json")

    async def _file(self, report: ReportDocument, kind: str, name: str) -> web.Response:
        async with self._one_at_a_time:
            if kind == "md":
                from podtrail.reports.markdown import to_markdown

                text = await asyncio.to_thread(to_markdown, report)
                return web.Response(text=text, content_type="text/plain")
            from podtrail.reports.html import to_html

            # A page of ours allows no style within it: this one is opened from where it was put.
            body = (await asyncio.to_thread(to_html, report)).encode()
        return _download(body, "text/html", name, "html")


def safe_name(name: str) -> str:
    """Return what may stand in the name of a file anywhere: letters, digits and dashes of ASCII."""
    return _UNSAFE.sub("-", name)[:_LONGEST_NAME].strip("-") or "unnamed"


def _download(body: bytes, kind: str, name: str, ending: str) -> web.Response:
    disposition = f'attachment; filename="podtrail-{safe_name(name)}.{ending}"'
    return web.Response(body=body, content_type=kind, charset="utf-8", headers={"Content-Disposition": disposition})


def _members(told: Incident) -> dict[str, object]:
    members = to_json(told)
    assert isinstance(members, dict)
    return dict(members)
