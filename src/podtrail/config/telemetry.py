"""What podtrail says about itself: `service::telemetry` in the Collector's forms."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from podtrail.config.endpoint import Endpoint, host_port, is_loopback
from podtrail.config.model import Model, WarningPath
from podtrail.config.own_traces import OwnTracesConfig, TelemetryLevel

_PORT: Final = 8888
AttributeValue = str | int | float | bool | list[str] | list[int] | list[float] | list[bool]
_OF_A_RESOURCE: Final[Mapping[str, str]] = {
    "attributes_list": "give them as attributes: [{name: …, value: …}]",
    **dict.fromkeys(
        ("detectors", "detection/development"), "remove it: nothing is detected, give the attributes themselves"
    ),
    "schema_url": "",
}
"""Keys of the Collector's that are no attributes, and what to do instead; "": nothing, it has no effect."""


class PrometheusReader(Model):
    """A page in Prometheus' text format. Names are as docs/metrics.md has them, no suffix is added."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "with_resource_constant_labels": "remove it: have Prometheus add labels when it scrapes"
    }
    harmless: ClassVar[frozenset[str]] = frozenset(of_the_collector)

    host: str = Field("localhost", description="Host or address to listen on.")
    port: int = Field(_PORT, ge=0, le=65_535, description="Port to listen on; 0: any free one.")
    without_type_suffix: bool = Field(True, description="Only `true`: no `_total` is added to names.")
    without_units: bool = Field(True, description="Only `true`: no unit is added to names.")
    without_scope_info: bool = Field(True, description="Only `true`: no scope labels.")

    @field_validator("without_type_suffix", "without_units", "without_scope_info")
    @classmethod
    def _only_true(cls, value: bool) -> bool:
        if not value:
            raise ValueError("can only be true: podtrail adds no suffixes or scope labels to the names of its metrics")
        return value


class PullExporter(Model):
    """How metrics are offered."""

    prometheus: PrometheusReader = Field(description="A page for Prometheus.")


class PullReader(Model):
    """Metrics that somebody fetches."""

    exporter: PullExporter = Field(description="How they are offered.")


class Reader(Model):
    """One way in which metrics leave the process."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "periodic": "own metrics are pulled: use pull::exporter::prometheus, or let a Collector scrape it",
        "producers": "remove it: there are podtrail's own metrics only",
    }
    harmless: ClassVar[frozenset[str]] = frozenset(of_the_collector)

    pull: PullReader | None = Field(None, description="Metrics that somebody fetches; the only kind there is.")

    @model_validator(mode="before")
    @classmethod
    def _is_of_a_kind(cls, data: Any) -> Any:
        if isinstance(data, dict) and not {"pull", "periodic"} & data.keys():
            raise ValueError("names no kind of reader: add pull: {exporter: {prometheus: {}}}")
        return data


class OwnMetricsConfig(Model):
    """podtrail's own metrics."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        "views": "remove it: drop and rename metrics where they are scraped"
    }
    harmless: ClassVar[frozenset[str]] = frozenset(of_the_collector)

    level: TelemetryLevel = Field(
        "normal", description="`none` switches the metrics page off; the other levels give the same metrics."
    )
    readers: tuple[Reader, ...] | None = Field(
        None, description="Where metrics are offered, one `pull` at most; absent: localhost:8888; without one: nowhere."
    )
    address: Endpoint | None = Field(None, description="Older form of one Prometheus reader: host:port.")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.address is not None and self.readers is not None:
            raise ValueError("address and readers are both given: keep readers")
        if sum(reader.pull is not None for reader in self.readers or ()) > 1:
            raise ValueError("readers has more than one pull: there is one metrics page")
        return self

    @property
    def endpoint(self) -> tuple[str, int] | None:
        """Host and port of the metrics page, None when there is none."""
        if self.level == "none":
            return None
        if self.address is not None:
            return host_port(self.address)
        if self.readers is None:
            return "localhost", _PORT
        pages = [reader.pull.exporter.prometheus for reader in self.readers if reader.pull is not None]
        return (pages[0].host, pages[0].port) if pages else None

    def warnings(self) -> list[tuple[WarningPath, str]]:
        """Warn of a page that is open to the network."""
        if self.endpoint is None or is_loopback(self.endpoint[0]):
            return []
        path: WarningPath = ("address",) if self.address is not None else ("readers",)
        return [(path, f"the metrics page listens on {self.endpoint[0] or 'every interface'}, not only on this host")]


class LogsConfig(Model):
    """podtrail's own log on standard error."""

    of_the_collector: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("development", "disable_caller", "disable_stacktrace", "disable_zap_resource", "initial_fields"),
            "remove it: a line has time, level, component and message, an error of a component its trace",
        ),
        **dict.fromkeys(("output_paths", "error_output_paths"), "remove it: the log goes to standard error"),
        "processors": "let a Collector or an agent read standard error",
        "sampling": "remove it: the log is short, and what repeats itself is not said each time",
    }
    harmless: ClassVar[frozenset[str]] = frozenset(
        {
            *("development", "disable_caller", "disable_stacktrace", "disable_zap_resource", "initial_fields"),
            "sampling",
        }
    )

    level: Literal["debug", "info", "warn", "error"] = Field("info", description="Least level that is written.")
    encoding: Literal["console", "json"] | None = Field(
        None, description="`console` for people, `json` for machines; absent: console on a terminal, else json."
    )

    @field_validator("level", mode="before")
    @classmethod
    def _any_case(cls, value: Any) -> Any:
        return (value.lower() or "info") if isinstance(value, str) else value


def _attributes(resource: object) -> object:
    """Return attributes that are given as a list by their names, anything else as it is."""
    if not isinstance(resource, Mapping):
        return resource
    given = dict(resource)
    for key, hint in _OF_A_RESOURCE.items():
        if given.pop(key, None) and hint:
            raise ValueError(f"{key} is the Collector's, podtrail does not have it; {hint}")
    listed = given.pop("attributes", None) if isinstance(given.get("attributes"), list) else None
    if odd := [key for key, value in given.items() if not isinstance(value, str | None)]:
        raise ValueError(f"{odd[0]} must be text; other values stand in a list: attributes: [{{name: …, value: …}}]")
    if not listed:
        return given
    if given:
        raise ValueError(f"attributes can't be used together with {next(iter(given))}: keep one form")
    for at, one in enumerate(listed, 1):
        if not isinstance(one, Mapping) or "name" not in one or one.keys() - {"name", "value", "type"}:
            raise ValueError(f"attributes has item {at}, which must have name and value, and perhaps type")
    return {one["name"]: one.get("value") for one in listed}


class TelemetryConfig(Model):
    """What podtrail says about itself."""

    metrics: OwnMetricsConfig = Field(default_factory=OwnMetricsConfig, description="Own metrics.")
    logs: LogsConfig = Field(default_factory=LogsConfig, description="Own log on standard error.")
    traces: OwnTracesConfig = Field(default_factory=OwnTracesConfig, description="Own traces.")
    resource: Annotated[dict[str, AttributeValue | None], BeforeValidator(_attributes)] = Field(
        default_factory=dict,
        description="Attributes that describe this process, by name; or `attributes`, a list of `name` and `value`.",
    )
