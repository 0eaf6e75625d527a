package kubescheduler

import (
	"context"
	"fmt"
	"os"
	"time"

	utilversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// shutdownTimeout bounds Shutdown.
const shutdownTimeout = 2 * time.Second

// Tracing makes and exports the spans of a scheduler.
type Tracing struct {
	// enabled is false with the gate off, and without a configuration: then there are no hooks at all.
	enabled    bool
	propagates bool
	// perMillion is how many of a million attempts are sampled.
	perMillion int32
	provider   trace.TracerProvider
	shutdown   func(context.Context) error
	counters   *counters
}

// Start makes the tracer provider that settings ask for. identity is the name under which the scheduler leads, usually
// that of the Lease's holder; it becomes service.instance.id.
func Start(ctx context.Context, settings Settings, identity string) (*Tracing, error) {
	t := &Tracing{
		provider: noop.NewTracerProvider(),
		shutdown: func(context.Context) error { return nil },
	}
	if !settings.Gates[GateTracing] || settings.Tracing == nil {
		return t, nil
	}
	options := []otlptracegrpc.Option{otlptracegrpc.WithInsecure()}
	if settings.Tracing.Endpoint != nil {
		options = append(options, otlptracegrpc.WithEndpoint(*settings.Tracing.Endpoint))
	}
	exporter, err := otlptracegrpc.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("OTLP exporter: %w", err)
	}
	rate := int32(0)
	if settings.Tracing.SamplingRatePerMillion != nil {
		rate = *settings.Tracing.SamplingRatePerMillion
	}
	return t.with(exporter, rate, settings.Gates[GatePropagation], identity)
}

func (t *Tracing) with(exporter sdktrace.SpanExporter, perMillion int32, propagates bool, identity string) (*Tracing, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	attributes := []attribute.KeyValue{
		attribute.String("service.name", "kube-scheduler"),
		attribute.String("service.version", utilversion.Get().GitVersion),
		attribute.String("host.name", host),
	}
	if identity != "" {
		attributes = append(attributes, attribute.String("service.instance.id", identity))
	}
	described, err := resource.New(context.Background(), resource.WithAttributes(attributes...), resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t.counters = newCounters()
	processor := newBoundedProcessor(exporter, settingsOf(environment), t.counters)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(float64(perMillion)/allOfThem))),
		sdktrace.WithSpanProcessor(processor),
		sdktrace.WithResource(described),
	)
	t.provider, t.shutdown, t.enabled, t.propagates, t.perMillion = provider, processor.Shutdown, true, propagates, perMillion
	return t, nil
}

// Provider returns the tracer provider, for the global one or for plugins.
func (t *Tracing) Provider() trace.TracerProvider { return t.provider }

// Shutdown exports the last spans. It takes at most two seconds; spans that have not left by then are counted as lost.
func (t *Tracing) Shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := t.shutdown(ctx); err != nil {
			klog.V(2).InfoS("Shutdown of the OTLP exporter failed", "err", err)
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// useGlobally makes the provider OpenTelemetry's global one, so that spans of plugins join their attempts.
func (t *Tracing) useGlobally() {
	if !t.enabled {
		return
	}
	otel.SetTracerProvider(t.provider)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		klog.V(2).InfoS("OpenTelemetry reports a problem", "err", err)
	}))
}
