package reconcile

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are those of all controllers of the process.
var counts = newCounters()

// Collector returns the counters trace_context_annotations_{injected,extracted}_total of KEP-5915, to be registered once:
//
//	metrics.Registry.MustRegister(reconcile.Collector())
func Collector() prometheus.Collector { return counts }

type counters struct {
	injectedContexts, extractedContexts *prometheus.CounterVec

	mu     sync.Mutex
	labels map[[2]string]bool
}

func newCounters() *counters {
	made := func(name, help string) *prometheus.CounterVec {
		labels := []string{"component", "controller", "resource_kind", "result"}
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &counters{
		injectedContexts:  made(injectedName, "Trace contexts written into annotations, by result."),
		extractedContexts: made(extractedName, "Trace contexts read from annotations, by result."),
		labels:            map[[2]string]bool{},
	}
}

// Describe implements prometheus.Collector.
func (c *counters) Describe(to chan<- *prometheus.Desc) {
	c.injectedContexts.Describe(to)
	c.extractedContexts.Describe(to)
}

// Collect implements prometheus.Collector.
func (c *counters) Collect(to chan<- prometheus.Metric) {
	c.injectedContexts.Collect(to)
	c.extractedContexts.Collect(to)
}

func (c *counters) injected(controller, kind, result string) {
	c.count(c.injectedContexts, controller, kind, result)
}

func (c *counters) extracted(controller, kind, result string) {
	c.count(c.extractedContexts, controller, kind, result)
}

func (c *counters) count(vector *prometheus.CounterVec, controller, kind, result string) {
	pair := [2]string{cut(controller, maxCharacters), cut(kind, maxCharacters)}
	c.mu.Lock()
	if !c.labels[pair] && len(c.labels) >= maxCounted {
		pair = [2]string{"other", "other"}
	} else {
		c.labels[pair] = true
	}
	c.mu.Unlock()
	vector.WithLabelValues("reconcile", pair[0], pair[1], result).Inc()
}
