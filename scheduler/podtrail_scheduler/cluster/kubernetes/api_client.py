"""The scheduler's requests to a real API server: binding, status, deletion, Events.

Each but an Event carries the current span's `traceparent`, so that the API server's spans of it (KEP-647) join the
attempt.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from podtrail_kubernetes.errors import RequestFailed, StatusError
from podtrail_kubernetes.rate_limiter import RateLimiter
from podtrail_kubernetes.rest_client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, RestClient

from podtrail_scheduler.event_recording.event import Event
from podtrail_scheduler.framework.client import ApiError, Kind, PodCondition
from podtrail_scheduler.objects import ApiObject, PersistentVolume, PersistentVolumeClaim, Pod
from podtrail_scheduler.objects.decoding import decode
from podtrail_scheduler.objects.pod import ExtendedClaim
from podtrail_scheduler.objects.resource import ResourceClaim

_COLLECTIONS: Mapping[type, str] = {
    PersistentVolume: "/api/v1/persistentvolumes",
    PersistentVolumeClaim: "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    ResourceClaim: "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
}

_propagator = TraceContextTextMapPropagator()


class ApiClient:
    """Implements podtrail_scheduler.framework.client.Client.

    `pod` looks a Pod up in what the watch showed; `status_limiter` holds back writes to Pod statuses, which must not
    take the place of bindings.
    """

    def __init__(
        self,
        rest: RestClient,
        pod: Callable[[str], Pod | None],
        now: Callable[[], int],
        status_limiter: RateLimiter,
    ) -> None:
        self._rest = rest
        self._pod = pod
        self._now = now
        self._status_limiter = status_limiter

    def get_pod(self, uid: str) -> Pod | None:
        """The Pod as the watch last showed it, None when it is gone. No request."""
        return self._pod(uid)

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Binds and merges `annotations` into the Pod, in one request.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        metadata: dict[str, Any] = {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid}
        if annotations:
            metadata["annotations"] = dict(annotations)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"kind": "Node", "name": node_name},
        }
        await self._send("POST", f"{_path(pod)}/binding", body)

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        """Writes a condition (None: none) and the Pod's nominated node (None: as before, empty: none).

        What the Pod already says is not written again.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        status: dict[str, Any] = {}
        if condition is not None:
            before = pod.conditions.get(condition.type)
            if before != (condition.status, condition.reason, condition.message):
                changed = before is None or before[0] != condition.status
                transition = {"lastTransitionTime": _timestamp(self._now())} if changed else {}
                status["conditions"] = [condition._asdict() | {"lastProbeTime": None} | transition]
        if nominated_node is not None and nominated_node != pod.nominated_node_name:
            status["nominatedNodeName"] = nominated_node or None
        if not status:
            return
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._send("PATCH", f"{_path(pod)}/status", body, STRATEGIC_MERGE_PATCH, self._status_limiter)

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        """Takes the condition of that type out of a Pod's status.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        status = {"conditions": [{"type": condition, "$patch": "delete"}]}
        body = {"metadata": {"uid": pod.uid}, "status": status}
        await self._send("PATCH", f"{_path(pod)}/status", body, STRATEGIC_MERGE_PATCH, self._status_limiter)

    async def delete_pod(self, pod: Pod) -> None:
        """Has a Pod terminate, with its grace; no other one of its name.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        await self._send("DELETE", _path(pod), {"preconditions": {"uid": pod.uid}})

    async def patch_pod_extended_claim(self, pod: Pod, claim: ExtendedClaim) -> None:
        """Writes into the Pod's status which claim was made for its extended resources.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        mappings = [
            {"containerName": each.container, "resourceName": each.resource, "requestName": each.request}
            for each in claim.mappings
        ]
        status = {"resourceClaimName": claim.name, "requestMappings": mappings}
        body = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        await self._send("PATCH", f"{_path(pod)}/status", body, STRATEGIC_MERGE_PATCH)

    async def create_object(self, manifest: Mapping[str, Any]) -> ApiObject:
        """Creates an object that is no Pod.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        path = _COLLECTIONS[type(decode(manifest))].format(namespace=manifest["metadata"].get("namespace"))
        return decode(await self._send("POST", path, manifest))

    async def delete_object(self, gone: ApiObject) -> None:
        """Deletes an object that is no Pod; no other one of its name.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        await self._send("DELETE", _object_path(gone), {"preconditions": {"uid": getattr(gone, "uid", None)}})

    async def patch(self, changed: Kind, patch: Mapping[str, Any], subresource: str = "") -> Kind:
        """Merges `patch` into the object if it still has the resource version of `changed`.

        Raises:
            ApiError: the API server refuses (409: it has another) or can't be reached.
        """
        metadata = {**patch.get("metadata", {}), "resourceVersion": getattr(changed, "resource_version", "")}
        path = _object_path(changed)
        path = f"{path}/{subresource}" if subresource else path
        answer = await self._send("PATCH", path, {**patch, "metadata": metadata}, MERGE_PATCH)
        written = decode(answer)
        assert isinstance(written, type(changed))
        return written

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any],
        content_type: str = "application/json",
        limiter: RateLimiter | None = None,
    ) -> Mapping[str, Any]:
        headers: dict[str, str] = {}
        _propagator.inject(headers)
        with _as_api_error():
            return await self._rest.request(
                method, path, body, headers=headers, content_type=content_type, limiter=limiter
            )


class ApiEventSink:
    """Implements podtrail_scheduler.event_recording.broadcaster.EventSink with events.k8s.io/v1.

    Its requests have a rate of their own, so that they never hold up bindings.
    """

    def __init__(self, rest: RestClient, limiter: RateLimiter) -> None:
        self._rest = rest
        self._limiter = limiter

    async def create_event(self, event: Event) -> None:
        """Creates the Event.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        with _as_api_error():
            await self._rest.request("POST", _events(event), event.manifest(), limiter=self._limiter)

    async def patch_event(self, event: Event) -> None:
        """Writes the series.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        path = f"{_events(event)}/{event.name}"
        with _as_api_error():
            await self._rest.request(
                "PATCH", path, event.series_patch(), content_type=STRATEGIC_MERGE_PATCH, limiter=self._limiter
            )


@contextmanager
def _as_api_error() -> Iterator[None]:
    try:
        yield
    except StatusError as refused:
        raise ApiError(refused.message, refused.reason, refused.code) from refused
    except RequestFailed as failure:
        raise ApiError(str(failure)) from failure


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _events(event: Event) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{event.namespace}/events"


def _object_path(each: ApiObject) -> str:
    namespace, _, name = each.key.rpartition("/")
    return f"{_COLLECTIONS[type(each)].format(namespace=namespace)}/{name}"


def _timestamp(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
