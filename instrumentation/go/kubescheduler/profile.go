package kubescheduler

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"go.opentelemetry.io/otel/trace"
)

// profile is the framework of one scheduling profile, with a span for each extension point of a sampled attempt.
//
// Preemption and the plugins hold the framework below it. Its own calls, such as the trial runs of preemption, are no
// phases of the attempt and leave no spans.
type profile struct {
	framework.Framework
	i *instrumentation
	// traced is a copy of Framework whose plugins have spans; nil if this release's fields are other ones.
	traced framework.Framework
	// filters and scores are the names of the plugins of traced, in their order.
	filters, scores []string
	// nests is true if a Filter or Score plugin may start spans of its own, because it is none of kube-scheduler's.
	nests bool
}

// phase starts the span of an extension point; nil if the Pod's attempt is not sampled. The context is that of the
// call, with the attempt's span if it is not sampled: spans that plugins start share its fate.
func (p *profile) phase(ctx context.Context, uid types.UID, name string) (_ context.Context, started *phase) {
	defer p.i.recovered()
	a := p.i.of(uid)
	switch {
	case a == nil:
		return ctx, nil
	case !a.recording:
		return trace.ContextWithSpan(ctx, a.root), nil
	}
	return ctx, newPhase(ctx, a, name, a.parent(inBindingCycle[name]), time.Now())
}

var inBindingCycle = map[string]bool{waitOnPermit: true, preBind: true, bind: true, postBind: true}

// inner returns the framework that runs the plugins of a sampled attempt.
func (p *profile) inner() framework.Framework {
	if p.traced != nil {
		return p.traced
	}
	return p.Framework
}

// RunPreFilterPlugins is the phase preFilter, with which the search for a node begins.
func (p *profile) RunPreFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	ctx, phase := p.phase(ctx, pod.UID, preFilter)
	if phase == nil {
		return p.Framework.RunPreFilterPlugins(ctx, state, pod)
	}
	result, status, restricting := p.inner().RunPreFilterPlugins(phase.ctx, state, pod)
	now := time.Now()
	phase.endAt(status, now)
	if status.IsSuccess() && phase.a.search != nil {
		phase.a.search.beginFilter(ctx, p, state, now)
	}
	return result, status, restricting
}

// RunFilterPluginsWithNominatedPods is called for each node, by several goroutines at a time.
func (p *profile) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	a := p.i.searching.Load()
	if a == nil || a.search.filter == nil {
		return p.Framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
	}
	return a.search.filter.run(ctx, p, state, pod, node)
}

// RunPostFilterPlugins is the phase postFilter.
func (p *profile) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	ctx, phase := p.phase(ctx, pod.UID, postFilter)
	if phase == nil {
		return p.Framework.RunPostFilterPlugins(ctx, state, pod, nodes)
	}
	result, status := p.inner().RunPostFilterPlugins(phase.ctx, state, pod, nodes)
	phase.end(status)
	return result, status
}

// RunPreScorePlugins is the phase preScore. By then all nodes have been filtered.
func (p *profile) RunPreScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	ctx, phase := p.phase(ctx, pod.UID, preScore)
	if phase == nil {
		return p.Framework.RunPreScorePlugins(ctx, state, pod, nodes)
	}
	phase.a.search.filtered()
	status := p.inner().RunPreScorePlugins(phase.ctx, state, pod, nodes)
	phase.end(status)
	return status
}

// RunScorePlugins is the phase score. Its span ends when the node has been chosen, as of the time at which it was over.
func (p *profile) RunScorePlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) ([]fwk.NodePluginScores, *fwk.Status) {
	ctx, phase := p.phase(ctx, pod.UID, score)
	if phase == nil {
		return p.Framework.RunScorePlugins(ctx, state, pod, nodes)
	}
	phase.a.search.beginScore(phase, p, len(nodes))
	scores, status := p.inner().RunScorePlugins(phase.ctx, state, pod, nodes)
	phase.a.search.scored(scores, status)
	return scores, status
}

// RunReservePluginsReserve is the phase reserve.
func (p *profile) RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	ctx, phase := p.phase(ctx, pod.UID, reserve)
	if phase == nil {
		return p.Framework.RunReservePluginsReserve(ctx, state, pod, node)
	}
	status := p.inner().RunReservePluginsReserve(phase.ctx, state, pod, node)
	phase.end(status)
	return status
}

// RunReservePluginsUnreserve is the phase unreserve.
func (p *profile) RunReservePluginsUnreserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	ctx, phase := p.phase(ctx, pod.UID, unreserve)
	if phase == nil {
		p.Framework.RunReservePluginsUnreserve(ctx, state, pod, node)
		return
	}
	p.inner().RunReservePluginsUnreserve(phase.ctx, state, pod, node)
	phase.end(nil)
}

// WaitOnPermit is the phase waitOnPermit, if the Pod waits.
func (p *profile) WaitOnPermit(ctx context.Context, pod *v1.Pod) *fwk.Status {
	if p.GetWaitingPod(pod.UID) == nil {
		return p.Framework.WaitOnPermit(ctx, pod)
	}
	ctx, phase := p.phase(ctx, pod.UID, waitOnPermit)
	if phase == nil {
		return p.Framework.WaitOnPermit(ctx, pod)
	}
	status := p.Framework.WaitOnPermit(phase.ctx, pod)
	phase.end(status)
	return status
}

// RunPreBindPlugins is the phase preBind.
func (p *profile) RunPreBindPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	ctx, phase := p.phase(ctx, pod.UID, preBind)
	if phase == nil {
		return p.Framework.RunPreBindPlugins(ctx, state, pod, node)
	}
	status := p.inner().RunPreBindPlugins(phase.ctx, state, pod, node)
	phase.end(status)
	return status
}

// RunBindPlugins is the phase bind. The binding carries the attempt's context into the Pod, sampled or not.
func (p *profile) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	ctx, phase := p.phase(ctx, pod.UID, bind)
	if phase == nil {
		return p.inner().RunBindPlugins(ctx, state, pod, node)
	}
	phase.span.SetAttributes(selectedNodeKey.String(node))
	status := p.inner().RunBindPlugins(phase.ctx, state, pod, node)
	phase.end(status)
	return status
}

// RunPostBindPlugins is the phase postBind, with which the attempt of a bound Pod ends.
func (p *profile) RunPostBindPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) {
	ctx, phase := p.phase(ctx, pod.UID, postBind)
	if phase == nil {
		p.Framework.RunPostBindPlugins(ctx, state, pod, node)
	} else {
		p.inner().RunPostBindPlugins(phase.ctx, state, pod, node)
		phase.end(nil)
	}
	p.i.bound(pod.UID)
}

func (i *instrumentation) bound(uid types.UID) {
	defer i.recovered()
	if a := i.forget(uid); a != nil && a.recording && !i.off.Load() {
		a.bound()
	}
}
