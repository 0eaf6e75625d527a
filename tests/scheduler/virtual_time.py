"""Letting virtual time pass."""

from podtrail_scheduler.cluster.simulated.timeline import Timeline


def let_pass(timeline: Timeline, duration: int) -> None:
    """All that is due in the next `duration` nanoseconds happens, and it is as much later at the end."""
    end = timeline.now() + duration
    timeline.at(end, lambda: None)
    while (due := timeline.next_time()) is not None and due <= end:
        timeline.step()
