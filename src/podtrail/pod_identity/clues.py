"""Reading off one span everything that says, by itself or by what others taught, which Pod it is about."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from podtrail.otlp import SpanView, Value
from podtrail.otlp.node_words import SYNCS, NamedPod, pod_of_container, pod_of_sandbox
from podtrail.pod_identity.clusters import in_cluster
from podtrail.pod_identity.sighting import AUDIT_ID, READ_KEYS, Sighting, sighting_in, sound_place

EVENT: Final = "event"
"""The action of a request that writes an Event about a Pod, or about something else of that name."""
ACCOUNT: Final = "serviceaccounts/token"
"""The action of a request for a token of a ServiceAccount: the API server looks up the Pod that it is for."""
UNNAMED: Final = frozenset({EVENT, ACCOUNT})
"""Of these requests neither the client's nor the server's own span need name the Pod, but what is done for them."""

CLUE_MARK: Final = re.compile(rb"k8s\.pod\.uid|/pods|/events|/token|sandbox\.id|container\.id|task\.id|cni\.id")
"""Where this does not stand among the bytes of a span, it has no clue."""

REQUEST_KEYS: Final = READ_KEYS | {b"url.full"}
"""The attributes that `sighting_of_request` looks at."""
RUNTIME_KEYS: Final = ("sandbox.id", "container.id", "task.id", "cni.id", "task.container.id")
"""The attributes that have the id of a sandbox or a container: a sandbox is a container, too, and has one id."""

_OLDEST_EVENT: Final = 86_400_000_000_000
"""Nanoseconds that an Event is kept at most: an hour by default."""
_REFUSED: Final = 300
_SERVER_KIND: Final = 2
_CLIENT_KIND: Final = 3
_MOST_LINKS: Final = 8
_CONTAINER_KEYS: Final = ("container.id", "task.id", "task.container.id")
_SANDBOX_KEYS: Final = ("sandbox.id", "cni.id")
_RUNTIME_ID: Final = re.compile(r"[-.\w]{1,128}", re.ASCII)
_NAMED: Final = r"([^/?]{1,63})/%s/([^/?]{1,253})"
_URL: Final = re.compile(
    r"https?://[^/]{1,300}(/api/v1/namespaces/[^/?]{1,63}/pods/[^/?]{1,253}(?:/[a-z]{1,40})?)(?:\?.*)?", re.DOTALL
)
_POD_PATH: Final = re.compile(r"/api/v1/namespaces/" + _NAMED % "pods" + r"(?:/([a-z]{1,40}))?")
_EVENTS: Final = r"(?:/api/v1|/apis/events\.k8s\.io/v1)/namespaces/"
_EVENT_PATH: Final = re.compile(rf"(?:https?://[^/]{{1,300}})?{_EVENTS}{_NAMED % 'events'}(?:\?.*)?", re.DOTALL)
_EVENT_COLLECTION: Final = re.compile(rf"(?:https?://[^/]{{1,300}})?{_EVENTS}[^/?]{{1,63}}/events(?:\?.*)?", re.DOTALL)
_TOKEN_PATH: Final = re.compile(
    r"(?:https?://[^/]{1,300})?/api/v1/namespaces/[^/?]{1,63}/serviceaccounts/[^/?]{1,253}/token(?:\?.*)?", re.DOTALL
)
_EVENT_KEY: Final = re.compile(r"(?:/registry)?/events/([^/]{1,63})/([^/]{1,253})")
_EVENT_NAME: Final = re.compile(r"(.{1,253})\.([0-9a-f]{8,16})")
"""What client-go and events.k8s.io call an Event: its object's name and a time in hexadecimal digits."""


class PodClues(NamedTuple):
    """What one span says of its Pod. Texts are "" where it does not say; times are Unix nanoseconds by its clock."""

    trace_id: bytes
    span_id: bytes
    start: int
    end: int
    uid: str = ""
    place: str = ""
    """`namespace/name`, behind that of its cluster where its resource says which it is of."""
    action: str = ""
    """As a `Sighting` has it, or `EVENT`."""
    audit_id: str = ""
    container_id: str = ""
    sandbox_id: str = ""
    named: NamedPod | None = None
    """The Pod in the name of the sandbox or the container that the ids are of."""
    sync: str = ""
    """Which of the kubelet's `SYNCS` it is."""
    server: bool = False
    """Whether it is a server's span of a request."""
    client: bool = False
    """Whether it is a client's span of a request."""
    agent: str = ""
    """The program that made the request, as it calls itself."""
    root: bool = False
    """Whether it has no parent."""
    links: tuple[bytes, ...] = ()
    """Trace and span ids of those that it links to."""
    deletes: bool = False
    """Whether it is the API server's span of a request that deleted or evicted the Pod."""
    first_event: int = 0
    """Of a request that writes an Event: when the first of its series happened, by the name of the Event."""

    @property
    def span(self) -> bytes:
        """Trace and span id, 24 bytes."""
        return self.trace_id + self.span_id

    def within(self, cluster: str) -> "PodClues":
        """Return the same with names that are those of a cluster, given as `cluster_of` does."""
        if not cluster or not (self.place or self.named):
            return self
        named = self.named and self.named._replace(namespace=in_cluster(cluster, self.named.namespace))
        return self._replace(place=in_cluster(cluster, self.place), named=named)

    @property
    def stands_for_all(self) -> bool:
        """Whether this is the span that stands for what was done: a sync, a request, a call of a container runtime.

        Others are parts of such a one.
        """
        if self.server or self.client:
            return bool(
                self.place or self.action in UNNAMED or (self.server and (self.container_id or self.sandbox_id))
            )
        return bool(self.sync or (self.root and (self.container_id or self.sandbox_id)))

    @property
    def by_scheduler(self) -> bool:
        """Whether a program named as schedulers are asked, or one that calls itself that part of it."""
        return self.agent.partition("/")[0].endswith("scheduler") or self.agent.endswith("/scheduler")


