"""A scheduler that has lived through changes is as one that saw only what came of them.

What is kept from attempt to attempt (sums, counts by domain, images, remembered answers, ledgers of volumes and
devices) is thereby what it would be if it were made anew.
"""

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from podtrail_scheduler.cycles.cache import Cache
from podtrail_scheduler.framework.node_info import NodeInfo

from tests.sizes import large

from .answers import Answer
from .bench import Bench
from .changing import Changing
from .ours import after, happen, schedule, withdraw

KINDS = 3
_TOLD_ELSEWHERE = {"node", "generation", "images"}


def kept(info: NodeInfo) -> Mapping[str, Any]:
    """Of a node: its object, its sums, and on how many nodes each of its images is."""
    sums = {name: getattr(info, name) for name in NodeInfo.__slots__ if name not in _TOLD_ELSEWHERE}
    images = {name: info.images.get(name) for name in info.node.images}
    return {
        **sums,
        "pods": {uid: pod.labels for uid, pod in info.pods.items()},
        "labels": info.node.labels,
        "images": images,
    }


def all_kept(cache: Cache) -> Mapping[str, Any]:
    """Of each node, and how many of what there are."""
    return {**{info.name: kept(info) for info in cache.nodes()}, "sizes": cache.sizes()}


def decision(answer: Answer) -> Mapping[str, Any]:
    """All but the draw among the best."""
    said = answer._asdict()
    best = {name for name, total in answer.totals.items() if total == max(answer.totals.values())}
    return {**said, "node": best or answer.node, "devices": None if best else answer.devices}


@settings(max_examples=large(8, 200), deadline=None)
@given(st.randoms(use_true_random=False))
def test_what_is_kept_through_changes_is_what_would_be_made_anew(random: Any) -> None:
    cluster = Changing(random, pods=12, reports=False)
    objects = list(cluster.objects)
    lived = Bench(cluster.profile, objects)
    for number, changes in enumerate(cluster.between):
        name = cluster.pods[number]["metadata"]["name"]
        kind = cluster.pods[number % KINDS]  # they come again, so that what is remembered of them is asked for
        pod = {**kind, "metadata": {**kind["metadata"], "name": name}}
        for change in changes:
            objects = happen(lived, objects, change)
        fresh = Bench(cluster.profile, objects)
        assert all_kept(lived.nodes) == all_kept(fresh.nodes)

        answer = schedule(lived, pod)

        assert decision(answer) == decision(schedule(fresh, pod))
        if answer.outcome != "bound":
            withdraw(lived, pod)
        else:
            objects = after(objects, pod, answer)
