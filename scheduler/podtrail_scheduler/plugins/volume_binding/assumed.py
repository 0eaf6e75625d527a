"""What the watches show of volumes and claims, with what binding cycles under way have decided about them."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import PersistentVolume, PersistentVolumeClaim
from podtrail_scheduler.plugins.shared.volume_claims import class_of

Kind = TypeVar("Kind", bound=PersistentVolume | PersistentVolumeClaim)


class Assumed(Generic[Kind]):
    """An assumed object holds until a watch shows a newer version of it."""

    def __init__(self, listers: Listers, kind: type[Kind]) -> None:
        self._listers = listers
        self._kind = kind
        self._assumed: dict[str, Kind] = {}
        self._version = -1
        self._by_class: dict[str, list[str]] = {}

    def shown(self, key: str) -> Kind | None:
        """The object as the watch last showed it."""
        return self._listers.get(self._kind, key)

    def get(self, key: str) -> Kind | None:
        """The object as assumed, else as shown."""
        shown = self.shown(key)
        return None if shown is None else self._current(shown)

    def of_class(self, name: str) -> Iterable[Kind]:
        """All objects of a storage class."""
        version = self._listers.version(self._kind)
        if version != self._version:
            self._version, self._by_class = version, {}
            for each in self._listers.all(self._kind):
                self._by_class.setdefault(class_of(each), []).append(each.key)
        for key in self._by_class.get(name, ()):
            item = self.get(key)
            assert item is not None
            yield item

    def assume(self, item: Kind) -> str:
        """Has `item` stand for what is shown; returns why not when that has changed meanwhile, else nothing."""
        shown = self.shown(item.key)
        if shown is None:
            return f'"{item.key}" not found'
        if shown.resource_version != item.resource_version:
            return f'"{item.key}" is out of sync (stored: {shown.resource_version}, assume: {item.resource_version})'
        self._assumed[item.key] = item
        return ""

    def restore(self, item: Kind) -> None:
        """Forgets what was assumed of that version of the object."""
        assumed = self._assumed.get(item.key)
        if assumed is not None and assumed.resource_version == item.resource_version:
            del self._assumed[item.key]

    def _current(self, shown: Kind) -> Kind:
        assumed = self._assumed.get(shown.key)
        if assumed is None:
            return shown
        if assumed.resource_version != shown.resource_version:
            del self._assumed[shown.key]
            return shown
        return assumed
