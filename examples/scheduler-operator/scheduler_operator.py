"""An operator whose operand is a scheduler: a `Scheduler` becomes the ConfigMap that podtrail-scheduler runs with.

    kopf run --standalone --namespace default scheduler_operator.py

Each handler's call is a trace of its own (`OTEL_EXPORTER_OTLP_ENDPOINT` says where to), linked to the change that it
answers. What it writes leads back to it: the ConfigMap by its annotation, the configuration in it by a comment, which
podtrail-scheduler links each attempt to.
"""

import os
from collections.abc import Mapping
from typing import Any

import kopf
import yaml
from opentelemetry import propagate
from opentelemetry.sdk.resources import Resource
from podtrail_instrumentation import SpanCounters, TracingConfiguration, shutdown, tracer_provider
from podtrail_instrumentation.operators import OperatorTracing

from kubernetes import client, config

FILE = "scheduler.yaml"
"""The key of the ConfigMap, and so the file's name where that is mounted."""

endpoint = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
provider = tracer_provider(
    TracingConfiguration(endpoint=endpoint, sampling_rate_per_million=1_000_000) if endpoint else None,
    Resource({"service.name": "scheduler-operator"}),
    SpanCounters(),
)
tracing = OperatorTracing(provider.get_tracer("scheduler_operator"))


@kopf.on.startup()
def log_in(**_: Any) -> None:
    """Reach the API server as kopf does."""
    try:
        config.load_incluster_config()
    except config.ConfigException:
        config.load_kube_config()


@kopf.on.cleanup()
def let_the_last_spans_leave(**_: Any) -> None:
    """End the tracer provider."""
    shutdown(provider)


@kopf.on.create("podtrail.example.com", "v1", "schedulers")
@kopf.on.update("podtrail.example.com", "v1", "schedulers", field="spec")
@kopf.on.resume("podtrail.example.com", "v1", "schedulers")
@tracing.handler
def apply(name: str, namespace: str, spec: Mapping[str, Any], **_: Any) -> None:
    """Write the configuration, unless it is there already."""
    text = configuration(spec)
    api = requests()
    live = found(api, name, namespace)
    if live is not None and without_comments((live.get("data") or {}).get(FILE, "")) == text:
        return  # what made it stays the change that it links to
    made: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {FILE: "".join(f"# {key}: {value}\n" for key, value in tracing.annotations().items()) + text},
    }
    kopf.adopt(made)
    tracing.carry(made, live)
    try:
        if live is None:
            api.create_namespaced_config_map(namespace, made)
        else:
            made["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
            api.replace_namespaced_config_map(name, namespace, made)
    except client.ApiException as refused:
        if refused.status in (409, 429) or refused.status >= 500:
            raise kopf.TemporaryError(f"{refused.status} {refused.reason}", delay=2) from refused
        raise kopf.PermanentError(f"{refused.status} {refused.reason}") from refused


def configuration(spec: Mapping[str, Any]) -> str:
    """Return the KubeSchedulerConfiguration that a Scheduler asks for."""
    given = dict(spec.get("configuration") or {})
    if "profiles" in given:
        raise kopf.PermanentError("spec.configuration.profiles: the operator writes it, from spec.scorePlugins")
    enabled = [{"name": each["name"], "weight": each.get("weight", 1)} for each in spec.get("scorePlugins") or ()]
    profile: dict[str, Any] = {"schedulerName": spec["schedulerName"]}
    if enabled:
        profile["plugins"] = {"multiPoint": {"enabled": enabled}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return str(yaml.safe_dump({**given, **head, "profiles": [profile]}))


def without_comments(text: str) -> str:
    """Return a configuration without the lines above it."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


def found(api: client.CoreV1Api, name: str, namespace: str) -> dict[str, Any] | None:
    """Return a ConfigMap as the API server has it, None when there is none."""
    try:
        there = api.read_namespaced_config_map(name, namespace)
    except client.ApiException as refused:
        if refused.status == 404:
            return None
        raise kopf.TemporaryError(f"{refused.status} {refused.reason}", delay=2) from refused
    as_json: dict[str, Any] = api.api_client.sanitize_for_serialization(there)
    return as_json


def requests() -> client.CoreV1Api:
    """Return a client whose requests belong to the span of the handler: the API server's spans of them do, too."""
    made = client.ApiClient()
    headers: dict[str, str] = {}
    propagate.inject(headers)
    for key, value in headers.items():
        made.set_default_header(key, value)
    return client.CoreV1Api(made)
