"""Another configuration for a scheduler that runs: taken up, or refused with what is wrong while the old one stays."""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

from podtrail_instrumentation.klog import structured

from podtrail_scheduler.configuration.errors import ConfigurationError
from podtrail_scheduler.configuration.generation import generation_of, needs_restart, profiles_need_restart

from .assembly import SchedulerPlan

Offered = SchedulerPlan | ConfigurationError
"""What became of reading a configuration."""

_log = logging.getLogger(__name__)


class Reconfiguration:
    """The configuration in force, and what takes its place."""

    def __init__(self, plan: SchedulerPlan, take_up: Callable[[SchedulerPlan], None]) -> None:
        """`take_up` has the scheduler go on with a plan; it raises ValueError where a plugin refuses its args."""
        self._plan = plan
        self._take_up = take_up
        self._generation = generation_of(plan.configuration)
        self._results = Counter(dict.fromkeys(("success", "unchanged", "refused"), 0))

    async def follow(self, offered: AsyncIterator[Offered]) -> None:
        """Takes up one after the other."""
        async for each in offered:
            self.consider(each)

    def consider(self, offered: Offered) -> None:
        """Takes up a configuration that is another and can be, and says what came of it."""
        if isinstance(offered, ConfigurationError):
            self._refuse(str(offered))
            return
        generation = generation_of(offered.configuration)
        before, after = self._plan, offered
        changed = [
            *needs_restart(before.configuration, after.configuration),
            *profiles_need_restart(before.profiles, after.profiles),
        ]
        if changed:
            self._refuse(
                f"a scheduler that runs can't change {', '.join(changed)}: restart it with the new configuration"
            )
        elif generation == self._generation:
            self._results["unchanged"] += 1
            _log.info("%s", structured("Configuration is the same", generation=generation))
        else:
            try:
                self._take_up(after)
            except ValueError as error:
                self._refuse(str(error))
                return
            self._results["success"] += 1
            _log.info("%s", structured("Configuration reloaded", generation=generation, before=self._generation))
            self._plan, self._generation = after, generation

    def samples(self) -> Iterator[tuple[str, Mapping[str, str], float]]:
        """How many were taken up, were the same, and were refused."""
        for result, value in self._results.items():
            yield "scheduler_config_reloads_total", {"result": result}, value

    def _refuse(self, problem: str) -> None:
        self._results["refused"] += 1
        _log.error("%s", structured("Configuration refused", err=problem, generation=self._generation))
