"""Who created a Pod and who had it deleted, from the API server's spans: by name, where one Pod alone can be meant."""

from collections.abc import Container, Iterable
from math import isfinite
from typing import Final, NamedTuple

from podtrail.lru import Lru
from podtrail.otlp import Group, SpanView, cluster_name, split
from podtrail.story.pod_facts import in_cluster_of
from podtrail.story.values import number, text

_CREATED: Final = b"Create etcd3"
_DELETED: Final = b"DELETE /api/v1/namespaces/{:namespace}/pods/{:name}"
_EVICTED: Final = b"POST /api/v1/namespaces/{:namespace}/pods/{:name}/eviction"
_POSTED: Final = "POST /api/v1/namespaces/{:namespace}/pods"
_POSTS: Final = b"POST /api/v1/namespaces/{:namespace}/pods"
_MOST_PODS: Final = 5_000
_MOST_OF_ONE: Final = 16
_LONGEST: Final = 256


class PodRequest(NamedTuple):
    """A request of the API server about a Pod."""

    verb: str
    """`created`, `deleted` or `evicted`."""
    start_unix_nano: int
    took: int
    """Nanoseconds."""
    agent: str
    """The client's user agent; "" where its span is not here."""
    trace_id: bytes

    @property
    def asked(self) -> str:
        """What a request that ended the Pod asked for: `deletion` or `eviction`."""
        return "eviction" if self.verb == "evicted" else "deletion"

    @property
    def who(self) -> str:
        """The client without its version: `kubectl`; of one that is not Kubernetes' own, how that is known."""
        program = self.agent.partition("/")[0].partition(" ")[0]
        # A user's name would read the same, and no span of the API server has it.
        return program if program.startswith("kube") or not program else f"{program} (its user agent)"


class PodRequests:
    """Requests that created and deleted Pods lately, by the Pods' names."""

    def __init__(self) -> None:
        self._of: Lru[str, tuple[PodRequest, ...]] = Lru(_MOST_PODS)
        self._posted: Lru[bytes, PodRequest] = Lru(_MOST_PODS)
        """By trace, the requests of creations: whom they made is told by another span of it."""

    def read(self, groups: Iterable[Group]) -> None:
        """Take in spans of one trace."""
        for group in groups:
            if any(mark in group.spans for mark in _MARKS):
                for raw in split(group.spans):
                    if any(mark in raw for mark in _MARKS):
                        self._read(SpanView(raw), cluster_name(group.resource))

    def _read(self, span: SpanView, cluster: str) -> None:
        attributes = span.attributes
        agent = text(attributes.get("user_agent.original"))[:_LONGEST]
        request = PodRequest("created", span.start, span.duration or 0, agent, span.trace_id)
        if span.name == _POSTED:
            self._posted.put(span.trace_id, request)
        elif span.name == _CREATED.decode() and attributes.get("resource") == "pods":
            self._note(text(attributes.get("key")).rpartition("/pods/")[2], cluster, request)
        elif span.name in _ENDS and number(attributes.get("http.response.status_code")) in (200, 201, 202):
            namespace, _, name = text(attributes.get("url.path")).removeprefix(_PATH).partition("/pods/")
            if not agent.startswith("kubelet/"):  # the kubelet's takes away what is over already
                pod = f"{namespace}/{name.removesuffix('/eviction')}"
                self._note(pod, cluster, request._replace(verb=_ENDS[span.name]))

    def _note(self, pod: str, cluster: str, request: PodRequest) -> None:
        key = in_cluster_of(cluster, pod)
        known = self._of.get(key) or ()
        if pod.count("/") == 1 and len(pod) < 2 * _LONGEST and request not in known:
            inorder = sorted((*known, request), key=lambda one: one.start_unix_nano)
            self._of.put(key, tuple(inorder[-_MOST_OF_ONE:]))

    def of(
        self, pod: str, traces: Container[bytes] | None = None, *, since: float = 0
    ) -> tuple[PodRequest | None, PodRequest | None]:
        """Return the creation and the deletion of the one Pod of a name; None for each that may be another one's.

        Args:
            pod: Its namespace and name, in its cluster.
            traces: Where several Pods had the name: the traces that the Pod's own are linked with.
            since: When it was seen first, Unix nanoseconds: an earlier deletion ended another Pod of its name.
        """
        known = self._of.get(pod) or ()
        known = tuple(one for one in known if traces is None or one.trace_id in traces)
        created = [one for one in known if one.verb == "created"]
        deleted = [one for one in known if one.verb in ("deleted", "evicted")]
        if len(created) > 1:
            return None, None
        since = created[0].start_unix_nano if created else since if isfinite(since) else 0
        deleted = [one for one in deleted if one.start_unix_nano >= since]
        creation = self._posted.get(created[0].trace_id, created[0]) if created else None
        return creation, deleted[0] if deleted else None


_MARKS: Final = (_CREATED, _DELETED, _EVICTED, _POSTS)
_ENDS: Final = {_DELETED.decode(): "deleted", _EVICTED.decode(): "evicted"}
_PATH: Final = "/api/v1/namespaces/"
