package kubescheduler

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"podtrail/instrumentation/tracecontext"
)

// counters are the metrics that the scheduler serves besides its own.
type counters struct {
	exportedSpans, lostSpans, injectedContexts, extractedContexts *metrics.CounterVec
}

var (
	registered    *counters
	registerOnce  sync.Once
	contextLabels = []string{"component", "controller", "resource_kind", "result"}
)

func newCounters() *counters {
	registerOnce.Do(func() {
		registered = &counters{
			exportedSpans:     counter("scheduler_tracing_spans_exported_total", "Spans exported, or not, by result.", "result"),
			lostSpans:         counter("scheduler_tracing_spans_dropped_total", "Spans lost, by reason.", "reason"),
			injectedContexts:  counter("trace_context_annotations_injected_total", "Trace contexts written into annotations, by result.", contextLabels...),
			extractedContexts: counter("trace_context_annotations_extracted_total", "Trace contexts read from annotations, by result.", contextLabels...),
		}
		legacyregistry.MustRegister(registered.exportedSpans, registered.lostSpans, registered.injectedContexts, registered.extractedContexts)
		for _, result := range []string{"success", "error"} {
			registered.exportedSpans.WithLabelValues(result)
		}
		for _, reason := range []string{lostQueueFull, lostExport, lostShutdown} {
			registered.lostSpans.WithLabelValues(reason)
		}
	})
	return registered
}

func counter(name, help string, labels ...string) *metrics.CounterVec {
	return metrics.NewCounterVec(&metrics.CounterOpts{Name: name, Help: help, StabilityLevel: metrics.ALPHA}, labels)
}

func (c *counters) exported(result string, spans int) {
	c.exportedSpans.WithLabelValues(result).Add(float64(spans))
}

func (c *counters) lost(reason string, spans int) {
	c.lostSpans.WithLabelValues(reason).Add(float64(spans))
}

func (c *counters) injected(profile string, result tracecontext.Result) {
	c.injectedContexts.WithLabelValues("kube-scheduler", profile, "Pod", string(result)).Inc()
}

func (c *counters) extracted(profile string, result tracecontext.Result) {
	c.extractedContexts.WithLabelValues("kube-scheduler", profile, "Pod", string(result)).Inc()
}
