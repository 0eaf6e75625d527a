//go:build kube135 || kube136

package kubescheduler

import (
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func (i *instrumentation) wrapNext(sched *scheduler.Scheduler) {
	next := sched.NextPod
	sched.NextPod = func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		info, err := next(logger)
		i.taken(info)
		return info, err
	}
}

func setInformerName(*options.Options) error { return nil }
