"""The `scheduler` receiver: attempts of a stock kube-scheduler, or of an instrumented one on a simulated cluster.

`kube_scheduler` rebuilds the attempts of a kube-scheduler that runs beside podtrail. Without it an instrumented
scheduler (KEP-5927) runs in process; its spans go through a provider of its own, `OTEL_EXPORTER_OTLP_*` mean nothing
to it. Either waits for the pipelines, so none of its spans is lost.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from podtrail_scheduler.workload import Workload
from pydantic import Field, PrivateAttr, field_validator, model_validator

from podtrail.component import Context, Factory
from podtrail.config.config_folder import file_beside
from podtrail.config.types import Model, WarningPath
from podtrail_receivers.scheduler.kube_scheduler.config import KubeSchedulerConfig

if TYPE_CHECKING:
    from podtrail_scheduler.plugins.selection import Selection

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS = 1_000
_DEFAULT_SCHEDULER = "default-scheduler"
"""The only profile where none is configured."""


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
    config: str | dict[str, Any] | None = Field(
        None,
        description="The simulated scheduler's profiles: a KubeSchedulerConfiguration, here or the path of one. What "
        "it says of API servers means nothing here. Absent: the default profile, with all of `plugins`.",
    )
    plugins: dict[str, str] = Field(
        {},
        description="Plugins that profiles may enable, by name: `module:Class`, of a module that Python can import or "
        "that lies beside the configuration file. Those of installed packages need not be named.",
    )
    measure_plugins: bool = Field(
        True,
        description="Whether the time that plugins of others take is added to simulated time. `false`: their work is "
        "free, and the same seed and start give the same spans again.",
    )
    workload: Workload = Field(
        default_factory=Workload, description="The cluster, the Pods that come to it, and what goes wrong."
    )
    _selection: "Selection | None" = PrivateAttr(None)

    @field_validator("start")
    @classmethod
    def _check_start(cls, text: str) -> str:
        if text:
            _moment(text)
        return text

    @model_validator(mode="after")
    def _check_one_source(self) -> Self:
        simulated = self.model_fields_set - {"kube_scheduler"}
        if self.kube_scheduler is not None and simulated:
            raise ValueError(f"{', '.join(sorted(simulated))}: a simulation's, of no use with kube_scheduler")
        if self.kube_scheduler is None and (self.config is not None or self.plugins):
            from podtrail_receivers.scheduler.profiles import selected

            self._selection = selected(self.config, self.plugins, self.workload)
        return self

    @field_validator("workload", mode="before")
    @classmethod
    def _find_files(cls, data: Any) -> Any:
        """Look for the workload's files beside the configuration, too."""
        objects = data.get("objects") if isinstance(data, Mapping) else None
        if not isinstance(objects, Mapping) or not isinstance(files := objects.get("files"), list):
            return data
        found = [file_beside(file) if isinstance(file, str) else file for file in files]
        return {**data, "objects": {**objects, "files": found}}

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Return which plugins are never asked, and which Pods nobody schedules."""
        told: list[tuple[WarningPath, str]] = []
        if self.kube_scheduler is not None:
            return told
        names = [_DEFAULT_SCHEDULER]
        if self._selection is not None:
            from podtrail_receivers.scheduler.profiles import unused

            told += [(("plugins", name), why) for name, why in unused(self._selection, self.plugins)]
            names = [profile.scheduler_name for profile in self._selection.profiles]
        files = self.workload.objects
        told += [
            (("workload", "objects"), f"{place} is no field of Kubernetes 1.37, and nothing looks at it")
            for place in (files.unknown if files is not None else ())
        ]
        return told + self._of_others(names)

    def _of_others(self, names: Sequence[str]) -> list[tuple[WarningPath, str]]:
        there = f"the profiles are {', '.join(names)}"
        told: list[tuple[WarningPath, str]] = [
            (("workload", "pods", at, "scheduler_name"), f"nobody schedules these Pods: {there}")
            for at, kind in enumerate(self.workload.pods)
            if kind.scheduler_name not in names
        ]
        pending = self.workload.written.pending
        others = [pod.scheduler_name for pod in pending if pod.scheduler_name not in names]
        if others:
            asked = ", ".join(sorted(set(others)))
            told.append(
                (("workload", "objects"), f"{len(others)} of {len(pending)} Pods ask for {asked}, and wait: {there}")
            )
        return told

    @property
    def selection(self) -> "Selection | None":
        """The profiles; None: the default one."""
        return self._selection

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

    return SchedulerSource(config, context)


FACTORY = Factory(kind="receiver", type="scheduler", Config=Config, create=_create, finite=True)
