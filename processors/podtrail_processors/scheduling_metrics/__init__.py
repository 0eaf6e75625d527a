"""`scheduling_metrics`: counts scheduling attempts, by result, profile and plugin that said no; passes every span.

Before a sampler, its rates are those of all attempts, whatever is kept of them.
"""

from podtrail.component import Context, Factory
from podtrail_processors.scheduling_metrics.config import Config
from podtrail_processors.scheduling_metrics.processor import SchedulingMetrics


def _create(config: Config, context: Context) -> SchedulingMetrics:
    return SchedulingMetrics(config, context)


__all__ = ["FACTORY", "Config"]

FACTORY = Factory(kind="processor", type="scheduling_metrics", Config=Config, create=_create)
