"""Keys of objects within their kind: `namespace/name`, or the name of what has no namespace."""

from typing import Protocol


class ByName:
    """An object without a namespace."""

    __slots__ = ()
    name: str

    @property
    def key(self) -> str:
        """The name."""
        return self.name


class ByNamespaceAndName:
    """An object in a namespace."""

    __slots__ = ()
    name: str
    namespace: str

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class ApiObject(Protocol):
    """Any of the objects of `podtrail_scheduler.objects`."""

    @property
    def key(self) -> str:
        """Namespace and name, or the name of what has no namespace."""
        ...