def read_clues(span: SpanView) -> PodClues | None:
    """Return what a span says of its Pod; None for one that says nothing."""
    attributes = span.attributes
    kind = span.kind
    sighting = sighting_of_request(attributes, span.name, kind, span.start)
    container_id, sandbox_id = _runtime_id(attributes, _CONTAINER_KEYS), _runtime_id(attributes, _SANDBOX_KEYS)
    if sighting is None and not container_id and not sandbox_id:
        return None
    named = _taught(attributes, container_id, sandbox_id)
    uid, place, at, action, audit_id = sighting or Sighting("", "", 0)
    links = span.links
    return PodClues(
        trace_id=span.trace_id,
        span_id=span.span_id,
        start=span.start,
        end=span.end,
        uid=uid,
        place=place,
        action=action,
        audit_id=audit_id,
        container_id=container_id,
        sandbox_id=sandbox_id,
        named=named,
        sync=span.name if uid and span.name in SYNCS and not span.parent_span_id else "",
        server=kind == _SERVER_KIND,
        client=kind == _CLIENT_KIND,
        agent=_text(attributes.get("user_agent.original"))[:300],
        root=not span.parent_span_id,
        links=tuple(link.trace_id + link.span_id for link in links) if len(links) <= _MOST_LINKS else (),
        deletes=kind == _SERVER_KIND and _deletes(attributes, action),
        first_event=at if action == EVENT else 0,
    )


def _deletes(attributes: Mapping[str, Value], action: str) -> bool:
    method, code = attributes.get("http.request.method"), attributes.get("http.response.status_code")
    asks = (method == "DELETE" and not action) or (method == "POST" and action == "eviction")
    return asks and isinstance(code, int) and code < _REFUSED


def sighting_of_request(attributes: Mapping[str, Value], name: str, kind: int, start: int) -> Sighting | None:
    """Return which Pod a span with these attributes (those of `REQUEST_KEYS` suffice) is about.

    As `sighting_in`, and of requests from their client's side, and of those that write Events.
    """
    return (
        sighting_in(attributes, name, kind, start)
        or _client_sighting(attributes, kind, start)
        or _event(attributes, kind, start)
    )


def _client_sighting(attributes: Mapping[str, Value], kind: int, start: int) -> Sighting | None:
    """Return what a client's span of a request says: the Pod is in its URL alone."""
    url = _text(attributes.get("url.full")) if kind == _CLIENT_KIND else ""
    found = _URL.fullmatch(url) if url else None
    named = _POD_PATH.fullmatch(found[1]) if found else None
    place = sound_place(named[1], named[2]) if named else ""
    return Sighting("", place, start, (named[3] or "") if named else "") if place else None


def _event(attributes: Mapping[str, Value], kind: int, start: int) -> Sighting | None:
    audit_id = _runtime_id(attributes, (AUDIT_ID,))
    key = _text(attributes.get("key"))
    if found := _EVENT_KEY.fullmatch(key) if key else None:
        return _event_of(found[1], found[2], start, audit_id)
    url = _text(attributes.get("url.path") or attributes.get("http.target") if kind == _SERVER_KIND else "")
    url = url or _text(attributes.get("url.full") if kind == _CLIENT_KIND else "")
    if found := _EVENT_PATH.fullmatch(url) if url else None:
        return _event_of(found[1], found[2], start, audit_id)
    if url and (audit_id or kind == _CLIENT_KIND):
        for path, action in ((_EVENT_COLLECTION, EVENT), (_TOKEN_PATH, ACCOUNT)):
            if path.fullmatch(url):
                return Sighting("", "", start, action, audit_id)
    return None


def _event_of(namespace: str, name: str, start: int, audit_id: str) -> Sighting | None:
    found = _EVENT_NAME.fullmatch(name)
    place = sound_place(namespace, found[1]) if found else ""
    if found is None or not place:
        return None
    first = int(found[2], 16)
    return Sighting("", place, first if start - _OLDEST_EVENT < first < start else start, EVENT, audit_id)


def _taught(attributes: Mapping[str, Value], container_id: str, sandbox_id: str) -> NamedPod | None:
    if container_id and (named := pod_of_container(attributes.get("container.name"))):
        return named
    return pod_of_sandbox(attributes.get("sandbox.name")) if sandbox_id and not container_id else None


def _runtime_id(attributes: Mapping[str, Value], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and _RUNTIME_ID.fullmatch(value):
            return value
    return ""


def _text(value: Value) -> str:
    return value if isinstance(value, str) else ""
