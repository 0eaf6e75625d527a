// podtrail-kube-scheduler is kube-scheduler with all its flags and its configuration, and spans of its attempts.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of client-go
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info

	"podtrail/instrumentation/kubescheduler"
)

func main() {
	os.Exit(cli.Run(kubescheduler.NewSchedulerCommand()))
}
