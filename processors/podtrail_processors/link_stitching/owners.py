"""What a Pod was made for: from its creation to that of its ReplicaSet, and on to that of its Deployment.

The controllers of kube-controller-manager pass no context on. But each says which controller it is, and names what it
makes after what it makes it for; where the creation of just one such object is known, that one is meant.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from podtrail.recent import Reason, Recent
from podtrail_processors.link_stitching.neighbours import NamedCreation

_GENERATED: Final = r"[bcdfghjklmnpqrstvwxz2456789]"


class _Controller(NamedTuple):
    """What a controller makes, and for what."""

    makes: str
    owners: str
    name: re.Pattern[str]
    """The name of what it makes; the group is its owner's."""


_OF_TEMPLATES: Final = re.compile(rf"(.+)-{_GENERATED}{{5}}")
# `job-3-x5k2f` may be of the Job `job-3`, or of the Indexed Job `job`, whose indexes have up to six digits.
_OF_JOBS: Final = re.compile(rf"((?!.*-\d{{1,6}}-.{{5}}$).+)-{_GENERATED}{{5}}")
_LONGEST_OWNER: Final = 56
"""A longer name is cut off where a name is generated from it."""
_CONTROLLERS: Final = {
    "replicaset-controller": _Controller("pods", "replicasets", _OF_TEMPLATES),
    "replication-controller": _Controller("pods", "controllers", _OF_TEMPLATES),
    "daemon-set-controller": _Controller("pods", "daemonsets", _OF_TEMPLATES),
    "job-controller": _Controller("pods", "jobs", _OF_JOBS),
    "statefulset-controller": _Controller("pods", "statefulsets", re.compile(r"(.+)-\d+")),
    "deployment-controller": _Controller("replicasets", "deployments", re.compile(rf"(.+)-{_GENERATED}{{1,10}}")),
    "cronjob-controller": _Controller("jobs", "cronjobs", re.compile(r"(.+)-\d+")),
}


SavedOwners = tuple[tuple[str, int, tuple[NamedCreation, ...]], ...]
"""Creations in a saved state."""


class OwnerMemory:
    """Creations of what Pods are made for, by resource and name; bounded."""

    def __init__(self, most: int, ttl: int, forgotten: Callable[[str, object, Reason], None]) -> None:
        """Remember at most so many names, for `ttl` nanoseconds; `forgotten` is told of the others."""
        self._created: Recent[str, tuple[NamedCreation, ...]] = Recent(most, ttl, forgotten)

    def __len__(self) -> int:
        return len(self._created)

    def expire(self, now: int) -> None:
        """Forget what is too old."""
        self._created.expire(now)

    def deadline(self) -> int | None:
        """Return when the first entry is too old; None if there is none."""
        return self._created.deadline()

    def shrink(self, parts: int) -> None:
        """Forget the oldest of so many equal parts."""
        self._created.shrink(parts)

    def saved(self) -> "SavedOwners":
        """Return the creations."""
        return self._created.saved()

    def restore(self, saved: "SavedOwners") -> None:
        """Remember creations that were saved."""
        self._created.restore(saved)

    def take_over(self, other: "OwnerMemory") -> None:
        """Take what another knows; meant for an empty one."""
        self._created.move_in(other._created)

    def note(self, creation: NamedCreation, now: int) -> None:
        """Remember a creation; of one name at most two, which is one too many to tell."""
        key = _key(creation.resource, creation.place)
        known = [one for one in self._created.get(key) or () if one.span != creation.span]
        self._created.put(key, (*known, creation)[-2:], now)

    def take_back(self, creation: NamedCreation) -> None:
        """Forget a creation: it was refused, or is told of better."""
        key = _key(creation.resource, creation.place)
        kept = tuple(one for one in self._created.get(key) or () if one.span != creation.span)
        if key in self._created:
            self._created.replace(key, kept)

    def owners(self, creation: NamedCreation) -> list[NamedCreation]:
        """Return the creations of what an object may have been made for."""
        controller = _CONTROLLERS.get(creation.agent.rpartition(":")[2])
        if controller is None or controller.makes != creation.resource:
            return []
        namespace, _, name = creation.place.partition("/")
        found = controller.name.fullmatch(name)
        if found is None or len(found[1]) > _LONGEST_OWNER:
            return []
        known = self._created.get(_key(controller.owners, f"{namespace}/{found[1]}"))
        return [owner for owner in known or () if owner.start <= creation.end]


def _key(resource: str, place: str) -> str:
    return f"{resource}/{place}"
