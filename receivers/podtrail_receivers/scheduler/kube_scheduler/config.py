"""Configuration of the `scheduler` receiver's source that watches a stock kube-scheduler from beside it."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from podtrail.config.types import MILLISECOND, SECOND, Model, PositiveDuration, TlsClientSettings
from podtrail.reconstruction import zone_of
from podtrail_receivers.kubernetes_api import KubernetesConfig

SERVICE_ACCOUNT_TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"  # noqa: S105 - a path
STDIN = "-"


class LogConfig(Model):
    """The log of kube-scheduler: text or JSON, of versions 1.20 to 1.38, plain, with prefixes, or in an envelope."""

    include: tuple[str, ...] = Field(
        min_length=1,
        description="Files: paths, or patterns with `*`, `?`, `[…]`, `{a,b}` and `**`; rotated ones are recognized. "
        "`-`: standard input.",
    )
    exclude: tuple[str, ...] = Field(
        (), description="Files of these not to read: paths or patterns; one without `/` means the name of a file."
    )
    follow: bool = Field(True, description="Go on as files grow, rotate and appear; otherwise read what is there.")
    start_at: Literal["beginning", "end"] = Field(
        "beginning",
        description="With `follow`: where to begin in files that are there at the start. An attempt that is told again "
        "after a restart has the same trace and span ids.",
    )
    poll_interval: PositiveDuration = Field(
        200 * MILLISECOND, description="With `follow`: how often to look for what is new."
    )

    timezone: str = Field(
        "",
        description="The time zone of the log's times, which klog does not write: a name (`Europe/Berlin`) or an "
        "offset (`+02:00`). Empty: derived from the envelope of the lines (CRI, Docker) or from the clock, else UTC.",
    )

    @field_validator("timezone")
    @classmethod
    def _check_timezone(cls, text: str) -> str:
        if text:
            zone_of(text)
        return text

    @model_validator(mode="after")
    def _check_stdin(self) -> Self:
        if STDIN in self.include and len(self.include) > 1:
            raise ValueError(f"include: `{STDIN}` is standard input and stands alone")
        return self


class WatchConfig(Model):
    """What is listed and watched at the API server; the ServiceAccount needs get, list and watch on these."""

    pods: bool = Field(
        True, description="Pods: uids, creation and queue wait, conditions, nominations, traceparent annotations."
    )
    nodes: bool = Field(True, description="Nodes, counted: how many came, changed and went.")
    events: bool = Field(True, description="Events of events.k8s.io/v1 about Pods: reasons where there is no log.")

    @model_validator(mode="after")
    def _check_any(self) -> Self:
        if not (self.pods or self.events):
            raise ValueError("nothing tells of attempts: watch pods, events or both, or leave `watch` out")
        return self


class MetricsPageConfig(Model):
    """The scheduler's own `/metrics`: how many attempts it counted, those that left no other trace included."""

    endpoint: str = Field("https://127.0.0.1:10259/metrics", description="The page's URL.")
    tls: TlsClientSettings | None = Field(
        None,
        description="TLS of an https endpoint. Absent: on loopback the certificate is not verified, for "
        "kube-scheduler signs its own.",
    )
    token_file: str = Field(
        SERVICE_ACCOUNT_TOKEN,
        description="A file with the bearer token, read each time; passed over where there is none. Empty: no token.",
    )
    collection_interval: PositiveDuration = Field(15 * SECOND, description="How often to read it.")

    @field_validator("endpoint")
    @classmethod
    def _check_endpoint(cls, text: str) -> str:
        url = urlsplit(text)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"{text!r} is no URL: write for example https://127.0.0.1:10259/metrics")
        return text


class ConfigzConfig(MetricsPageConfig):
    """The scheduler's own `/configz`: which configuration its attempts are made with."""

    endpoint: str = Field("https://127.0.0.1:10259/configz", description="The page's URL.")


class KubeSchedulerConfig(Model):
    """Rebuild the attempts of a stock kube-scheduler. Each source is optional; together they tell the most."""

    log: LogConfig | None = Field(None, description="Its log. From -v=2 on it tells of every attempt.")
    watch: WatchConfig | None = Field(None, description="Watches of Pods, Nodes and Events.")
    kubernetes: KubernetesConfig = Field(
        default_factory=KubernetesConfig, description="With `watch`: how the API server is reached."
    )
    metrics: MetricsPageConfig | None = Field(None, description="Its `/metrics`.")
    configz: ConfigzConfig | None = Field(
        None,
        description="Its `/configz`: attempts say `scheduler.config.generation`. The token needs `get` on the "
        "nonResourceURL `/configz`.",
    )
    profiles: tuple[str, ...] = Field(
        (),
        description="Only attempts of these profiles (`schedulerName` of Pods), and those whose profile nothing "
        "tells; empty: of all.",
    )
    traced_attempts: Literal["omit", "keep"] = Field(
        "omit",
        description="Attempts whose spans podtrail-kube-scheduler exports itself, as its log says: `omit`, for they "
        "come by OTLP, or `keep`, if its spans go elsewhere.",
    )
    checkpoint: str = Field(
        "",
        description="A file that outlives the process: what was told before a restart is not told again, and attempts "
        "are numbered on. Empty: none; what is told again has the same ids.",
    )

    @model_validator(mode="after")
    def _check_sources(self) -> Self:
        if self.log is None and self.watch is None:
            raise ValueError("nothing tells of attempts: give log, watch or both")
        return self

    @property
    def finite(self) -> bool:
        """Whether its sources come to an end: a log that is not followed, and nothing else."""
        return self.watch is None and self.log is not None and (not self.log.follow or STDIN in self.log.include)
