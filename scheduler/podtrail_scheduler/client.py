"""What the scheduler asks of the API server."""

from collections.abc import Mapping
from typing import Protocol

from .objects import Pod


class ApiError(Exception):
    """The API server refused a request; the text is its answer."""


class Client(Protocol):
    """Requests that take as long as they take (`bind`) or go out in the background (the others)."""

    def get_pod(self, uid: str) -> Pod | None:
        """The Pod as the watch last showed it, None when it is gone."""
        ...

    def bind(self, pod: Pod, node_name: str, annotations: Mapping[str, str]) -> None:
        """Binds and merges `annotations` into the Pod, in one request. Raises ApiError."""
        ...

    def delete_pod(self, pod: Pod, reason: str) -> None:
        """Has a Pod terminate, with its grace."""
        ...

    def patch_status(self, pod: Pod, message: str, nominated_node: str | None) -> None:
        """Tells in the Pod's status why it is not scheduled, and which node it hopes for (None: as before)."""
        ...
