"""What a Pod waits for between its attempts: named by how the one before ended, as kube-scheduler's queue goes on.

After an error a Pod is in back-off. One that no node fits waits for an event that may help, and in back-off at least:
where the wait was no longer than that, the event came before its end.
"""

from collections.abc import Iterator
from typing import Final

from podtrail.story.attempt import AttemptStory
from podtrail.story.lines import safe
from podtrail.story.way_steps import WayStep, wait
from podtrail.story.words import clock

_SECOND: Final = 1_000_000_000
_MOST_BACKOFF: Final = 10
"""Seconds; kube-scheduler's `podMaxBackoffSeconds`, and it begins with one."""
_SLACK: Final = _SECOND
"""The queue is looked through once a second for those whose back-off is over."""
_QUEUE_WORTH: Final = 100_000_000
"""So long in the active queue, in nanoseconds, stands by itself; before the first attempt it always does."""
_NAME: Final = 60


def backoff(number: int | None) -> int:
    """Return how long the back-off behind an attempt is by kube-scheduler's defaults, in nanoseconds."""
    return min(_MOST_BACKOFF, 1 << min(max(number or 1, 1) - 1, 10)) * _SECOND


def wait_between(before: AttemptStory | None, after: AttemptStory) -> Iterator[WayStep]:
    """Yield the gap between two attempts, or before the first; nothing where some are missing between them."""
    if before is not None and (after.number or 0) > (before.number or 0) + 1:
        return
    start = after.start_unix_nano
    queued = start - (after.queue_wait or 0)
    if before is not None:
        queued = max(queued, before.end_unix_nano)
        apart = start - queued >= _QUEUE_WORTH
        until = queued if apart else start
        if until > before.end_unix_nano:
            took = until - before.end_unix_nano
            yield wait(_between(before, took), before.end_unix_nano, until)
        if not apart:
            return
    if start > queued:
        yield wait("in the active queue", queued, start)


def wait_after(last: AttemptStory, now: int) -> Iterator[WayStep]:
    """Yield what a Pod waits for behind its last attempt, until `now`."""
    end = last.end_unix_nano
    if not last.result or now <= end:
        return
    due = end + backoff(last.number)
    if last.result == "Error" and now > due + _SLACK:
        yield wait("back-off", end, due)
        yield wait(f"its next attempt was due by {clock(due)} UTC, none was seen here", due, now, open_=True)
        return
    yield wait(_between(last, now - end, over=False), end, now, open_=True)


def _between(before: AttemptStory, took: int, *, over: bool = True) -> str:
    """Return the name of a wait behind an attempt."""
    if before.result == "Error":
        return "back-off"
    if before.nominated_node:
        return f"waiting for Pods to go from {safe(before.nominated_node, _NAME)}"
    if over and took <= backoff(before.number) + _SLACK:
        return "back-off: an event that may help came before its end"
    plugins = list(dict.fromkeys(safe(no.plugin, _NAME) for no in before.why.rejections if no.plugin))
    helps = f" that may help {' or '.join(plugins[:2])}" if plugins else ""
    more = f" or {len(plugins) - 2} more" if len(plugins) > 2 else ""
    return f"waiting in the queue for a Node or Pod event{helps}{more}"
