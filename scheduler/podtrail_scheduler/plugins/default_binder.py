# ruff: noqa: ARG002 - a plugin is given what its extension point has, used or not
"""DefaultBinder: binds through the API server, the trace context's annotations in the same request."""

from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.framework.cycle_state import CycleState
from podtrail_scheduler.framework.handle import Handle
from podtrail_scheduler.framework.status import Status, error
from podtrail_scheduler.objects import Pod


class DefaultBinder:
    """Binds."""

    name = "DefaultBinder"
    in_tree = True

    def __init__(self, handle: Handle, args: None = None) -> None:
        self._client = handle.client

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """An error with the API server's answer when it refuses."""
        try:
            await self._client.bind(pod, node_name, state.binding_annotations)
        except ApiError as refused:
            return error(str(refused))
        return None
