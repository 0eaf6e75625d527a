"""The simulated API server's objects other than Pods and Nodes, with resource versions as a real one gives them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from podtrail_scheduler.framework.client import ApiError
from podtrail_scheduler.objects import ApiObject
from podtrail_scheduler.objects.decoding import decode

Kind = TypeVar("Kind", bound=ApiObject)
Told = Callable[[ApiObject | None, ApiObject | None], None]
"""The object before and after a change."""


class ObjectStore:
    """By type and key; each write gives the object the next resource version."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._objects: dict[tuple[type, str], ApiObject] = {}
        self._version = 0

    def put(self, item: Kind) -> Kind:
        """Somebody created or changed the object; returns it as it is now."""
        self._version += 1
        place = type(item), item.key
        old = self._objects.get(place)
        written: Any = item
        stored: Kind = replace(written, resource_version=str(self._version))
        self._objects[place] = stored
        self._told(old, stored)
        return stored

    def create(self, manifest: Mapping[str, Any]) -> ApiObject:
        """Somebody creates the object of a manifest; the store gives it its uid, and its name after `generateName`."""
        metadata = dict(manifest["metadata"])
        mark = f"{self._version + 1:05}"
        metadata = {"name": f"{metadata.get('generateName', '')}{mark}", "uid": f"uid-{mark}", **metadata}
        return self.put(decode({**manifest, "metadata": metadata}))

    def remove(self, item: ApiObject) -> None:
        """Somebody deleted the object."""
        old = self._objects.pop((type(item), item.key), None)
        if old is not None:
            self._told(old, None)

    def patch(self, changed: Kind) -> Kind:
        """Puts `changed` if its resource version is still that of the object.

        Raises:
            ApiError: the object is gone, or has another resource version.
        """
        current: Any = self._objects.get((type(changed), changed.key))
        patched: Any = changed
        collection = f"{type(changed).__name__.lower()}s"
        name = changed.key.rpartition("/")[2]
        if current is None:
            raise ApiError(f'{collection} "{name}" not found', "NotFound", 404)
        if current.resource_version != patched.resource_version:
            text = "the object has been modified; please apply your changes to the latest version and try again"
            raise ApiError(f'Operation cannot be fulfilled on {collection} "{name}": {text}', "Conflict", 409)
        return self.put(changed)
