"""How well volumes use the room there is: the share of capacity requested, through the configured shape."""

from collections.abc import Sequence

from podtrail_scheduler.configuration.args import UtilizationShapePoint
from podtrail_scheduler.framework.extension_points import MAX_SCORE

from .binder import PodVolumes

MAX_UTILIZATION = 100
MAX_SHAPE_SCORE = 10


def storage_score(volumes: PodVolumes, shape: Sequence[UtilizationShapePoint]) -> int:
    """The mean over the storage classes; 0 when nothing is known of any."""
    classes = _by_class(volumes)
    if not classes:
        return 0
    total = sum(_scored(shape, requested, capacity) for requested, capacity in classes.values())
    return (2 * total + len(classes)) // (2 * len(classes))


def _by_class(volumes: PodVolumes) -> dict[str, tuple[int, int]]:
    """Requested and capacity in bytes: of the volumes to bind, else of where volumes are to be made."""
    classes: dict[str, tuple[int, int]] = {}
    for claim, volume in volumes.bindings:
        requested, capacity = classes.get(volume.storage_class_name, (0, 0))
        classes[volume.storage_class_name] = requested + claim.request, capacity + volume.capacity
    if not volumes.bindings:
        for claim, storage in volumes.provisions:
            if storage is not None:
                name = claim.storage_class_name or ""
                classes[name] = classes.get(name, (0, 0))[0] + claim.request, storage.capacity or 0
    return classes


def _scored(shape: Sequence[UtilizationShapePoint], requested: int, capacity: int) -> int:
    full = capacity == 0 or requested > capacity
    return broken_linear(shape, MAX_UTILIZATION if full else requested * MAX_UTILIZATION // capacity)


def broken_linear(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    """The value at `utilization` (percent) of the line through the points, whose scores are stretched to 0 to 100."""
    factor = MAX_SCORE // MAX_SHAPE_SCORE
    for index, point in enumerate(shape):
        if utilization <= point.utilization:
            if index == 0:
                return point.score * factor
            before = shape[index - 1]
            rise = (point.score - before.score) * factor * (utilization - before.utilization)
            run = point.utilization - before.utilization
            return before.score * factor + (rise // run if rise >= 0 else -(-rise // run))
    return shape[-1].score * factor
