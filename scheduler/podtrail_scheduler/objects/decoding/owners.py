"""The controller of an object, from its `metadata.ownerReferences`."""

from podtrail_scheduler.objects.pod import OwnerReference

from .reading import Json, flag, items, text


def controller(metadata: Json) -> OwnerReference | None:
    """The controller among the owners, None when there is none.

    Raises:
        ValueError: with the path that is wrong.
    """
    if "ownerReferences" not in metadata:
        return None
    return next(filter(None, items(metadata, "ownerReferences", _if_controller, "metadata")), None)


def controller_uid(metadata: Json) -> str:
    """Its uid, empty when there is none."""
    owner = controller(metadata)
    return "" if owner is None else owner.uid


def _if_controller(each: Json) -> OwnerReference | None:
    if not flag(each, "controller"):
        return None
    return OwnerReference(text(each, "kind"), text(each, "name"), text(each, "uid"), text(each, "apiVersion"))
