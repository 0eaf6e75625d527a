"""The `scheduler` receiver: an instrumented scheduler (KEP-5927) on a simulated cluster, run in process.

Its spans go through the real SDK with a provider of its own; `OTEL_EXPORTER_OTLP_*` mean nothing to it. It waits for
the pipelines, so none of its spans is lost.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from podtrail_scheduler.workload import Workload
from pydantic import Field, field_validator

from podtrail.component import Context, Factory
from podtrail.config.types import Model

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 1_000


class Config(Model):
    """Run a scheduler on a simulated cluster."""

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
    from podtrail_receivers.scheduler.source import SchedulerSource

    return SchedulerSource(config.workload, config.speed, config.begins, context)


FACTORY = Factory(kind="receiver", type="scheduler", Config=Config, create=_create, finite=True)
