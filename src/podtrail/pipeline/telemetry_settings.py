"""What podtrail says about itself: settings, from what a user wrote."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from podtrail.config.own_traces import OwnTracesConfig
from podtrail.config.telemetry import AttributeValue, TelemetryConfig


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """podtrail's own metrics."""

    level: Literal["none", "basic", "normal", "detailed"] = "normal"
    address: tuple[str, int] | None = ("localhost", 8888)
    """Host and port of the metrics page, None when there is none."""


@dataclass(frozen=True, slots=True)
class LogsSettings:
    """podtrail's own log."""

    level: Literal["debug", "info", "warn", "error"] = "info"
    encoding: Literal["console", "json"] | None = None
    """None: console on a terminal, else json."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """What podtrail says about itself."""

    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    logs: LogsSettings = field(default_factory=LogsSettings)
    traces: OwnTracesConfig = field(default_factory=OwnTracesConfig)
    resource: Mapping[str, AttributeValue] = field(default_factory=dict)


def telemetry_settings(config: TelemetryConfig) -> TelemetrySettings:
    """Return what is configured."""
    return TelemetrySettings(
        MetricsSettings(config.metrics.level, config.metrics.endpoint),
        LogsSettings(config.logs.level, config.logs.encoding),
        config.traces,
        {key: value for key, value in config.resource.items() if value is not None},
    )
