"""Which DeviceClass stands for which extended resource (KEP-5004)."""

from collections.abc import Iterable, Mapping

from podtrail_scheduler.framework.listers import Listers
from podtrail_scheduler.objects import Node, Pod
from podtrail_scheduler.objects.quantities import DEVICE_CLASSES
from podtrail_scheduler.objects.resource import DeviceClass


class ExtendedResources:
    """Follows the classes. Of several that claim one resource the newest has it, then the first by name."""

    def __init__(self, listers: Listers) -> None:
        self._listers = listers
        self._version = 0
        self._classes: dict[str, DeviceClass] = {}

    def classes(self) -> Mapping[str, DeviceClass]:
        """The DeviceClass of each extended resource, by the resource's name."""
        version = self._listers.versions.get(DeviceClass, 0)
        if version != self._version:
            self._version = version
            newest_last = sorted(self._listers.all(DeviceClass), key=lambda each: each.name, reverse=True)
            newest_last.sort(key=lambda each: each.creation_timestamp)
            named = {each.extended_resource_name: each for each in newest_last if each.extended_resource_name}
            self._classes = {**named, **{f"{DEVICE_CLASSES}{each.name}": each for each in newest_last}}
        return self._classes

    def wanted(self, pod: Pod) -> list[str]:
        """The resources that the Pod asks for and a class stands for."""
        classes = self.classes()
        return [name for name, amount in pod.requests.items() if amount and name in classes] if classes else []

    def delegated(self, names: Iterable[str], node: Node) -> list[str]:
        """Those of the resources that the node would give by its devices, as it does not count them itself."""
        classes = self.classes()
        return [name for name in names if name in classes and not node.allocatable.get(name)] if classes else []
