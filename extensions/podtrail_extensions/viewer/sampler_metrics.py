"""The samplers' own metrics, read for the pages about policies: costs, failures, what is undecided."""

from collections.abc import Mapping

from podtrail.component import Metrics
from podtrail.story import PolicyCost

_PREFIX = "otelcol_processor_tail_sampling_"
_ASKED = _PREFIX + "sampling_policy_execution_count"
_VOTED = _PREFIX + "count_traces_sampled"
_TIME = _PREFIX + "sampling_policy_execution_time_sum"
_HELD = _PREFIX + "sampling_traces_on_memory"


class SamplerMetrics:
    """Reads the metrics when a page is asked for."""

    def __init__(self, metrics: Metrics) -> None:
        """Read from the metrics of the running service."""
        self._metrics = metrics

    def undecided(self) -> int | None:
        """Return the number of traces that wait for their decision; None without a sampler."""
        held = self._metrics.snapshot().get(_HELD)
        return int(sum(held.values())) if held else None

    def costs(self) -> Mapping[str, PolicyCost]:
        """Return what each policy has cost since the start, by its name."""
        told = self._metrics.snapshot()
        voted: dict[str, float] = {}
        for labels, times in told.get(_VOTED, {}).items():
            # The first label, decision, and the last, sampled, have known values; a policy's name may hold anything.
            policy = labels.partition(",policy=")[2].rpartition(",sampled=")[0]
            voted[policy] = voted.get(policy, 0) + times
        spent = told.get(_TIME, {})
        costs: dict[str, PolicyCost] = {}
        for label, asked in told.get(_ASKED, {}).items():
            policy = label.removeprefix("policy=")
            took = spent.get(label)
            costs[policy] = PolicyCost(
                took / asked if took is not None and asked else None, int(asked - voted.get(policy, 0))
            )
        return costs
