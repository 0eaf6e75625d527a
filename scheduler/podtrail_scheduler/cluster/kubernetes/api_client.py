"""The scheduler's requests to a real API server: binding, status, deletion, Events.

Each but an Event carries the current span's `traceparent`, so that the API server's spans of it (KEP-647) join the
attempt.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from podtrail_kubernetes.errors import NotSent, RequestFailed, StatusError, Unreachable
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

_PAUSES = (0.01, 0.05, 0.25)
"""Seconds (client-go's `retry.DefaultBackoff`)."""
_REFUSED = "ConnectionRefused"
_NOT_SENT = "NotSent"
_NOT_INTERNAL = frozenset(("ServerTimeout", "Timeout", "StoreReadError"))
"""Reasons of answers with 500 that are no InternalError."""

_propagator = TraceContextTextMapPropagator()


class ApiClient:
    """Implements podtrail_scheduler.framework.client.Client.

    `pod` looks a Pod up in what the watch showed; `status_limiter` holds back writes to Pod statuses, which must not
    take the place of bindings; `allowed` says before each write whether it may be sent.

    A binding or a write to a status that fails within the API server is sent again as kube-scheduler sends it (its
    `util.Retriable`): three times, within a third of a second.
    """

    def __init__(
        self,
        rest: RestClient,
        pod: Callable[[str], Pod | None],
        now: Callable[[], int],
        status_limiter: RateLimiter,
        allowed: Callable[[], bool] = lambda: True,
    ) -> None:
        self._rest = rest
        self._pod = pod
        self._now = now
        self._status_limiter = status_limiter
        self._allowed = allowed

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
        failures: list[ApiError] = []

        def may_help(failure: ApiError) -> bool:
            failures.append(failure)
            return _retriable(failure)

        try:
            await self._send_again(may_help, "POST", f"{_path(pod)}/binding", body)
        except ApiError as failure:
            if not any(map(_may_be_done, [*failures, failure])) or not await self._is_bound(pod, node_name):
                raise

    async def _is_bound(self, pod: Pod, node_name: str) -> bool:
        """Return whether a binding without a good answer has come through all the same."""
        try:
            found = await self._send_again(_retriable, "GET", _path(pod), None)
        except ApiError:
            return False
        uid, node = found.get("metadata", {}).get("uid"), found.get("spec", {}).get("nodeName")
        return (uid, node) == (pod.uid, node_name)

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
        await self._patch_status(pod, status, self._status_limiter)

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        """Takes the condition of that type out of a Pod's status.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        status = {"conditions": [{"type": condition, "$patch": "delete"}]}
        await self._patch_status(pod, status, self._status_limiter)

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
        await self._patch_status(pod, {"extendedResourceClaimStatus": status})

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

    async def _patch_status(self, pod: Pod, status: Mapping[str, Any], limiter: RateLimiter | None = None) -> None:
        body = {"metadata": {"uid": pod.uid}, "status": status}
        path = f"{_path(pod)}/status"
        await self._send_again(_retriable_or_conflict, "PATCH", path, body, STRATEGIC_MERGE_PATCH, limiter)

    async def _send_again(
        self, may_help: Callable[[ApiError], bool], method: str, path: str, *about: Any
    ) -> Mapping[str, Any]:
        for pause in _PAUSES:
            try:
                return await self._send(method, path, *about)
            except ApiError as refused:
                if not may_help(refused):
                    raise
            await asyncio.sleep(pause)
        return await self._send(method, path, *about)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        content_type: str = "application/json",
        limiter: RateLimiter | None = None,
    ) -> Mapping[str, Any]:
        headers: dict[str, str] = {}
        _propagator.inject(headers)
        with _as_api_error():
            return await self._rest.request(
                method,
                path,
                body,
                headers=headers,
                content_type=content_type,
                limiter=limiter,
                allowed=_always if method == "GET" else self._allowed,
            )


class ApiEventSink:
    """Implements podtrail_scheduler.event_recording.broadcaster.EventSink with events.k8s.io/v1.

    Its requests have a rate of their own, so that they never hold up bindings.
    """

    def __init__(self, rest: RestClient, limiter: RateLimiter, allowed: Callable[[], bool] = lambda: True) -> None:
        self._rest = rest
        self._limiter = limiter
        self._allowed = allowed

    async def create_event(self, event: Event) -> None:
        """Creates the Event.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        with _as_api_error():
            await self._rest.request(
                "POST", _events(event), event.manifest(), limiter=self._limiter, allowed=self._allowed
            )

    async def patch_event(self, event: Event) -> None:
        """Writes the series.

        Raises:
            ApiError: the API server refuses or can't be reached.
        """
        path = f"{_events(event)}/{event.name}"
        with _as_api_error():
            await self._rest.request(
                "PATCH",
                path,
                event.series_patch(),
                content_type=STRATEGIC_MERGE_PATCH,
                limiter=self._limiter,
                allowed=self._allowed,
            )


@contextmanager
def _as_api_error() -> Iterator[None]:
    try:
        yield
    except StatusError as refused:
        raise ApiError(refused.message, refused.reason, refused.code) from refused
    except NotSent as failure:
        raise ApiError(str(failure), _NOT_SENT) from failure
    except RequestFailed as failure:
        nobody_listens = isinstance(failure, Unreachable) and failure.refused
        raise ApiError(str(failure), _REFUSED if nobody_listens else "") from failure


def _always() -> bool:
    return True


def _retriable(error: ApiError) -> bool:
    """Return whether kube-scheduler sends a request again (`util.Retriable`)."""
    within = error.code == HTTPStatus.INTERNAL_SERVER_ERROR and error.reason not in _NOT_INTERNAL
    return within or error.code == HTTPStatus.SERVICE_UNAVAILABLE or error.reason == _REFUSED


def _retriable_or_conflict(error: ApiError) -> bool:
    """Return whether kube-scheduler sends a write to a status again (`util.RetriableWithConflict`)."""
    return _retriable(error) or error.code == HTTPStatus.CONFLICT


def _may_be_done(error: ApiError) -> bool:
    """Return whether a binding may have come through: there was no answer, or a failure of who answers."""
    unanswered = not error.code and error.reason not in (_REFUSED, _NOT_SENT)
    return unanswered or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR


def _path(pod: Pod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def _events(event: Event) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{event.namespace}/events"


def _object_path(each: ApiObject) -> str:
    namespace, _, name = each.key.rpartition("/")
    return f"{_COLLECTIONS[type(each)].format(namespace=namespace)}/{name}"


def _timestamp(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
