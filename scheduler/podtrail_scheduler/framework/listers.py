"""The objects besides Pods and Nodes that plugins look up, as the watches last showed them."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, cast

from podtrail_scheduler.objects import ApiObject

Kind = TypeVar("Kind", bound=ApiObject)
Made = TypeVar("Made")

_NOTHING: Mapping[str, ApiObject] = {}


class Listers:
    """By type and key. Only whoever follows the watches changes it."""

    def __init__(self, objects: Iterable[ApiObject] = ()) -> None:
        self._objects: dict[type, dict[str, ApiObject]] = {}
        self.versions: dict[type, int] = {}
        """Counts the changes of each type, so that what was made of its objects is made anew only then."""
        self._subscribers: list[Callable[[], None]] = []
        self._shared: dict[Callable[[Listers], object], object] = {}
        for each in objects:
            self.put(each)

    def get(self, kind: type[Kind], key: str) -> Kind | None:
        """The object of that type and key (`namespace/name`, or `name`), None when there is none."""
        return cast("Kind | None", self._objects.get(kind, _NOTHING).get(key))

    def all(self, kind: type[Kind]) -> Iterable[Kind]:
        """All objects of that type, in the order in which they came."""
        return cast("Iterable[Kind]", self._objects.get(kind, _NOTHING).values())

    def version(self, kind: type[Kind]) -> int:
        """How often objects of that type have changed."""
        return self.versions.get(kind, 0)

    def shared(self, make: Callable[["Listers"], Made]) -> Made:
        """What plugins, those of other profiles too, keep together beside the objects; made when first asked for."""
        if make not in self._shared:
            self._shared[make] = make(self)
        return cast("Made", self._shared[make])

    def put(self, item: ApiObject) -> None:
        """Adds an object, or puts it in the place of its earlier self."""
        self._objects.setdefault(type(item), {})[item.key] = item
        self._changed(type(item))

    def remove(self, item: ApiObject) -> None:
        """Removes the object of that type and key, if it is there."""
        if self._objects.get(type(item), {}).pop(item.key, None) is not None:
            self._changed(type(item))

    def subscribe(self, subscriber: Callable[[], None]) -> None:
        """Calls `subscriber` after each change, so that who waits for one need not poll."""
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Callable[[], None]) -> None:
        """Ends a subscription."""
        self._subscribers.remove(subscriber)

    def view(self) -> "Listers":
        """The same objects, as the watches go on to show them, for who must not change them."""
        view = _ReadListers()
        view._objects, view.versions = self._objects, self.versions
        view._subscribers, view._shared = self._subscribers, self._shared
        return view

    def _changed(self, kind: type) -> None:
        self.versions[kind] = self.versions.get(kind, 0) + 1
        for subscriber in tuple(self._subscribers):
            subscriber()


class _ReadListers(Listers):
    def put(self, item: ApiObject) -> None:
        raise TypeError(f"{item.key} can't be put by a plugin: what the watches show is here")

    def remove(self, item: ApiObject) -> None:
        raise TypeError(f"{item.key} can't be removed by a plugin: what the watches show is here")
