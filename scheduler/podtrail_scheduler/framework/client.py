"""What the scheduler asks of the API server."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from podtrail_scheduler.objects import ApiObject, Pod
from podtrail_scheduler.objects.pod import ExtendedClaim

Kind = TypeVar("Kind", bound=ApiObject)


class ApiError(Exception):
    """The API server refused a request, or could not be asked; the text is its answer.

    `reason` is the Status's (`NotFound`, `Conflict`, ...), `code` the HTTP status, 0 without an answer.
    """

    def __init__(self, message: str, reason: str = "", code: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.code = code


class PodCondition(NamedTuple):
    """A condition to write into a Pod's status."""

    type: str
    status: str
    reason: str
    message: str


POD_SCHEDULED = "PodScheduled"
DISRUPTION_TARGET = "DisruptionTarget"


class Client(Protocol):
    """Requests to the API server: all but `get_pod` may take long, and raise `ApiError`."""

    def get_pod(self, uid: str) -> Pod | None:
        """The Pod as the watch last showed it, None when it is gone. No request."""
        ...

    async def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Binds and merges `annotations` into the Pod, in one request."""
        ...

    async def patch_pod_status(self, pod: Pod, condition: PodCondition | None, nominated_node: str | None) -> None:
        """Writes a condition (None: none) and the Pod's nominated node (None: as before, empty: none)."""
        ...

    async def remove_pod_condition(self, pod: Pod, condition: str) -> None:
        """Takes the condition of that type out of a Pod's status."""
        ...

    async def delete_pod(self, pod: Pod) -> None:
        """Has a Pod terminate, with its grace."""
        ...

    async def patch_pod_extended_claim(self, pod: Pod, claim: ExtendedClaim) -> None:
        """Writes into the Pod's status which claim was made for its extended resources."""
        ...

    async def create_object(self, manifest: Mapping[str, Any]) -> ApiObject:
        """Creates an object that is no Pod; returned is the object as written."""
        ...

    async def delete_object(self, gone: ApiObject) -> None:
        """Deletes an object that is no Pod."""
        ...

    async def patch(self, changed: Kind, patch: Mapping[str, Any], subresource: str = "") -> Kind:
        """Merges `patch` into the object, on condition that it still has the resource version of `changed`.

        `changed` is the object as it will be, but for its resource version; returned is the object as written.
        """
        ...
