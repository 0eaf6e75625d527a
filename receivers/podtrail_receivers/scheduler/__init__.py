"""The `scheduler` receiver: an instrumented scheduler (KEP-5927) on a simulated cluster, run in process.

Its spans go through the real SDK with a provider of its own; `OTEL_EXPORTER_OTLP_*` mean nothing to it. It waits for
the pipelines, so none of its spans is lost.
"""

from typing import Any

from podtrail_scheduler.workload import Workload
from pydantic import Field

from podtrail.component import Context, Factory
from podtrail.config.types import Model


class Config(Model):
    """Run a scheduler on a simulated cluster."""

    speed: float = Field(
        60.0, ge=0, allow_inf_nan=False, description="Simulated seconds a second; 0: as fast as the pipelines take it."
    )
    workload: Workload = Field(
        default_factory=Workload, description="The cluster, the Pods that come to it, and what goes wrong."
    )


def _create(config: Config, context: Context) -> Any:
    from podtrail_receivers.scheduler.source import SchedulerSource

    return SchedulerSource(config.workload, config.speed, context)


FACTORY = Factory(kind="receiver", type="scheduler", Config=Config, create=_create, finite=True)
