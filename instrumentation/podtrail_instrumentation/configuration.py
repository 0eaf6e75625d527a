"""The tracing section of a Kubernetes component's configuration (`k8s.io/component-base/tracing/api/v1`).

The two fields, their defaults and the texts of their errors are those of component-base, so that a file which one
component takes is taken here, and one which it refuses is refused with the same words.
"""

import json
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

DEFAULT_ENDPOINT = "localhost:4317"
MAX_RATE = 1_000_000
_SCHEMES = ("dns", "unix", "unix-abstract")
_INT32 = 2**31


class TracingConfiguration(BaseModel):
    """Where spans go and how many roots are sampled. `{}` samples only what its parent sampled."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)

    endpoint: str | None = Field(
        default=None,
        description="Collector's OTLP/gRPC address, always without TLS. Recommended is unset: localhost:4317.",
    )
    sampling_rate_per_million: int | None = Field(
        default=None,
        alias="samplingRatePerMillion",
        ge=-_INT32,
        lt=_INT32,
        description="How many of a million root spans are sampled. Unset: the parent's decision, otherwise none.",
    )

    @property
    def address(self) -> str:
        """The endpoint that is dialled."""
        return self.endpoint or DEFAULT_ENDPOINT


class FieldError(NamedTuple):
    """One refused value, printed as the API machinery prints it."""

    path: str
    value: str | int
    detail: str

    def __str__(self) -> str:
        return f"{self.path}: Invalid value: {json.dumps(self.value)}: {self.detail}"


def validate_tracing_configuration(configuration: TracingConfiguration, path: str = "tracing") -> list[FieldError]:
    """All errors of `configuration`, empty when it is good; `path` is where it stands in the component's file."""
    errors = []
    rate = configuration.sampling_rate_per_million
    if rate is not None and rate < 0:
        errors.append(FieldError(f"{path}.samplingRatePerMillion", rate, "sampling rate must be positive"))
    if rate is not None and rate > MAX_RATE:
        detail = "sampling rate per million must be less than or equal to one million"
        errors.append(FieldError(f"{path}.samplingRatePerMillion", rate, detail))
    if configuration.endpoint is not None:
        errors += _endpoint_errors(configuration.endpoint, f"{path}.endpoint")
    return errors


def _endpoint_errors(endpoint: str, path: str) -> list[FieldError]:
    address = endpoint if "//" in endpoint else "dns://" + endpoint
    try:
        url = urlsplit(address)
        _ = url.port
    except ValueError as error:
        return [FieldError(path, address, f"parse {json.dumps(address)}: {error}")]
    if url.scheme in _SCHEMES:
        return []
    detail = (
        f"unsupported scheme: {url.scheme}.  Options are none, dns, unix, or unix-abstract.  "
        "See https://github.com/grpc/grpc/blob/master/doc/naming.md"
    )
    return [FieldError(path, address, detail)]
