package kubescheduler

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// gate is an exporter that waits until it is opened.
type gate struct {
	open    chan struct{}
	fails   error
	mu      sync.Mutex
	batches [][]string
}

func (g *gate) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	select {
	case <-g.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	var names []string
	for _, span := range spans {
		names = append(names, span.Name())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.batches = append(g.batches, names)
	return g.fails
}

func (g *gate) Shutdown(context.Context) error { return nil }

func (g *gate) exported() (spans int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, batch := range g.batches {
		spans += len(batch)
	}
	return spans
}

// spans makes those of one attempt: children first, then the root.
func spans(number byte, children int, root bool) []sdktrace.ReadOnlySpan {
	id := trace.TraceID{15: number}
	parent := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{7: 1}, TraceFlags: trace.FlagsSampled})
	var stubs tracetest.SpanStubs
	for range children {
		stubs = append(stubs, tracetest.SpanStub{Name: "child", SpanContext: parent.WithSpanID(trace.SpanID{7: 2}), Parent: parent})
	}
	if root {
		stubs = append(stubs, tracetest.SpanStub{Name: "root", SpanContext: parent})
	}
	return stubs.Snapshots()
}

func newGate(opened bool) *gate {
	g := &gate{open: make(chan struct{})}
	if opened {
		close(g.open)
	}
	return g
}

func lostSpans(p *boundedProcessor) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	total := 0
	for _, number := range p.reported.lost {
		total += number
	}
	return total
}

func TestAFullQueueLosesAttemptsWhole(t *testing.T) {
	g := newGate(false)
	p := newBoundedProcessor(g, exportSettings{queue: 6, batch: 100, delay: time.Hour, timeout: time.Hour}, newCounters())
	for number := range byte(3) {
		for _, span := range spans(number+1, 3, true) {
			p.OnEnd(span)
		}
	}
	if lost := lostSpans(p); lost != 8 {
		t.Errorf("%d spans lost of three attempts of 4 with room for 6", lost)
	}
	close(g.open)
	if err := p.Shutdown(context.Background()); err != nil || g.exported() != 4 {
		t.Errorf("%v, exported %v", err, g.batches)
	}
	p.OnEnd(spans(9, 0, true)[0])
	if lost := lostSpans(p); lost != 1 {
		t.Errorf("%d spans lost after the shutdown", lost)
	}
}

func TestALongAttemptLeavesInParts(t *testing.T) {
	g := newGate(true)
	p := newBoundedProcessor(g, exportSettings{queue: 100, batch: 50, delay: time.Millisecond, timeout: time.Hour}, newCounters())
	for _, span := range spans(1, 3, false) {
		p.OnEnd(span)
	}
	for deadline := time.Now().Add(patience); g.exported() < 3 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	p.OnEnd(spans(1, 0, true)[0])
	if err := p.Shutdown(context.Background()); err != nil || g.exported() != 4 || p.waiting != 0 {
		t.Errorf("%v, exported %v, waiting %d", err, g.batches, p.waiting)
	}
}

func TestAShutdownDoesNotWaitForAnEndpointThatHangs(t *testing.T) {
	g := newGate(false)
	p := newBoundedProcessor(g, exportSettings{queue: 100, batch: 2, delay: time.Hour, timeout: time.Hour}, newCounters())
	for _, span := range spans(1, 3, true) {
		p.OnEnd(span)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := p.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	close(g.open) // what comes back from the endpoint after that counts no more
	<-p.stopped
	if lost := p.counters.lostSpans.WithLabelValues(lostShutdown); lost == nil || p.waiting != 0 || p.leaving != 0 {
		t.Errorf("%d waiting, %d leaving", p.waiting, p.leaving)
	}
}

func TestAFailedExportIsCounted(t *testing.T) {
	g := newGate(true)
	g.fails = errors.New("rejected")
	p := newBoundedProcessor(g, exportSettings{queue: 100, batch: 4, delay: time.Hour, timeout: time.Hour}, newCounters())
	for _, span := range spans(1, 3, true) {
		p.OnEnd(span)
	}
	if err := p.Shutdown(context.Background()); err != nil || g.exported() != 4 || p.reported.problem == nil {
		t.Errorf("%v, exported %v, problem %v", err, g.batches, p.reported.problem)
	}
}
