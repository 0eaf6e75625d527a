"""Which plugins of which profiles look at an event, and what they think of it."""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from .entry import QueuedPod
from .events import HINT_FAULTS, ClusterEvent, Happening, Hint, HintFunction, Hints

Looking = Mapping[str, Sequence[HintFunction]]
"""Hints by plugin."""

_NOBODY: Looking = {}


class Strategy(IntEnum):
    """What an event means to a refused Pod."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class Interest:
    """The hints of all profiles; which of them look at an event is found once for each kind."""

    def __init__(self, hints: Mapping[str, Hints]) -> None:
        """`hints` are by profile."""
        self._hints = hints
        self._looking: dict[ClusterEvent, _Audience] = {}

    def plugins(self, event: ClusterEvent) -> frozenset[str]:
        """The plugins, of whichever profile, that registered for `event`."""
        return self._of(event).plugins

    def strategy(self, entry: QueuedPod, happening: Happening) -> Strategy:
        """The best that a plugin which refused the Pod hopes for: only their hints are asked."""
        rejectors = entry.rejectors
        if not rejectors:
            return Strategy.AFTER_BACKOFF
        if happening.event.is_wildcard:
            concerned = happening.new is None or getattr(happening.new, "uid", None) == entry.pod.uid
            return Strategy.AFTER_BACKOFF if concerned else Strategy.SKIP
        if entry.pod.scheduler_name not in self._hints:
            return Strategy.AFTER_BACKOFF
        best = Strategy.SKIP
        for plugin, hints in self._of(happening.event).by_profile.get(entry.pod.scheduler_name, _NOBODY).items():
            if plugin not in rejectors or not _hopeful(hints, entry, happening):
                continue
            if plugin in entry.pending_on:
                return Strategy.IMMEDIATELY
            if not entry.pending_on:
                return Strategy.AFTER_BACKOFF
            best = Strategy.AFTER_BACKOFF
        return best

    def _of(self, event: ClusterEvent) -> "_Audience":
        known = self._looking.get(event)
        if known is None:
            by_profile = {profile: _looking(hints, event) for profile, hints in self._hints.items()}
            plugins = frozenset(plugin for looking in by_profile.values() for plugin in looking)
            known = self._looking[event] = _Audience(by_profile, plugins)
        return known


class _Audience(NamedTuple):
    by_profile: Mapping[str, Looking]
    plugins: frozenset[str]


def _looking(hints: Hints, event: ClusterEvent) -> Looking:
    found: dict[str, list[HintFunction]] = {}
    for registered, plugins in hints.items():
        if registered.covers(event):
            for plugin, hint in plugins:
                found.setdefault(plugin, []).append(hint)
    return found


def _hopeful(hints: Sequence[HintFunction], entry: QueuedPod, happening: Happening) -> bool:
    for hint in hints:
        try:
            if hint(entry.pod, happening) is Hint.QUEUE:
                return True
        except HINT_FAULTS:
            return True
    return False
