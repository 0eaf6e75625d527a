"""All extenders at a point of the cycle: who is asked in which order, and what a failure means there."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from podtrail_scheduler.framework.status import Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Node, Pod

from .extender import Extender, ExtenderError, PodsOn, Victims

_log = logging.getLogger(__name__)


class Filtered(NamedTuple):
    """The nodes that are left, and the statuses of those that extenders ruled out, by name."""

    nodes: tuple[Node, ...]
    statuses: Mapping[str, Status]


async def filter_with(extenders: Sequence[Extender], pod: Pod, nodes: Sequence[Node]) -> Filtered:
    """Asks one after the other, each about what the one before left. Raises ExtenderError of one not ignorable."""
    left = {node.name: node for node in nodes}
    statuses: dict[str, Status] = {}
    for extender in extenders:
        if not left:
            break
        if not extender.interested(pod):
            continue
        try:
            answer = await extender.filter(pod, tuple(left.values()))
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            _skipped("Skipping extender as it returned error and has ignorable flag set", extender, error)
            continue
        statuses |= {name: unschedulable(message) for name, message in answer.failed.items()}
        statuses |= {name: unresolvable(message) for name, message in answer.unresolvable.items()}
        left = {name: left[name] for name in answer.nodes if name in left}
    return Filtered(tuple(left.values()), statuses)


async def prioritize_with(extenders: Sequence[Extender], pod: Pod, nodes: Sequence[Node]) -> dict[str, int]:
    """Asks all at once and adds up; one that fails gives no score."""
    asked = [extender for extender in extenders if extender.interested(pod)]
    answers = await asyncio.gather(*(_scores(extender, pod, nodes) for extender in asked))
    totals: dict[str, int] = {}
    for scores in answers:
        for name, score in scores.items():
            totals[name] = totals.get(name, 0) + score
    return totals


async def _scores(extender: Extender, pod: Pod, nodes: Sequence[Node]) -> Mapping[str, int]:
    try:
        return await extender.prioritize(pod, nodes)
    except ExtenderError as error:
        _skipped("Failed to run extender's priority function. No score given by this extender.", extender, error)
        return {}


async def bind_with(extenders: Sequence[Extender], pod: Pod, node_name: str) -> bool:
    """Whether an extender bound; False leaves it to the Bind plugins. Raises ExtenderError of one not ignorable."""
    for extender in extenders:
        if not extender.binds or not extender.interested(pod):
            continue
        try:
            await extender.bind(pod, node_name)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            _skipped("Skipping extender in bind as it returned error and has ignorable flag set", extender, error)
            continue
        return True
    return False


async def preempt_with(
    extenders: Sequence[Extender], pod: Pod, victims: Mapping[str, Victims], pods_on: PodsOn
) -> dict[str, Victims]:
    """The candidates that are left, asking one after the other. Raises ExtenderError of one not ignorable."""
    left = dict(victims)
    for extender in extenders:
        if not left:
            break
        if not extender.preempts or not extender.interested(pod):
            continue
        try:
            answer = await extender.preempt(pod, left, pods_on)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            _skipped("Skipped extender as it returned error and has ignorable flag set", extender, error)
            continue
        empty = [name for name, some in answer.items() if not some.pods]
        if empty and not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{empty[0]}"')
        left = {name: some for name, some in answer.items() if some.pods}
    return left


def _skipped(message: str, extender: Extender, error: ExtenderError) -> None:
    _log.info('"%s" extender="%s" err="%s"', message, extender.name, error)
