"""A case: a cluster and the Pods that are scheduled in it, one after the other."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

Object = dict[str, Any]
"""An object of the Kubernetes API as its JSON is."""


class Change(NamedTuple):
    """Something that happens to the cluster while a Pod waits."""

    verb: str
    """create, patch or delete."""
    obj: Object
    """What is created or deleted; of what is patched, the kind and the name."""
    patch: Mapping[str, Any] = MappingProxyType({})
    """As in RFC 7386."""
    subresource: str = ""


class Case(NamedTuple):
    """One cluster, by one profile."""

    name: str
    """`family/number`."""
    profile: str
    """The `schedulerName` of the Pods."""
    objects: tuple[Object, ...]
    """The cluster, Pods that are bound included."""
    pods: tuple[Object, ...]
    """To be scheduled, in this order."""
    change: Change | None = None
    """Happens when no node has been found for the first Pod."""
    between: tuple[tuple[Change, ...], ...] = ()
    """What happens before each of the Pods is there; a change of an object that is not is none."""

    @property
    def family(self) -> str:
        """What the case is about."""
        return self.name.partition("/")[0]

    @property
    def rounds(self) -> list[tuple[Object, tuple[Change, ...]]]:
        """Each Pod, and what happens before it is there."""
        return list(zip(self.pods, self.between or [()] * len(self.pods), strict=True))

    @property
    def digest(self) -> str:
        """Changes with anything in the case: an answer is of use only for the case it was recorded from."""
        change = [] if self.change is None else [_as_json(self.change)]
        between = [list(map(_as_json, changes)) for changes in self.between]
        text = json.dumps([self.profile, self.objects, self.pods, *change, *between], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _as_json(change: Change) -> list[Any]:
    return [*change[:2], dict(change.patch), change.subresource]


def identity(obj: Object) -> tuple[str, str, str]:
    """Kind, namespace and name."""
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def merged(target: Any, patch: Any) -> Any:
    """`target` after a merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def of_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """The objects of one kind, in their order."""
    return [each for each in objects if each["kind"] == kind]
