"""What a Kubernetes component in Python needs to be traced, as `k8s.io/component-base/tracing` gives it to those in Go.

Needs nothing but the OpenTelemetry API and SDK (gRPC is imported when a provider is configured).
"""

from .annotations import DEFAULT_PREFIX, PropagationCounters, extract_context, inject_context, inject_span_context
from .batching import BoundedBatchProcessor
from .configuration import FieldError, TracingConfiguration, validate_tracing_configuration
from .environment import BatchSettings
from .klog import KlogFormatter
from .provider import provider_around, shutdown, tracer_provider
from .reconcile import start_reconcile_span
from .span import Clock, Log, Span, log_long, start
from .span_counters import SpanCounters

__all__ = [
    "DEFAULT_PREFIX",
    "BatchSettings",
    "BoundedBatchProcessor",
    "Clock",
    "FieldError",
    "KlogFormatter",
    "Log",
    "PropagationCounters",
    "Span",
    "SpanCounters",
    "TracingConfiguration",
    "extract_context",
    "inject_context",
    "inject_span_context",
    "log_long",
    "provider_around",
    "shutdown",
    "start",
    "start_reconcile_span",
    "tracer_provider",
    "validate_tracing_configuration",
]
