"""podtrail's own traces: `service::telemetry::traces` in the Collector's forms. Durations are whole milliseconds."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from podtrail.config.model import Headers, Model, WarningPath

TelemetryLevel = Annotated[
    Literal["none", "basic", "normal", "detailed"],
    BeforeValidator(lambda level: level.lower() if isinstance(level, str) else level),
]
_TLS: Final = "remove it: the certificates that this system trusts are trusted"


class OwnOtlpExporter(Model):
    """Where own spans are sent, over OTLP."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("certificate", "client_certificate", "client_key"), _TLS),
        "headers_list": "give them as headers: [{name: …, value: …}]",
    }

    protocol: Literal["http/protobuf", "grpc"] = Field(description="How; `grpc/protobuf` means `grpc`.")
    endpoint: str = Field(
        description="http:// or https:// with host and port; /v1/traces is added where it has no path."
    )
    headers: Headers = Field(
        default_factory=dict, description="Of each request: a list of `name` and `value`, or a map; values are secrets."
    )
    timeout: int = Field(10_000, ge=1, description="For a request, in milliseconds.")
    compression: Literal["gzip", "none"] = Field("none", description="Of requests.")
    insecure: bool = Field(False, description="Without TLS for an endpoint that has no http:// or https://.")

    @field_validator("protocol", mode="before")
    @classmethod
    def _without_its_encoding(cls, value: Any) -> Any:
        return "grpc" if value == "grpc/protobuf" else value

    @field_validator("endpoint")
    @classmethod
    def _an_address(cls, value: str) -> str:
        scheme, has_scheme, _ = value.partition("://")
        parts = urlsplit(value if has_scheme else f"//{value}")
        try:
            right = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            right = False
        if not right or (has_scheme and scheme not in ("http", "https")):
            raise ValueError("must be http://HOST:PORT, https://HOST:PORT or HOST:PORT")
        return value


class OwnExporter(Model):
    """What own spans are handed to."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "console": "use otlp: own spans on standard error would be among the log's lines",
        "zipkin": "use otlp, or let a Collector hand them on",
    }

    otlp: OwnOtlpExporter = Field(description="A backend over OTLP; the only kind there is.")


class OwnBatch(Model):
    """Sent together, in the background."""

    exporter: OwnExporter = Field(description="What they are handed to.")
    schedule_delay: int = Field(5000, ge=1, description="How long spans gather, in milliseconds.")
    export_timeout: int = Field(30_000, ge=1, description="For a batch, in milliseconds.")
    max_queue_size: int = Field(2048, ge=1, description="Spans that may wait; what is beyond that is lost.")
    max_export_batch_size: int = Field(512, ge=1, description="Spans in a request at most.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max_export_batch_size > self.max_queue_size:
            raise ValueError("max_export_batch_size must not be larger than max_queue_size")
        return self


class OwnSimple(Model):
    """Sent one by one, as soon as each ends; in the background as well."""

    exporter: OwnExporter = Field(description="What they are handed to.")


class OwnSpanProcessor(Model):
    """One way in which own spans leave the process: `batch` or `simple`."""

    batch: OwnBatch | None = Field(None, description="Sent together.")
    simple: OwnSimple | None = Field(None, description="Sent one by one.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.batch is None) == (self.simple is None):
            raise ValueError("must be one of batch and simple")
        return self


class AlwaysSampler(Model):
    """Has no settings."""


class RatioSampler(Model):
    """A share of traces, by their ids."""

    ratio: float = Field(ge=0, le=1, description="The share, from 0 to 1.")


class RootSampler(Model):
    """One of its keys."""

    always_on: AlwaysSampler | None = Field(None, description="All.")
    always_off: AlwaysSampler | None = Field(None, description="None.")
    trace_id_ratio_based: RatioSampler | None = Field(None, description="A share.")

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if len(self.model_fields_set) > 1:
            raise ValueError(f"must be one kind, not {' and '.join(sorted(self.model_fields_set))}")
        return self

    @property
    def share(self) -> float:
        """Return the share of traces that are sent, from 0 to 1."""
        if "trace_id_ratio_based" in self.model_fields_set:
            return 1.0 if self.trace_id_ratio_based is None else self.trace_id_ratio_based.ratio
        return 0.0 if "always_off" in self.model_fields_set else 1.0


class ParentBasedSampler(Model):
    """As its parent, and roots as `root` says; podtrail's own traces begin with itself, so that all depends on that."""

    of_the_collector: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("remote_parent_sampled", "remote_parent_not_sampled", "local_parent_sampled", "local_parent_not_sampled"),
        "remove it: podtrail's own traces begin with itself, and are sent whole",
    )

    root: RootSampler | None = Field(None, description="Which traces; absent: all.")


class OwnSampler(RootSampler):
    """Which of its own traces podtrail sends."""

    of_the_collector: ClassVar[Mapping[str, str]] = {"jaeger_remote": "use trace_id_ratio_based: {ratio: …}"}

    parent_based: ParentBasedSampler | None = Field(None, description="As `root` in it says.")

    @property
    def share(self) -> float:
        """Return the share of traces that are sent, from 0 to 1."""
        if self.parent_based is not None:
            return 1.0 if self.parent_based.root is None else self.parent_based.root.share
        return super().share


class OwnTracesConfig(Model):
    """podtrail's own traces; off unless there is a processor."""

    of_the_collector: ClassVar[Mapping[str, str]] = {"limits": "remove it: own spans have few attributes, and no more"}
    harmless: ClassVar[frozenset[str]] = frozenset(of_the_collector)

    level: TelemetryLevel = Field(
        "basic", description="`none` switches own traces off; the other levels give the same spans."
    )
    processors: Annotated[tuple[OwnSpanProcessor, ...], Field(max_length=4)] = Field(
        (), description="Where own spans are sent; without any there are none."
    )
    sampler: OwnSampler | None = Field(None, description="Which traces; absent: all.")
    propagators: tuple[Literal["tracecontext", "b3"], ...] = Field(
        (), description="Accepted as in the Collector, and without effect: podtrail's own traces begin with itself."
    )

    @property
    def share(self) -> float:
        """Return the share of own traces that are sent, from 0 to 1."""
        if self.level == "none" or not self.processors:
            return 0.0
        return 1.0 if self.sampler is None else self.sampler.share

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Warn of what does nothing."""
        if not self.propagators:
            return []
        return [(("propagators",), "has no effect: podtrail's own traces begin with itself")]
