"""What a handler is called for, as kopf's keyword arguments tell it: attributes of its span, annotations to link to."""

from collections.abc import Mapping
from typing import Any

from podtrail_instrumentation.steps import Fields

_LONGEST = 512
"""Characters of a value; names in Kubernetes have at most 253."""
_HAVE_ATTRIBUTES = {
    ("", "Pod"): "k8s.pod",
    ("", "Node"): "k8s.node",
    ("apps", "Deployment"): "k8s.deployment",
    ("apps", "ReplicaSet"): "k8s.replicaset",
    ("apps", "StatefulSet"): "k8s.statefulset",
    ("apps", "DaemonSet"): "k8s.daemonset",
    ("batch", "Job"): "k8s.job",
    ("batch", "CronJob"): "k8s.cronjob",
}
"""Groups and kinds for which OpenTelemetry's semantic conventions have a name and a uid of their own."""


def attributes_of(handler: str, arguments: Mapping[str, Any]) -> Fields:
    """The attributes of a handler's span: the handler and why it is called, then the object.

    `k8s.object.*` are what the Collector's receivers call the object that something is about.
    """
    found: dict[str, str | bool | int | float] = {"kopf.handler": handler[:_LONGEST]}
    reason = arguments.get("reason") or arguments.get("operation") or arguments.get("type")
    if isinstance(reason, str):
        found["kopf.reason"] = str(reason)[:_LONGEST]
    retry = arguments.get("retry")
    if isinstance(retry, int):
        found["kopf.retry"] = retry
    body = _mapping(arguments.get("body"))
    metadata = _mapping(body.get("metadata"))
    about = {
        "k8s.object.api_version": body.get("apiVersion"),
        "k8s.object.kind": body.get("kind"),
        "k8s.object.name": metadata.get("name"),
        "k8s.object.uid": metadata.get("uid"),
        "k8s.object.resource_version": metadata.get("resourceVersion"),
        "k8s.namespace.name": metadata.get("namespace"),
    }
    if known := _HAVE_ATTRIBUTES.get((_group_of(body), kind_of(arguments))):
        about |= {f"{known}.name": metadata.get("name"), f"{known}.uid": metadata.get("uid")}
    found |= {key: value[:_LONGEST] for key, value in about.items() if isinstance(value, str) and value}
    return found


def _group_of(body: Mapping[str, Any]) -> str:
    """Return the API group of an object, "" for the core group."""
    version = body.get("apiVersion")
    group, slash, _ = version.partition("/") if isinstance(version, str) else ("", "", "")
    return group if slash else ""


def kind_of(arguments: Mapping[str, Any]) -> str:
    """The kind of the handled object, empty where there is none."""
    kind = _mapping(arguments.get("body")).get("kind")
    return kind if isinstance(kind, str) else ""


def uid_of(arguments: Mapping[str, Any]) -> str:
    """The uid of the handled object, empty where there is none."""
    uid = _mapping(_mapping(arguments.get("body")).get("metadata")).get("uid")
    return uid if isinstance(uid, str) else ""


def context_annotations(annotations: object, prefix: str) -> dict[str, str]:
    """Those of an object's annotations that carry trace context, and no other value than a text."""
    given = _mapping(annotations)
    found = {key: given.get(key) for key in (prefix + "traceparent", prefix + "tracestate")}
    return {key: value for key, value in found.items() if isinstance(value, str)}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
