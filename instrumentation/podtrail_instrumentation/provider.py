"""The tracer provider of a component, as `k8s.io/component-base/tracing` builds it from the configuration.

No configuration: spans are not made, but context that comes in goes out again (passthrough). Otherwise roots are
sampled at the configured rate, by default none, and spans that have a parent share its fate.
"""

import os

from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Sampler
from opentelemetry.trace import NoOpTracerProvider, TracerProvider

from .batching import BoundedBatchProcessor
from .configuration import MAX_RATE, TracingConfiguration
from .environment import batch_settings
from .sampling import RateSampler
from .span_counters import SpanCounters
from .sparing import SparingTracerProvider


def tracer_provider(
    configuration: TracingConfiguration | None,
    resource: Resource,
    counters: SpanCounters,
    *,
    shutdown_timeout: float = 2.0,
) -> TracerProvider:
    """The provider for `configuration` (valid, see `validate_tracing_configuration`); `shutdown` ends it.

    `resource` says who the spans are of, `OTEL_RESOURCE_ATTRIBUTES` and `OTEL_SERVICE_NAME` say it better, if they do.
    Spans leave over OTLP/gRPC without TLS, in the background, as `OTEL_BSP_*` and `OTEL_EXPORTER_OTLP_*` say; what
    becomes of them is in `counters`. `shutdown` takes at most `shutdown_timeout` seconds.
    """
    if configuration is None:
        return NoOpTracerProvider()
    from .exporting import OtlpExporter

    settings = batch_settings(os.environ)
    exporter = OtlpExporter(configuration.address, counters, settings, os.environ)
    processor = BoundedBatchProcessor(exporter, counters, settings, shutdown_timeout=shutdown_timeout)
    described = resource.merge(OTELResourceDetector().detect())
    return provider_around(processor, described, sampler=sampler(configuration))


def provider_around(
    processor: SpanProcessor,
    resource: Resource,
    *,
    sampler: Sampler | None = None,
    id_generator: IdGenerator | None = None,
) -> SdkTracerProvider:
    """A provider whose finished spans go to `processor`; samples everything unless told otherwise."""
    ids = id_generator or RandomIdGenerator()
    if sampler is None or isinstance(sampler, RateSampler):
        return SparingTracerProvider(processor, sampler or RateSampler(1), resource, ids)
    provider = SdkTracerProvider(sampler=sampler, resource=resource, id_generator=ids, shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


def sampler(configuration: TracingConfiguration) -> RateSampler:
    """ParentBased over the rate for roots; a rate of 0 or none is never."""
    rate = configuration.sampling_rate_per_million or 0
    return RateSampler(rate / MAX_RATE)


def shutdown(provider: TracerProvider) -> None:
    """Lets go of what is still to be exported and ends `provider`, within its processor's deadline."""
    if isinstance(provider, SdkTracerProvider):
        provider.shutdown()
