//go:build kube135

package kubescheduler

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// KubernetesMinor is the minor release that this build contains.
const KubernetesMinor = "1.35"

func (i *instrumentation) wrapSchedulePod(sched *scheduler.Scheduler) {
	schedule := sched.SchedulePod
	sched.SchedulePod = func(ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod) (scheduler.ScheduleResult, error) {
		return i.schedule(ctx, profile, pod, func(ctx context.Context) (scheduler.ScheduleResult, error) {
			return schedule(ctx, profile, state, pod)
		})
	}
}

// RunPermitPlugins is the phase permit, with which the scheduling cycle ends.
func (p *profile) RunPermitPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	ctx, phase := p.phase(ctx, pod.UID, permit)
	if phase == nil {
		return p.Framework.RunPermitPlugins(ctx, state, pod, node)
	}
	status := p.inner().RunPermitPlugins(phase.ctx, state, pod, node)
	phase.endPermit(status)
	return status
}
