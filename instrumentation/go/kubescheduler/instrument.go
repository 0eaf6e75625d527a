// Package kubescheduler traces the scheduling attempts of an unpatched kube-scheduler, as KEP-5927 defines them.
//
// The scheduler is linked as a library, the usual way to ship scheduler plugins. All hooks are exported names of
// Kubernetes: the functions of *scheduler.Scheduler that take the next Pod, schedule it and handle its failure, and
// the interface framework.Framework of each profile. Only the spans of single plugins need unexported fields; without
// them the phases remain and one warning is logged.
//
// Three lines add it to a main that builds its scheduler itself:
//
//	tracing, err := kubescheduler.Start(ctx, settings, identity)
//	defer tracing.Shutdown()
//	tracing.Instrument(sched, generation, nil)
//
// A main that calls app.NewSchedulerCommand calls NewSchedulerCommand of this package instead.
//
// Nothing here may harm the scheduler. No hook waits, memory does not grow with Pods, and a panic in this package is
// recovered, logged once, and turns tracing off.
package kubescheduler

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"

	"go.opentelemetry.io/otel/trace"
)

const scope = "podtrail/instrumentation/kubescheduler"

// instrumentation is the state that the hooks of one scheduler share.
type instrumentation struct {
	tracer trace.Tracer
	// propagates is the gate AsyncTraceContextPropagation: links from and context in annotations.
	propagates bool
	generation string
	// configuration is the link to the change that made the scheduler's configuration, if its file names one.
	configuration []trace.Link
	inTree        map[string]bool
	counters      *counters
	// reportLevel is the verbosity from which the log names each sampled attempt, see reporting.go.
	reportLevel klog.Level

	// off is set after a panic in this package: hooks pass on and do nothing else.
	off    atomic.Bool
	warned sync.Once

	// searching is the attempt whose nodes are being filtered and scored; nil if it is not sampled. Searches run one
	// after the other.
	searching atomic.Pointer[attempt]

	mu sync.Mutex
	// popped is the Pod that the queue gave out last, until its attempt begins.
	popped *popped
	// attempts are those under way, sampled or not. Each ends bound or failed, so the map does not grow with Pods.
	attempts map[types.UID]*attempt
}

type popped struct {
	info *framework.QueuedPodInfo
	at   time.Time
}

// Instrument makes sched report its attempts. Call it once, after scheduler.New or app.Setup and before Run.
//
// generation identifies the scheduler's configuration, see Generation; head is what ClaimedContext read from its file,
// by annotation key. Both may be empty.
func (t *Tracing) Instrument(sched *scheduler.Scheduler, generation string, head map[string]string) {
	if !t.enabled {
		return
	}
	i := &instrumentation{
		tracer:        t.provider.Tracer(scope),
		propagates:    t.propagates,
		generation:    generation,
		configuration: configurationLinks(t.propagates, head),
		inTree:        map[string]bool{},
		counters:      t.counters,
		reportLevel:   reportStart(t.perMillion),
		attempts:      map[types.UID]*attempt{},
	}
	for name := range frameworkplugins.NewInTreeRegistry() {
		i.inTree[name] = true
	}
	for name, profile := range sched.Profiles {
		sched.Profiles[name] = newProfile(i, profile)
	}
	for number, extender := range sched.Extenders {
		if extender.IsBinder() {
			sched.Extenders[number] = &bindingExtender{Extender: extender, i: i}
		}
	}
	i.wrapNext(sched)
	i.wrapSchedulePod(sched)
	i.wrapFailureHandler(sched)
}

// taken notes the Pod that the queue gave out.
func (i *instrumentation) taken(info *framework.QueuedPodInfo) {
	if i.off.Load() {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.popped = nil // a Pod that was skipped, because it is deleted or already bound, had no attempt
	if info != nil && info.Pod != nil {
		i.popped = &popped{info, time.Now()}
	}
}

// begin starts the attempt of the Pod that was taken last; nil if this Pod is another one, as in a cycle of a Pod group.
func (i *instrumentation) begin(ctx context.Context, profile string, pod *v1.Pod) (begun *attempt) {
	defer i.recovered()
	i.mu.Lock()
	last := i.popped
	if last == nil || last.info.Pod.UID != pod.UID || i.off.Load() {
		i.mu.Unlock()
		return nil
	}
	i.popped = nil
	i.mu.Unlock()
	a := newAttempt(ctx, i, profile, last)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.attempts[pod.UID] = a
	return a
}

// of returns the attempt of a Pod that is under way.
func (i *instrumentation) of(uid types.UID) *attempt {
	if i.off.Load() {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.attempts[uid]
}

func (i *instrumentation) forget(uid types.UID) *attempt {
	i.mu.Lock()
	defer i.mu.Unlock()
	a := i.attempts[uid]
	delete(i.attempts, uid)
	return a
}

// failed ends the attempt of a Pod that was not bound.
func (i *instrumentation) failed(ctx context.Context, profile framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo) {
	defer i.recovered()
	if i.off.Load() || info == nil || info.Pod == nil {
		return
	}
	a := i.forget(info.Pod.UID)
	if a == nil {
		// The cluster's snapshot could not be taken: the attempt failed before it had begun.
		if i.begin(ctx, profile.ProfileName(), info.Pod) == nil {
			return
		}
		a = i.forget(info.Pod.UID)
	}
	a.fail(status, nominating)
}

// recovered turns tracing off after a panic of this package. Plugins and the scheduler run outside of it.
func (i *instrumentation) recovered() {
	problem := recover()
	if problem == nil {
		return
	}
	i.searching.Store(nil)
	if i.off.CompareAndSwap(false, true) {
		klog.ErrorS(fmt.Errorf("panic: %v", problem), messageOff, "stack", string(debug.Stack()))
		i.mu.Lock()
		clear(i.attempts)
		i.mu.Unlock()
	}
}

func (i *instrumentation) wrapFailureHandler(sched *scheduler.Scheduler) {
	handle := sched.FailureHandler
	sched.FailureHandler = func(ctx context.Context, profile framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		i.failed(ctx, profile, info, status, nominating)
		handle(ctx, profile, info, status, nominating, start)
	}
}
