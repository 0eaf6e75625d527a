"""What a running podtrail tells of itself for an issue: configuration, ledger, metrics, log, versions; no secrets."""

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import yaml

from podtrail.component import Metrics
from podtrail.config.redaction import Redaction
from podtrail.otlp import native
from podtrail.pipeline.ledger import Balance
from podtrail.pipeline.settings import Settings
from podtrail.service.ledger import equation
from podtrail.service.log_ring import LogRing

_DISTRIBUTIONS: Final = (
    *("podtrail", "aiohttp", "grpcio", "protobuf", "pydantic", "opentelemetry-proto", "opentelemetry-sdk"),
    *("google-re2", "cramjam", "zstandard", "prometheus-client", "jinja2", "confluent-kafka", "kubernetes"),
)


class SupportFacts:
    """Answers for a service; what it tells is made anew each time."""

    def __init__(
        self,
        settings: Callable[[], Settings],
        metrics: Metrics,
        balances: Callable[[], Sequence[Balance]],
        ring: LogRing,
    ) -> None:
        self._settings = settings
        self._metrics = metrics
        self._balances = balances
        self._ring = ring
        self._began = time.monotonic()

    def files(self) -> Mapping[str, str]:
        """Return text by the name of the file that it goes into."""
        from podtrail.service.telemetry import exposition

        settings = self._settings()
        redaction = _redaction(settings)
        return {
            "config.yaml": _configuration(settings, redaction),
            "versions.json": _json(_versions()),
            "health.json": _json(self._health(settings, redaction)),
            "ledger.json": _json([_balance(one) for one in self._balances()]),
            "metrics.txt": redaction.text(exposition(self._metrics)[0].decode("utf-8", "replace")),
            "log.jsonl": redaction.text("".join(f"{line}\n" for line in self._ring.lines())),
        }

    def _health(self, settings: Settings, redaction: Redaction) -> dict[str, Any]:
        return {
            "uptimeSeconds": round(time.monotonic() - self._began, 3),
            "balanced": not any(balance.missing for balance in self._balances()),
            "warnings": [redaction.text(warning.headline) for warning in settings.warnings],
            "logLinesForgotten": self._ring.forgotten,
        }


def _redaction(settings: Settings) -> Redaction:
    made = Redaction(os.environ, settings.from_files)
    for section in settings.sections.values():
        for one in section.values():
            made.learn(one.written, one.factory.Config)
    return made


def _configuration(settings: Settings, redaction: Redaction) -> str:
    """Return the configuration as YAML: components as they were written, and who is in which pipeline."""
    told: dict[str, Any] = {
        name: {id: redaction.configuration(one.written, one.factory.Config) for id, one in section.items()}
        for name, section in settings.sections.items()
        if section
    }
    pipelines: dict[str, Any] = {}
    for pipeline in settings.pipelines:
        stages = {name: list(getattr(pipeline, name)) for name in ("receivers", "processors", "exporters")}
        pipelines[pipeline.id] = {**stages, **({"durable": pipeline.durable} if pipeline.durable else {})}
    told["service"] = {"extensions": list(settings.service.extensions), "pipelines": pipelines}
    if settings.gates:
        told["feature_gates"] = sorted(settings.gates)
    return yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=120)


def _versions() -> dict[str, Any]:
    found: dict[str, str] = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "packages": found,
        "native": native.RUNS,
        "python": sys.version.split()[0],
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
    }


def _balance(balance: Balance) -> dict[str, Any]:
    terms = ("received", "created", "delivered", "sampled_out", "rejected", "in_memory", "in_queue", "missing")
    told: dict[str, Any] = {"exporter": balance.exporter, "equation": equation(balance)}
    return told | {term: getattr(balance, term) for term in terms} | {"dropped": dict(balance.dropped)}


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
