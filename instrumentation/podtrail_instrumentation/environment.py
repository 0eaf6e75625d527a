"""What the environment says of batching and exporting, in the variables of OpenTelemetry's specification.

Sizes are spans, times are milliseconds. What can't be read is said once, when it is read, and the default counts.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

_NO_LIMIT = 365 * 24 * 3600.0

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """`OTEL_BSP_*` and `OTEL_EXPORTER_OTLP_TIMEOUT`; times in seconds.

    All defaults but one are the specification's. Its queue of 2,048 spans lasts 0.17 s at 500 attempts a second of 25
    spans; this one lasts longer than the sidecar takes to start again, and holds 20 MiB when it is full.
    """

    max_queue_size: int = 32_768
    max_export_batch_size: int = 512
    schedule_delay: float = 5.0
    export_timeout: float = 30.0
    """For a batch, with all repetitions."""
    call_timeout: float = 10.0
    """For one call."""


def batch_settings(environment: Mapping[str, str]) -> BatchSettings:
    """Reads the environment."""
    default = BatchSettings()
    queue = _number(environment, "OTEL_BSP_MAX_QUEUE_SIZE", default.max_queue_size, least=1)
    batch = _number(environment, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", default.max_export_batch_size, least=1)
    if batch > queue:
        _logger.warning(
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE is %d, more than fit into the queue: %d is taken instead", batch, queue
        )
    return BatchSettings(
        queue,
        min(batch, queue),
        _number(environment, "OTEL_BSP_SCHEDULE_DELAY", int(default.schedule_delay * 1000)) / 1000,
        _timeout(environment, "OTEL_BSP_EXPORT_TIMEOUT", default.export_timeout),
        _timeout(environment, _of_traces(environment, "TIMEOUT"), default.call_timeout),
    )


def headers(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """`OTEL_EXPORTER_OTLP_HEADERS` as gRPC's metadata."""
    from opentelemetry.util.re import parse_env_headers

    return list(parse_env_headers(environment.get(_of_traces(environment, "HEADERS"), ""), liberal=True).items())


def compressed(environment: Mapping[str, str]) -> bool:
    """Whether `OTEL_EXPORTER_OTLP_COMPRESSION` asks for gzip."""
    name = _of_traces(environment, "COMPRESSION")
    asked = environment.get(name, "").strip().lower()
    if asked not in ("", "none", "gzip"):
        _logger.warning('%s is "%s", not gzip or none: none is taken instead', name, asked)
    return asked == "gzip"


def _of_traces(environment: Mapping[str, str], name: str) -> str:
    """The variable for traces alone, if it is set, goes before the one for all signals."""
    own = f"OTEL_EXPORTER_OTLP_TRACES_{name}"
    return own if environment.get(own) else f"OTEL_EXPORTER_OTLP_{name}"


def _timeout(environment: Mapping[str, str], name: str, default: float) -> float:
    """0 is no limit."""
    return _number(environment, name, int(default * 1000)) / 1000 or _NO_LIMIT


def _number(environment: Mapping[str, str], name: str, default: int, least: int = 0) -> int:
    text = environment.get(name, "").strip()
    if not text:  # set to nothing is as good as not set
        return default
    if text.isascii() and text.isdigit() and int(text) >= least:
        return int(text)
    _logger.warning('%s is "%s", not a whole number from %d on: %d is taken instead', name, text, least, default)
    return default
