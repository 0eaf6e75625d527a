package kubescheduler

import "k8s.io/klog/v2"

// These lines let a reader of the log leave out attempts that it also gets as spans. podtrail's source kube_scheduler
// knows their texts; instrumentation/vocabulary.json has them for the tests in both languages.
const (
	messageOn     = "Scheduling attempts are traced"
	messageOff    = "Tracing failed and is off until the scheduler restarts"
	messageTraced = "Scheduling attempt was traced"
)

// allOfThem is the sampling rate at which each attempt is sampled.
const allOfThem = 1_000_000

// reportStart logs which part of the attempts is traced, and returns from which verbosity on each of them has a line. If
// all are traced, the line of the start is enough for a reader that saw it; kube-scheduler itself names attempts from 2 on.
func reportStart(perMillion int32) klog.Level {
	klog.InfoS(messageOn, "samplingRatePerMillion", perMillion)
	if perMillion >= allOfThem {
		return 2
	}
	return 0
}

// report logs that an attempt that has just ended was sampled.
func (a *attempt) report(result string) {
	klog.V(a.i.reportLevel).InfoS(messageTraced, "pod", a.pod, "result", result, "traceID", a.root.SpanContext().TraceID())
}
