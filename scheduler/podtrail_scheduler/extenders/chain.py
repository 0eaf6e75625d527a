"""All extenders at a point of the cycle: who is asked in which order, and what a failure means there."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from podtrail_scheduler.framework.diagnosis import Diagnosis, NodeRefusal
from podtrail_scheduler.framework.extending import PLUGIN, ExtenderError, PodsOn, Victims
from podtrail_scheduler.framework.status import Status, unresolvable, unschedulable
from podtrail_scheduler.objects import Pod

from .extender import HTTPExtender

_log = logging.getLogger(__name__)


class ExtenderChain:
    """The extenders of a scheduler, ignorable ones last.

    The scheduling and the binding cycle await:

    - `filter` behind the plugins' Filter, with the nodes they left,
    - `prioritize` beside Score; what it returns is added to the weighted sum of the plugins,
    - `preempt` in preemption, with the candidates and their victims, before one is picked,
    - `bind` before the Bind plugins, which run only when it returns False.
    """

    def __init__(self, extenders: Sequence[HTTPExtender]) -> None:
        self._extenders = tuple(sorted(extenders, key=lambda each: each.ignorable))
        self.filters = any(each.filters for each in extenders)
        self.prioritizes = any(each.prioritizes for each in extenders)
        self.preempts = any(each.preempts for each in extenders)

    async def filter(self, pod: Pod, nodes: Sequence[str], diagnosis: Diagnosis) -> Sequence[str]:
        """Asks one after the other, each about what the one before left.

        Raises:
            ExtenderError: one that is not `ignorable` fails.
        """
        left = tuple(nodes)
        statuses: dict[str, Status] = {}
        for extender in self._extenders:
            if not left:
                break
            if not extender.interested(pod):
                continue
            try:
                answer = await extender.filter(pod, left)
            except ExtenderError as error:
                if not extender.ignorable:
                    raise
                _skipped("Skipping extender as it returned error and has ignorable flag set", extender, error)
                continue
            statuses |= {name: unschedulable(message) for name, message in answer.failed.items()}
            statuses |= {name: unresolvable(message) for name, message in answer.unresolvable.items()}
            left = answer.nodes
        for name, status in statuses.items():
            diagnosis.add(NodeRefusal(PLUGIN, status, [name]))
        if len(left) != len(nodes):
            diagnosis.refused_by.add(PLUGIN)
        return left

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
        """Asks all at once and adds up; one that fails gives no score."""
        asked = [extender for extender in self._extenders if extender.interested(pod)]
        answers = await asyncio.gather(*(_scores(extender, pod, nodes) for extender in asked))
        totals: dict[str, int] = {}
        for scores in answers:
            for name, score in scores.items():
                totals[name] = totals.get(name, 0) + score
        return totals

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Whether an extender bound; False leaves it to the Bind plugins.

        Raises:
            ExtenderError: the one that binds fails.
        """
        for extender in self._extenders:
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

    async def preempt(self, pod: Pod, victims: Mapping[str, Victims], pods_on: PodsOn) -> dict[str, Victims]:
        """The candidates that are left, asking one after the other.

        Raises:
            ExtenderError: one that is not `ignorable` fails, or names a node without victims.
        """
        left = dict(victims)
        for extender in self._extenders:
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


async def _scores(extender: HTTPExtender, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
    try:
        return await extender.prioritize(pod, nodes)
    except ExtenderError as error:
        _skipped("Failed to run extender's priority function. No score given by this extender.", extender, error)
        return {}


def _skipped(message: str, extender: HTTPExtender, error: ExtenderError) -> None:
    _log.info('"%s" extender="%s" err="%s"', message, extender.name, error)
