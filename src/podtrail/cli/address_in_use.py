"""What to do where somebody else listens at an address."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from podtrail.config.types import host_port
from podtrail.pipeline.settings import Settings
from podtrail.transport.listen import in_use


def taken(error: BaseException) -> str:
    """Return the address that somebody else listens at, which ended the start; "" where it is another error."""
    cause = in_use(error)
    return "" if cause is None else cause.endpoint


def free(endpoint: str) -> str:
    """Return the address of a port there that the system chooses."""
    return endpoint.rpartition(":")[0] + ":0"


def advice(error: BaseException, settings: Settings) -> str:
    """Return what to do about an error that ended the start, with what stands before it; "" where it is another one."""
    endpoint = taken(error)
    if not endpoint:
        return ""
    key = next(_keys(str(error), endpoint, settings), "")
    elsewhere = f", or take a free port here: --set {key}={free(endpoint)}" if key else ""
    if not key and host_port(endpoint) == settings.service.telemetry.metrics.address:
        elsewhere = ", or do without here: --set service::telemetry::metrics::level=none"
    return f"; another podtrail may run: end it{elsewhere}"


def _keys(said: str, endpoint: str, settings: Settings) -> Iterator[str]:
    """Yield the keys of the component that an error names where an endpoint stands."""
    for section in ("extensions", "receivers", "exporters"):
        for id, found in getattr(settings, section).items():
            if said.startswith(f"{section}::{id}: "):
                yield from _below(found.config, f"{section}::{id}", endpoint)


def _below(value: Any, path: str, endpoint: str) -> Iterator[str]:
    if value == endpoint:
        yield path
    elif isinstance(value, BaseModel):
        for name, field in type(value).model_fields.items():
            yield from _below(getattr(value, name), f"{path}::{field.alias or name}", endpoint)
    elif isinstance(value, Mapping):
        for key, below in value.items():
            yield from _below(below, f"{path}::{key}", endpoint)
