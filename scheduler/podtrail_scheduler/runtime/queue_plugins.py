"""A profile's plugins as the queue asks them: order, PreEnqueue, hints; those of others run aside and may fail."""

import logging
from collections.abc import Callable, Sequence

from podtrail_scheduler.framework.answers import in_words
from podtrail_scheduler.framework.aside import Aside, is_raised_by_plugin
from podtrail_scheduler.framework.events import Hints, hints_of
from podtrail_scheduler.framework.extending import PLUGIN as EXTENDERS
from podtrail_scheduler.framework.extension_points import PreEnqueuePlugin, QueueSortPlugin, is_in_tree
from podtrail_scheduler.framework.queued_pod import QueuedPod
from podtrail_scheduler.framework.status import Status
from podtrail_scheduler.objects import Pod

from .calling import guarded
from .profile import Profile

_LAST = (1 << 63,)
"""Behind every key that a plugin gives."""
_logger = logging.getLogger("podtrail_scheduler.framework")


def order_of(plugin: QueueSortPlugin, aside: Aside) -> Callable[[QueuedPod], tuple[int, ...]]:
    """The plugin's `sort_key`; Pods for which it raises, or gives none that can be compared, come last."""
    sort_key = guarded(aside, plugin.name, "queueSort", plugin.sort_key)

    def key(entry: QueuedPod) -> tuple[int, ...]:
        try:
            given = sort_key(entry)
        except BaseException as raised:  # whatever a plugin raises must not end the scheduler
            if not is_raised_by_plugin(raised):
                raise
            wrong = f"raised {in_words(raised)}"
        else:
            if isinstance(given, tuple) and given and all(isinstance(part, int | float) for part in given):
                return given
            wrong = f"gave a {type(given).__name__} that is no key"
        _logger.error("plugin %s %s: pod %s is put last", plugin.name, wrong, entry.pod.key)
        return _LAST

    return plugin.sort_key if is_in_tree(plugin) else key


class _PreEnqueueAside:
    """A PreEnqueue plugin of others."""

    def __init__(self, plugin: PreEnqueuePlugin, aside: Aside) -> None:
        self.name = plugin.name
        self._ask = guarded(aside, plugin.name, "preEnqueue", plugin.pre_enqueue)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """What the plugin answers."""
        return self._ask(pod)


def pre_enqueue_of(profile: Profile, aside: Aside) -> Sequence[PreEnqueuePlugin]:
    """The profile's PreEnqueue plugins, in their order."""
    return [each if is_in_tree(each) else _PreEnqueueAside(each, aside) for each in profile.pre_enqueue]


def queueing_hints_of(profile: Profile, aside: Aside, *, extended: bool) -> Hints:
    """The profile's hints by event.

    With extenders (`extended`), which have no say of their own, any event may help against their refusals.
    """
    hints = {
        event: [
            (name, guarded(aside, name, event.label, hint) if name in profile.asked_by_queue else hint)
            for name, hint in asked
        ]
        for event, asked in profile.hints.items()
    }
    if extended:
        for event, own in hints_of((), [EXTENDERS]).items():
            hints.setdefault(event, []).extend(own)
    return hints
