package kubescheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"podtrail/instrumentation/tracecontext"
)

// attempt is one attempt to schedule a Pod, from the queue until the Pod is bound or is not.
type attempt struct {
	i       *instrumentation
	pod     klog.ObjectRef
	uid     types.UID
	profile string
	started time.Time
	// annotations are the Pod's: a tracestate among them must not stay beside another traceparent.
	annotations map[string]string
	root        trace.Span
	// recording is false for an attempt that is not sampled: its context is passed on, nothing else happens.
	recording bool
	cycle     trace.Span
	// binding is the span of the binding cycle, nil until it begins, at cycleEnded.
	binding    trace.Span
	cycleEnded time.Time
	node       string

	search *nodeSearch
}

func newAttempt(ctx context.Context, i *instrumentation, profile string, taken *popped) *attempt {
	pod := taken.info.Pod
	links := i.configuration
	if i.propagates {
		link, result := tracecontext.Link(pod.Annotations, tracecontext.DefaultPrefix)
		i.counters.extracted(profile, result)
		if result == tracecontext.Success {
			links = append([]trace.Link{link}, links...)
		}
	}
	a := &attempt{i: i, pod: klog.KObj(pod), uid: pod.UID, profile: profile, started: taken.at, annotations: pod.Annotations}
	// NewRoot: the link to the creation is no parent, and the decision to sample is the scheduler's own.
	ctx, a.root = i.tracer.Start(ctx, spanAttempt,
		trace.WithNewRoot(),
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithTimestamp(a.started),
		trace.WithLinks(links...),
	)
	a.recording = a.root.IsRecording()
	if !a.recording {
		return a
	}
	a.root.SetAttributes(attemptAttributes(pod, profile, i.generation, taken)...)
	_, a.cycle = i.tracer.Start(ctx, spanSchedulingCycle,
		trace.WithTimestamp(a.started),
		trace.WithAttributes(phaseKey.String(spanSchedulingCycle), profileKey.String(profile)),
	)
	return a
}

func attemptAttributes(pod *v1.Pod, profile, generation string, taken *popped) []attribute.KeyValue {
	wait, estimated := queueWait(taken.info, taken.at)
	attributes := []attribute.KeyValue{
		podNameKey.String(pod.Name),
		podNamespaceKey.String(pod.Namespace),
		namespaceKey.String(pod.Namespace),
		podUIDKey.String(string(pod.UID)),
		queueWaitKey.Int64(wait.Milliseconds()),
		profileKey.String(profile),
		attemptsKey.Int(taken.info.Attempts),
	}
	if estimated {
		attributes = append(attributes, queueWaitEstimatedKey.Bool(true))
	}
	if generation != "" {
		attributes = append(attributes, generationKey.String(generation))
	}
	return attributes
}

// queueWait returns how long the Pod was in the active queue, and whether that is an upper bound.
//
// The queue tells when a Pod came or was given back, and when its back-off ends. It does not tell when a change of the
// cluster, or an opened gate, moved it to the active queue. So only the wait before a first attempt is exact.
func queueWait(info *framework.QueuedPodInfo, now time.Time) (wait time.Duration, estimated bool) {
	since := info.Timestamp
	if info.BackoffExpiration.After(since) {
		since = info.BackoffExpiration
	}
	gated := len(info.Pod.Spec.SchedulingGates) > 0 || info.GatingPlugin != "" || len(info.UnschedulablePlugins) > 0
	return max(0, now.Sub(since)), info.Attempts > 1 || gated
}

// schedule runs the search for a node of the attempt that was taken last.
func (i *instrumentation) schedule(
	ctx context.Context, profile framework.Framework, pod *v1.Pod, inner func(context.Context) (scheduler.ScheduleResult, error),
) (scheduler.ScheduleResult, error) {
	a := i.begin(ctx, profile.ProfileName(), pod)
	if a == nil {
		return inner(ctx)
	}
	if !a.recording {
		return inner(trace.ContextWithSpan(ctx, a.root))
	}
	a.search = &nodeSearch{attempt: a}
	i.searching.Store(a)
	result, err := inner(trace.ContextWithSpan(ctx, a.cycle))
	i.searching.Store(nil)
	a.searched(result, err)
	return result, err
}

// searched ends the spans of the search for a node, whose numbers are only known now.
func (a *attempt) searched(result scheduler.ScheduleResult, err error) {
	defer a.i.recovered()
	if a.i.off.Load() {
		return
	}
	a.search.end(result, err)
	a.node = result.SuggestedHost
}

