"""The order of the queue when somebody else's plugin says it: a key that can't be had must not end the scheduler."""

import logging
from collections.abc import Callable

from podtrail_scheduler.framework.answers import in_words
from podtrail_scheduler.framework.aside import Aside
from podtrail_scheduler.framework.extension_points import QueueSortPlugin, is_in_tree
from podtrail_scheduler.framework.queued_pod import QueuedPod

from .calling import guarded

_LAST = (1 << 63,)
"""Behind every key that a plugin gives."""
_logger = logging.getLogger(__name__)


def order_of(plugin: QueueSortPlugin, aside: Aside) -> Callable[[QueuedPod], tuple[int, ...]]:
    """The plugin's `sort_key`; Pods for which it raises, or gives none that can be compared, come last."""
    sort_key = guarded(aside, plugin.name, "queueSort", plugin.sort_key)

    def key(entry: QueuedPod) -> tuple[int, ...]:
        try:
            given = sort_key(entry)
        except Exception as raised:  # noqa: BLE001, whatever a plugin raises must not end the scheduler
            wrong = f"raised {in_words(raised)}"
        else:
            if isinstance(given, tuple) and given and all(isinstance(part, int | float) for part in given):
                return given
            wrong = f"gave a {type(given).__name__} that is no key"
        _logger.error("plugin %s %s: pod %s is put last", plugin.name, wrong, entry.pod.key)
        return _LAST

    return plugin.sort_key if is_in_tree(plugin) else key
