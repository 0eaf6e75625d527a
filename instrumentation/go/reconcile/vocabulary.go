package reconcile

import "go.opentelemetry.io/otel/attribute"

// The names of spans, attributes, events and outcomes. vocabulary.json, two folders above, has the same, and those of the
// instrumentation in Python; a test compares.
const (
	scopeName  = "podtrail/instrumentation/reconcile"
	spanPrefix = "reconcile " // and the controller's name

	eventRetry     = "retry"
	eventException = "exception"

	succeeded = "succeeded"
	retry     = "retry"
	failed    = "failed"
	errored   = "error"
	cancelled = "cancelled"

	injectedName  = "trace_context_annotations_injected_total"
	extractedName = "trace_context_annotations_extracted_total"

	maxAttempts      = 4096 // calls to be repeated of which the span is remembered, of one controller
	maxCounted       = 1024 // controllers and kinds that are counted apart; the others are counted as one
	maxCharacters    = 512  // of a value; names in Kubernetes have at most 253
	maxMessage       = 1024
	maxStack         = 4096
	maxObjectsOfCall = 256 // objects of one call that are kept to compare updates with
)

var (
	controllerKey = attribute.Key("reconcile.controller")
	requestKey    = attribute.Key("reconcile.key")
	idKey         = attribute.Key("reconcile.id")
	retryKey      = attribute.Key("reconcile.retry")
	outcomeKey    = attribute.Key("reconcile.outcome")
	delayKey      = attribute.Key("reconcile.retry.delay")

	apiVersionKey      = attribute.Key("k8s.object.api_version")
	kindKey            = attribute.Key("k8s.object.kind")
	nameKey            = attribute.Key("k8s.object.name")
	uidKey             = attribute.Key("k8s.object.uid")
	resourceVersionKey = attribute.Key("k8s.object.resource_version")
	namespaceKey       = attribute.Key("k8s.namespace.name")

	exceptionTypeKey    = attribute.Key("exception.type")
	exceptionMessageKey = attribute.Key("exception.message")
	exceptionStackKey   = attribute.Key("exception.stacktrace")

	linkTypeKey     = attribute.Key("podtrail.link.type")
	previousAttempt = "previous-attempt"
)

// ownAttributes are the kinds for which OpenTelemetry's semantic conventions have a name and a uid of their own, by their
// group.
var ownAttributes = map[string]map[string]string{
	"":      {"Pod": "k8s.pod", "Node": "k8s.node"},
	"apps":  {"Deployment": "k8s.deployment", "ReplicaSet": "k8s.replicaset", "StatefulSet": "k8s.statefulset", "DaemonSet": "k8s.daemonset"},
	"batch": {"Job": "k8s.job", "CronJob": "k8s.cronjob"},
}
