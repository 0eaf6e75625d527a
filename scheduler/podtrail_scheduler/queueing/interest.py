"""Whether an event is worth another attempt of a Pod: the queueing hints of the plugins that refused it (KEP-4247)."""

import logging
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from podtrail_scheduler.framework.aside import is_raised_by_plugin
from podtrail_scheduler.framework.events import ClusterEvent, Happening, Hint, HintFunction, Hints
from podtrail_scheduler.framework.queued_pod import QueuedPod

Looking = Mapping[str, Sequence[HintFunction]]
"""Hints by plugin."""


class Strategy(IntEnum):
    """What an event means to a refused Pod (kube-scheduler's `queueingStrategy`)."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


_logger = logging.getLogger("podtrail_scheduler.queueing")
_AFTER_BACKOFF = Strategy.AFTER_BACKOFF


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
        """What `happening` means to `entry`."""
        return self.judge(happening)(entry)

    def judge(self, happening: Happening) -> Callable[[QueuedPod], Strategy]:
        """What `happening` means to Pods, one after the other: the best answer of the plugins that refused a Pod.

        Only the hints of those plugins are asked (kube-scheduler's `isPodWorthRequeuing`).
        """
        if happening.event.is_wildcard:
            only = getattr(happening.new, "uid", None) if happening.new is not None else None
            return lambda entry: (
                Strategy.SKIP if only is not None and entry.rejectors and entry.pod.uid != only else _AFTER_BACKOFF
            )
        audience = self._of(happening.event).by_profile

        def judged(entry: QueuedPod) -> Strategy:
            looking = audience.get(entry.pod.scheduler_name)
            return _AFTER_BACKOFF if looking is None or not entry.rejectors else _best(looking, entry, happening)

        return judged

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


def _best(looking: Looking, entry: QueuedPod, happening: Happening) -> Strategy:
    best = Strategy.SKIP
    rejectors, pending_on = entry.rejectors, entry.pending_on
    for plugin, hints in looking.items():
        if plugin not in rejectors or not _hopeful(plugin, hints, entry, happening):
            continue
        if plugin in pending_on:
            return Strategy.IMMEDIATELY
        if not pending_on:
            return _AFTER_BACKOFF
        best = _AFTER_BACKOFF
    return best


def _hopeful(plugin: str, hints: Sequence[HintFunction], entry: QueuedPod, happening: Happening) -> bool:
    for hint in hints:
        try:
            if hint(entry.pod, happening) is Hint.QUEUE:
                return True
        except BaseException as raised:  # a hint that raises must strand neither the Pod nor the scheduler
            if not is_raised_by_plugin(raised):
                raise
            label = happening.event.label
            _logger.exception("QueueingHintFn returns error: event %s, plugin %s, pod %s", label, plugin, entry.pod.key)
            return True
    return False
