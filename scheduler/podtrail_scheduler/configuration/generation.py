"""Which configuration is in force, in a few characters, and which change of one the running scheduler can take up."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from .encoding import encode
from .expansion import ProfileConfiguration
from .types import ClientConnectionConfiguration, KubeSchedulerConfiguration, LeaderElectionConfiguration

_DIGITS = 12


def generation_of(configuration: KubeSchedulerConfiguration) -> str:
    """Twelve hexadecimal digits that change with what a configuration has decided, and with nothing else.

    They are of the document that `--write-config-to` writes, without how the API server is reached, who leads, and what
    is traced: the same for a file in another order, with comments, or without what is the default.
    """
    deciding = replace(
        configuration,
        leader_election=LeaderElectionConfiguration(),
        client_connection=ClientConnectionConfiguration(),
        tracing=None,
        enable_profiling=True,
        enable_contention_profiling=None,
        delay_cache_until_active=False,
        parallelism=0,
    )
    return hashlib.sha256(encode(deciding).encode()).hexdigest()[:_DIGITS]


def needs_restart(before: KubeSchedulerConfiguration, after: KubeSchedulerConfiguration) -> Sequence[str]:
    """The fields that changed and that a running scheduler can't change."""
    names = {
        "leaderElection": "leader_election",
        "clientConnection": "client_connection",
        "podInitialBackoffSeconds": "pod_initial_backoff_seconds",
        "podMaxBackoffSeconds": "pod_max_backoff_seconds",
        "extenders": "extenders",
        "delayCacheUntilActive": "delay_cache_until_active",
        "tracing": "tracing",
    }
    return [key for key, name in names.items() if getattr(before, name) != getattr(after, name)]


def profiles_need_restart(
    before: Sequence[ProfileConfiguration], after: Sequence[ProfileConfiguration]
) -> Sequence[str]:
    """The same of profiles: who is responsible for which Pods, and what the queue is sorted by."""
    if {each.scheduler_name for each in before} != {each.scheduler_name for each in after}:
        return ["profiles[*].schedulerName"]
    sorting = [
        {(name, repr(each.args.get(name))) for each in profiles for name in each.points.queue_sort}
        for profiles in (before, after)
    ]
    return [] if sorting[0] == sorting[1] else ["profiles[*].plugins.queueSort"]
