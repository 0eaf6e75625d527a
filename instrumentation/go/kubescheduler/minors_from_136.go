//go:build !kube135

package kubescheduler

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func (i *instrumentation) wrapSchedulePod(sched *scheduler.Scheduler) {
	schedule := sched.SchedulePod
	sched.SchedulePod = func(ctx context.Context, profile framework.Framework, state fwk.CycleState, info *framework.QueuedPodInfo) (scheduler.ScheduleResult, error) {
		if state.IsPodGroupSchedulingCycle() {
			return schedule(ctx, profile, state, info)
		}
		return i.schedule(ctx, profile, info.Pod, func(ctx context.Context) (scheduler.ScheduleResult, error) {
			return schedule(ctx, profile, state, info)
		})
	}
}

// RunPermitPlugins is the phase permit, with which the scheduling cycle ends.
func (p *profile) RunPermitPlugins(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) (map[string]time.Duration, *fwk.Status) {
	ctx, phase := p.phase(ctx, pod.UID, permit)
	if phase == nil {
		return p.Framework.RunPermitPlugins(ctx, state, pod, node)
	}
	waits, status := p.inner().RunPermitPlugins(phase.ctx, state, pod, node)
	phase.endPermit(status)
	return waits, status
}
