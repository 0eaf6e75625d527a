//go:build !kube135 && !kube136

package kubescheduler

import (
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// KubernetesMinor is the minor release that this build contains.
const KubernetesMinor = "1.37"

func (i *instrumentation) wrapNext(sched *scheduler.Scheduler) {
	next := sched.NextEntity
	sched.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		entity, err := next(logger)
		info, _ := entity.(*framework.QueuedPodInfo) // a group of Pods is no attempt of one Pod
		i.taken(info)
		return entity, err
	}
}

func setInformerName(options *options.Options) error {
	if options.InformerName != nil {
		return nil
	}
	name, err := cache.NewInformerName("kube-scheduler")
	options.InformerName = name
	return err
}
