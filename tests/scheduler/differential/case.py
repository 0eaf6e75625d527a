"""A case: a cluster and the Pods that are scheduled in it, one after the other."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

Object = dict[str, Any]
"""An object of the Kubernetes API as its JSON is."""


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

    @property
    def family(self) -> str:
        """What the case is about."""
        return self.name.partition("/")[0]

    @property
    def digest(self) -> str:
        """Changes with anything in the case: an answer is of use only for the case it was recorded from."""
        text = json.dumps([self.profile, self.objects, self.pods], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def of_kind(objects: Sequence[Object], kind: str) -> list[Object]:
    """The objects of one kind, in their order."""
    return [each for each in objects if each["kind"] == kind]