// parent returns the span of the cycle that the attempt is in.
func (a *attempt) parent(binding bool) trace.Span {
	if a.binding != nil {
		return a.binding
	}
	if !binding {
		return a.cycle
	}
	_, a.binding = a.i.tracer.Start(trace.ContextWithSpan(context.Background(), a.root), spanBindingCycle,
		trace.WithTimestamp(a.cycleEnded),
		trace.WithAttributes(phaseKey.String(spanBindingCycle), profileKey.String(a.profile)),
	)
	return a.binding
}

// endCycle ends the scheduling cycle of an attempt that found a node.
func (a *attempt) endCycle(at time.Time) {
	a.cycleEnded = at
	a.cycle.SetAttributes(resultKey.String(success))
	a.cycle.End(trace.WithTimestamp(at))
}

// bound ends the attempt of a Pod that was bound.
func (a *attempt) bound() {
	now := trace.WithTimestamp(time.Now())
	a.parent(true).SetAttributes(selectedNodeKey.String(a.node), resultKey.String(success))
	a.binding.End(now)
	a.root.SetAttributes(resultKey.String(success), selectedNodeKey.String(a.node))
	a.root.End(now)
	a.report(success)
}

// fail ends the attempt of a Pod that was not bound.
func (a *attempt) fail(status *fwk.Status, nominating *fwk.NominatingInfo) {
	if !a.recording {
		return
	}
	now := trace.WithTimestamp(time.Now())
	result, message := resultError, ""
	if status.IsRejected() {
		result = unschedulable
	}
	if err := status.AsError(); err != nil {
		message = err.Error()
	}
	cycle := a.cycle
	if a.binding != nil || !a.cycleEnded.IsZero() {
		cycle = a.parent(true)
		cycle.SetAttributes(selectedNodeKey.String(a.node))
	}
	cycle.SetAttributes(resultKey.String(result))
	if result == resultError {
		cycle.SetStatus(codes.Error, message)
	}
	cycle.End(now)
	a.root.SetAttributes(resultKey.String(result))
	if nominating != nil && nominating.NominatedNodeName != "" {
		a.root.SetAttributes(nominatedNodeKey.String(nominating.NominatedNodeName))
	}
	a.root.SetStatus(codes.Error, message)
	a.root.End(now)
	a.report(result)
}

// phase is an extension point while its plugins run.
type phase struct {
	a    *attempt
	name string
	span trace.Span
	ctx  context.Context

	mu      sync.Mutex
	skipped []string
}

type phaseContextKey struct{}

// newPhase starts the span of an extension point below parent; ctx is that of the call.
func newPhase(ctx context.Context, a *attempt, name string, parent trace.Span, at time.Time) *phase {
	p := &phase{a: a, name: name}
	p.ctx, p.span = a.i.tracer.Start(trace.ContextWithSpan(ctx, parent), name,
		trace.WithTimestamp(at),
		trace.WithAttributes(phaseKey.String(name), profileKey.String(a.profile)),
	)
	p.ctx = context.WithValue(p.ctx, phaseContextKey{}, p)
	return p
}

func phaseOf(ctx context.Context) *phase {
	p, _ := ctx.Value(phaseContextKey{}).(*phase)
	return p
}

func (p *phase) skip(plugin string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.skipped = append(p.skipped, plugin)
}

// end ends the span with the result of the extension point.
func (p *phase) end(status *fwk.Status) {
	p.endAt(status, time.Now())
}

func (p *phase) endAt(status *fwk.Status, at time.Time) {
	defer p.a.i.recovered()
	p.mu.Lock()
	skipped := p.skipped
	p.mu.Unlock()
	if len(skipped) > 0 {
		p.span.SetAttributes(skippedKey.StringSlice(skipped))
	}
	switch {
	case status.IsSuccess(), status.IsWait(), status.IsSkip():
		p.span.SetAttributes(resultKey.String(success))
	case status.IsRejected():
		p.span.SetAttributes(resultKey.String(unschedulable))
	default:
		p.span.SetAttributes(resultKey.String(resultError))
		p.span.SetStatus(codes.Error, status.Message())
	}
	p.span.End(trace.WithTimestamp(at))
}

// endPermit ends the extension point behind which the scheduling cycle ends, unless a plugin rejected the Pod.
func (p *phase) endPermit(status *fwk.Status) {
	now := time.Now()
	p.endAt(status, now)
	defer p.a.i.recovered()
	if status.IsSuccess() || status.IsWait() {
		p.a.endCycle(now)
	}
}

// isRejection tells the error of a Pod that fits no node from a failure.
func isRejection(err error) bool {
	var fit *framework.FitError
	return errors.As(err, &fit) || errors.Is(err, scheduler.ErrNoNodesAvailable)
}
