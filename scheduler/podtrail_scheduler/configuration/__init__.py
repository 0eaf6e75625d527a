"""What kube-scheduler reads before it schedules: KubeSchedulerConfiguration and feature gates."""
