"""Writes Events to a real API server, at a rate of their own so that they never hold up bindings."""

from collections.abc import Mapping
from typing import Any

from podtrail_kubernetes.errors import RequestFailed, StatusError
from podtrail_kubernetes.rate_limiter import RateLimiter
from podtrail_kubernetes.rest_client import STRATEGIC_MERGE_PATCH, RestClient

from podtrail_scheduler.event_recording.event import Event
from podtrail_scheduler.framework.client import ApiError


class ApiEventSink:
    """Implements podtrail_scheduler.event_recording.broadcaster.EventSink with events.k8s.io/v1."""

    def __init__(self, rest: RestClient, limiter: RateLimiter) -> None:
        self._rest = rest
        self._limiter = limiter

    async def create_event(self, event: Event) -> None:
        """Creates the Event. Raises ApiError."""
        await self._send("POST", _events(event), event.manifest(), "application/json")

    async def patch_event(self, event: Event) -> None:
        """Writes the series. Raises ApiError."""
        await self._send("PATCH", f"{_events(event)}/{event.name}", event.series_patch(), STRATEGIC_MERGE_PATCH)

    async def _send(self, method: str, path: str, body: Mapping[str, Any], content_type: str) -> None:
        try:
            await self._rest.request(method, path, body, content_type=content_type, limiter=self._limiter)
        except StatusError as refused:
            raise ApiError(refused.message, refused.reason, refused.code) from refused
        except RequestFailed as failure:
            raise ApiError(str(failure)) from failure


def _events(event: Event) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{event.namespace}/events"
