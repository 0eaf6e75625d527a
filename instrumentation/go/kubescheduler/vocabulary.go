package kubescheduler

import "go.opentelemetry.io/otel/attribute"

// The names of spans, results, attributes and limits. vocabulary.json, two folders above, has the same for the
// instrumentation in Python; a test compares both with it.
const (
	spanAttempt         = "SchedulePod"
	spanSchedulingCycle = "schedulingCycle"
	spanBindingCycle    = "bindingCycle"
	spanPlugin          = "plugin: " // and the plugin's name

	preFilter    = "preFilter"
	filter       = "filter"
	postFilter   = "postFilter"
	preScore     = "preScore"
	score        = "score"
	reserve      = "reserve"
	permit       = "permit"
	waitOnPermit = "waitOnPermit"
	preBind      = "preBind"
	bind         = "bind"
	postBind     = "postBind"
	unreserve    = "unreserve"

	success       = "Success"
	unschedulable = "Unschedulable"
	resultError   = "Error"

	eventRejected    = "plugin rejected"
	eventFiltered    = "Computing predicates done"
	eventPrioritized = "Prioritizing done"

	maxNamesOfRejectedNodes = 10
	maxScoredNodes          = 5
	maxScoringPlugins       = 16
	maxPluginName           = 253

	scorePluginPrefix = "scheduler.score.plugin."
)

var (
	podNameKey      = attribute.Key("k8s.pod.name")
	podNamespaceKey = attribute.Key("k8s.pod.namespace")
	podUIDKey       = attribute.Key("k8s.pod.uid")
	namespaceKey    = attribute.Key("k8s.namespace.name")

	attemptsKey           = attribute.Key("scheduler.attempts")
	generationKey         = attribute.Key("scheduler.config.generation")
	phaseKey              = attribute.Key("scheduler.phase")
	profileKey            = attribute.Key("scheduler.profile")
	queueWaitKey          = attribute.Key("scheduler.queue_wait_ms")
	queueWaitEstimatedKey = attribute.Key("scheduler.queue_wait_estimated")
	resultKey             = attribute.Key("scheduler.result")
	reasonKey             = attribute.Key("scheduler.reason")
	selectedNodeKey       = attribute.Key("scheduler.selected_node")
	nominatedNodeKey      = attribute.Key("scheduler.nominated_node")

	pluginKey         = attribute.Key("scheduler.plugin.name")
	extensionPointKey = attribute.Key("scheduler.plugin.extension_point")
	pluginStatusKey   = attribute.Key("scheduler.plugin.status")
	skippedKey        = attribute.Key("scheduler.plugins.skipped")
	durationKey       = attribute.Key("scheduler.duration_ns")
	// estimatedKey marks a duration that was measured on a part of the nodes.
	estimatedKey = attribute.Key("scheduler.duration_estimated")

	nodesTotalKey     = attribute.Key("scheduler.nodes.total")
	nodesEvaluatedKey = attribute.Key("scheduler.nodes.evaluated")
	nodesFeasibleKey  = attribute.Key("scheduler.nodes.feasible")
	nodesRejectedKey  = attribute.Key("scheduler.nodes.rejected")
	nodesCountKey     = attribute.Key("scheduler.nodes.count")
	nodesNamesKey     = attribute.Key("scheduler.nodes.names")
	nodesNamesCutKey  = attribute.Key("scheduler.nodes.names_cut")

	scoreNodesKey      = attribute.Key("scheduler.score.nodes")
	scoreTotalsKey     = attribute.Key("scheduler.score.totals")
	scoreExtendersKey  = attribute.Key("scheduler.score.extenders")
	scorePluginsCutKey = attribute.Key("scheduler.score.plugins_cut")
	scoreSelectedKey   = attribute.Key("scheduler.score.selected")
	scoreMarginKey     = attribute.Key("scheduler.score.margin")
	scoreTiesKey       = attribute.Key("scheduler.score.ties")

	linkTypeKey = attribute.Key("podtrail.link.type")
)
