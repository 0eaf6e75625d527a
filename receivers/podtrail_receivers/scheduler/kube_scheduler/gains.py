"""What each source adds to the story, in the words of the start-up log and of the documentation."""

from collections.abc import Iterator

from podtrail_receivers.scheduler.kube_scheduler.config import KubeSchedulerConfig

GAINS = {
    "log": "every attempt from -v=2 on, with result, reasons and node; from -v=3 beginning and binding; from -v=5 the "
    "wait in the queue; at -v=10 scores; below -v=2 slow and failed attempts only",
    "watch::pods": "uids, creation, queue wait of first attempts, nominations, gates, traceparent annotations; without "
    "a log also attempts, one for each condition that changed and each node that was given",
    "watch::nodes": "how many nodes came, changed and went",
    "watch::events": "reasons of failures; without a log also attempts, fewer than there were, for Events are folded",
    "metrics": "how many attempts the scheduler counted, those that left no other trace included",
}


def gains(config: KubeSchedulerConfig) -> Iterator[tuple[str, bool, str]]:
    """Yield each source, whether it is configured, and what it gives."""
    given = {
        "log": config.log is not None,
        "watch::pods": config.watch is not None and config.watch.pods,
        "watch::nodes": config.watch is not None and config.watch.nodes,
        "watch::events": config.watch is not None and config.watch.events,
        "metrics": config.metrics is not None,
    }
    for source, gain in GAINS.items():
        yield source, given[source], gain
