package kubescheduler

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Reasons for lost spans, the label `reason` of scheduler_tracing_spans_dropped_total.
const (
	lostQueueFull = "queue_full"
	lostExport    = "export_failed"
	lostShutdown  = "shutdown"
)

// exportSettings are OTEL_BSP_*, in spans and times. The defaults are OpenTelemetry's, but for the size of the queue:
// 2,048 spans are less than a fifth of a second of a busy scheduler.
type exportSettings struct {
	queue, batch   int
	delay, timeout time.Duration
}

func settingsOf(environment func(string) string) exportSettings {
	number := func(name string, standard int) int {
		text := strings.TrimSpace(environment(name))
		if text == "" {
			return standard
		}
		value, err := strconv.Atoi(text)
		if err != nil || value < 1 {
			klog.InfoS("Not a whole number from 1 on; the default counts", "variable", name, "value", text, "default", standard)
			return standard
		}
		return value
	}
	s := exportSettings{
		queue:   number("OTEL_BSP_MAX_QUEUE_SIZE", 32768),
		batch:   number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
		delay:   time.Duration(number("OTEL_BSP_SCHEDULE_DELAY", 5000)) * time.Millisecond,
		timeout: time.Duration(number("OTEL_BSP_EXPORT_TIMEOUT", 30000)) * time.Millisecond,
	}
	s.batch = min(s.batch, s.queue)
	return s
}

// boundedProcessor exports finished spans in the background. It never waits, holds a bounded number of spans, exports an
// attempt whole or loses it whole, and counts every span it loses. The SDK's batch processor tells of no lost span.
type boundedProcessor struct {
	exporter sdktrace.SpanExporter
	settings exportSettings
	counters *counters
	wake     chan struct{}
	stopped  chan struct{}

	mu     sync.Mutex
	closed bool
	// open are the traces whose root has not ended, ready the spans to export next; waiting counts the spans of both.
	open    map[trace.TraceID]*openTrace
	ready   []sdktrace.ReadOnlySpan
	waiting int
	// leaving are the spans of the batch that is being exported.
	leaving int

	reported lossReport
}

type openTrace struct {
	spans []sdktrace.ReadOnlySpan
	since time.Time
	// lost is true once a span of it was lost: then the others are, too.
	lost bool
}

func newBoundedProcessor(exporter sdktrace.SpanExporter, settings exportSettings, counters *counters) *boundedProcessor {
	p := &boundedProcessor{
		exporter: exporter, settings: settings, counters: counters,
		wake:    make(chan struct{}, 1),
		stopped: make(chan struct{}),
		open:    map[trace.TraceID]*openTrace{},
	}
	p.reported.lost = map[string]int{}
	go p.work()
	return p
}

// OnStart does nothing.
func (p *boundedProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a finished span, or counts it as lost.
func (p *boundedProcessor) OnEnd(span sdktrace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	id := span.SpanContext().TraceID()
	root := !span.Parent().IsValid() || span.Parent().IsRemote()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.lose(lostShutdown, 1)
		return
	}
	group := p.open[id]
	if group == nil {
		group = &openTrace{since: time.Now()}
		if !root {
			p.open[id] = group
		}
	}
	if group.lost || p.waiting >= p.settings.queue {
		p.waiting -= len(group.spans)
		p.lose(lostQueueFull, len(group.spans)+1)
		group.spans, group.lost = nil, true
	} else {
		group.spans = append(group.spans, span)
		p.waiting++
	}
	if root {
		delete(p.open, id)
		p.ready = append(p.ready, group.spans...)
		if len(p.ready) >= p.settings.batch {
			p.signal()
		}
	}
}

func (p *boundedProcessor) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// lose counts lost spans. The lock is held.
func (p *boundedProcessor) lose(reason string, number int) {
	p.counters.lost(reason, number)
	p.reported.lost[reason] += number
}

func (p *boundedProcessor) work() {
	defer close(p.stopped)
	timer := time.NewTicker(p.settings.delay)
	defer timer.Stop()
	for {
		waited := false
		select {
		case <-p.wake:
		case <-timer.C:
			waited = true
		}
		for {
			batch, last := p.take(waited)
			if len(batch) == 0 {
				if last {
					return
				}
				break
			}
			p.export(batch)
		}
		p.mu.Lock()
		p.reported.say(time.Now(), false)
		p.mu.Unlock()
	}
}

// take returns the next batch, and whether no other will come. Attempts that take long leave in parts.
func (p *boundedProcessor) take(waited bool) (batch []sdktrace.ReadOnlySpan, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waited || p.closed {
		for id, group := range p.open {
			if p.closed || time.Since(group.since) >= p.settings.delay {
				p.ready = append(p.ready, group.spans...)
				group.spans = nil
				if !group.lost || p.closed {
					delete(p.open, id)
				}
			}
		}
	}
	if !waited && !p.closed && len(p.ready) < p.settings.batch {
		return nil, false
	}
	number := min(len(p.ready), p.settings.batch)
	batch = append(batch, p.ready[:number]...)
	p.ready = append([]sdktrace.ReadOnlySpan(nil), p.ready[number:]...)
	p.waiting -= number
	p.leaving = number
	return batch, p.closed
}

func (p *boundedProcessor) export(batch []sdktrace.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(context.Background(), p.settings.timeout)
	defer cancel()
	err := p.exporter.ExportSpans(ctx, batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving == 0 {
		return // the shutdown gave the batch up
	}
	p.leaving = 0
	if err != nil {
		p.reported.problem = err
		p.lose(lostExport, len(batch))
		p.counters.exported("error", len(batch))
		return
	}
	p.counters.exported("success", len(batch))
}

// ForceFlush makes the processor export what it has; it does not wait.
func (p *boundedProcessor) ForceFlush(context.Context) error {
	p.signal()
	return nil
}

// Shutdown exports what is left until ctx ends, and counts the rest as lost.
func (p *boundedProcessor) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.signal()
	select {
	case <-p.stopped:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose(lostShutdown, p.waiting+p.leaving)
	p.waiting, p.leaving, p.ready, p.open = 0, 0, nil, map[trace.TraceID]*openTrace{}
	p.reported.say(time.Now(), true)
	return p.exporter.Shutdown(ctx)
}

// lossReport logs lost spans: at once, then once a minute.
type lossReport struct {
	lost    map[string]int
	problem error
	next    time.Time
}

func (r *lossReport) say(now time.Time, last bool) {
	if len(r.lost) == 0 || (now.Before(r.next) && !last) {
		return
	}
	var reasons []string
	total := 0
	for reason, number := range r.lost {
		if number > 0 {
			reasons = append(reasons, fmt.Sprintf("%s %d", reason, number))
			total += number
		}
	}
	clear(r.lost)
	if total == 0 {
		return
	}
	sort.Strings(reasons)
	klog.InfoS("Spans were lost", "spans", total, "reasons", strings.Join(reasons, ", "), "lastProblem", r.problem)
	r.next = now.Add(time.Minute)
}

var environment = os.Getenv
