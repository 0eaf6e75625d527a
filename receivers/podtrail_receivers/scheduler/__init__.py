"""The `scheduler` receiver: attempts of a stock kube-scheduler, or of an instrumented one on a simulated cluster.

`kube_scheduler` rebuilds the attempts of a kube-scheduler that runs beside podtrail. Without it an instrumented
scheduler (KEP-5927) runs in process; its spans go through a provider of its own, `OTEL_EXPORTER_OTLP_*` mean nothing
to it. Either waits for the pipelines, so none of its spans is lost.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Self

from podtrail_scheduler.workload import Workload
from pydantic import Field, field_validator, model_validator

from podtrail.component import Context, Factory
from podtrail.config.types import Model
from podtrail_receivers.scheduler.kube_scheduler.config import KubeSchedulerConfig

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 1_000


class Config(Model):
    """See into a stock kube-scheduler, or run a scheduler on a simulated cluster."""

    kube_scheduler: KubeSchedulerConfig | None = Field(
        None, description="Where a stock kube-scheduler is seen. Absent: a simulation runs, as the other keys say."
    )
    speed: float = Field(
        60.0, ge=0, allow_inf_nan=False, description="Simulated seconds a second; 0: as fast as the pipelines take it."
    )
    start: str = Field(
        "",
        description="When simulated time begins, such as 2026-01-01T00:00:00Z: the same seed and start give the same "
        "spans. Empty: so that it ends about now.",
    )
    workload: Workload = Field(
        default_factory=Workload, description="The cluster, the Pods that come to it, and what goes wrong."
    )

    @field_validator("start")
    @classmethod
    def _check_start(cls, text: str) -> str:
        if text:
            _moment(text)
        return text

    @model_validator(mode="after")
    def _check_one_source(self) -> Self:
        simulated = self.model_fields_set & {"speed", "start", "workload"}
        if self.kube_scheduler is not None and simulated:
            raise ValueError(f"{', '.join(sorted(simulated))}: a simulation's, of no use with kube_scheduler")
        return self

    @property
    def begins(self) -> int | None:
        """When simulated time begins, in Unix nanoseconds; None: so that it ends about now."""
        return _moment(self.start) if self.start else None


def _moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None or moment < _EPOCH:
        raise ValueError(f"{text!r} is no time since 1970 with its zone: write for example 2026-01-01T00:00:00Z")
    return (moment - _EPOCH) // timedelta(microseconds=1) * _NANOSECONDS


def _create(config: Config, context: Context) -> Any:
    if config.kube_scheduler is not None:
        from podtrail_receivers.scheduler.kube_scheduler.receiver import KubeSchedulerReceiver

        return KubeSchedulerReceiver(config.kube_scheduler, context)
    from podtrail_receivers.scheduler.source import SchedulerSource

    return SchedulerSource(config.workload, config.speed, config.begins, context)


FACTORY = Factory(kind="receiver", type="scheduler", Config=Config, create=_create, finite=True)
