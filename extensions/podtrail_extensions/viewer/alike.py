"""Pods of the front page that wait for the same reason."""

import asyncio
from typing import NamedTuple

from podtrail.story import TO_LOOK_AT, Stories, quoted
from podtrail.story.pending_question import PodsAlike, pods_alike
from podtrail_extensions.viewer.views import MAX_QUERY, PodFilter

_MANY = 1_000
"""Pods from which on a thread groups them."""
_MOST = 8
_MOST_OTHERS = 12
_LEAST = 2
_CUT = 90
"""Characters of a reason that a search names, for people: `alike:` finds just the group."""


class AlikeView(NamedTuple):
    """Who waits for the same reason: of all groups, those that are listed."""

    groups: tuple[PodsAlike, ...] = ()
    others: tuple[PodsAlike, ...] = ()
    """The next ones, in short: a link each."""
    pods: int = 0
    """Pods that wait, in all."""
    reasons: int = 0
    """What they wait for, as `podtrail why pending` counts it."""

    @property
    def other_pods(self) -> int:
        """Those that are not listed."""
        return self.pods - sum(group.pods for group in self.groups)

    @property
    def other_reasons(self) -> int:
        """Those that are not listed."""
        return self.reasons - len(self.groups)

    @property
    def untold_reasons(self) -> int:
        """Those of which not even a link is there."""
        return self.other_reasons - len(self.others)


class AlikeGroups:
    """The groups of Pods that wait, gathered anew where stories have changed."""

    def __init__(self, stories: Stories) -> None:
        self._stories = stories
        self._gathered_at = -1
        self._known: tuple[PodsAlike, ...] = ()

    async def of(self, wanted: PodFilter) -> AlikeView:
        """Return the groups of several Pods, the largest first, where the whole list is looked at; else nothing."""
        if wanted != PodFilter(sort=wanted.sort) or wanted.state != TO_LOOK_AT:
            return AlikeView()
        if self._gathered_at != self._stories.changes:
            changes, pods = self._stories.changes, self._stories.pods()
            known = await asyncio.to_thread(pods_alike, pods) if len(pods) > _MANY else pods_alike(pods)
            self._gathered_at, self._known = changes, known
        listed = tuple(group for group in self._known if group.pods >= _LEAST)[:_MOST]
        others = tuple(group for group in self._known if group not in listed)[:_MOST_OTHERS] if listed else ()
        return AlikeView(listed, others, sum(group.pods for group in self._known), len(self._known))


def alike_query(group: PodsAlike) -> str:
    """Return the search that finds just the Pods of a group, with as much of its reason as there is room for."""
    found = f" alike:{group.alike}"
    said = f"state:{quoted(group.state)}"
    for part in group.reason.split("; "):
        term = f" reason:{quoted(part[:_CUT].strip())}"
        said += term if part.strip() and len(said) + len(term) + len(found) <= MAX_QUERY else ""
    return said + found
