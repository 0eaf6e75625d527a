package kubescheduler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"podtrail/instrumentation/tracecontext"
)

const creation = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

var created = map[string]string{
	tracecontext.DefaultPrefix + "traceparent": creation,
	tracecontext.DefaultPrefix + "tracestate":  "a=1",
}

func TestABoundPodLeavesTheTreeOfTheKEP(t *testing.T) {
	b := newBench(t, benchOptions{nodes: 3, rate: 1, propagates: true})
	b.create("web", "1", created)
	attempt := b.attempts("web", 1)[0]
	for _, name := range []string{spanSchedulingCycle, preFilter, filter, preScore, score, reserve, permit, spanBindingCycle, preBind, bind, postBind} {
		attempt.one(t, name)
	}
	for _, name := range []string{"filter/NodeResourcesFit", "filter/TaintToleration", "score/NodeResourcesBalancedAllocation", "bind/DefaultBinder"} {
		attempt.one(t, name)
	}
	root := attempt.one(t, spanAttempt)
	if root.Parent.IsValid() || root.SpanKind != trace.SpanKindConsumer || root.Status.Code != codes.Unset {
		t.Errorf("the root is %v %v %v", root.Parent, root.SpanKind, root.Status)
	}
	if len(root.Links) != 1 || tracecontext.Traceparent(root.Links[0].SpanContext) != creation {
		t.Errorf("links %v", root.Links)
	}
	b.until("the end of the attempt", func() bool { return b.underWay() == 0 })
	annotations := b.bound("web").Annotations
	if annotations[tracecontext.DefaultPrefix+"traceparent"] != tracecontext.Traceparent(root.SpanContext) {
		t.Errorf("the Pod carries %v", annotations)
	}
	if state, written := annotations[tracecontext.DefaultPrefix+"tracestate"]; !written || state != "" {
		t.Errorf("the creator's tracestate stays beside another traceparent: %v", annotations)
	}
	node := value(root.Attributes, selectedNodeKey).AsString()
	best := value(attempt.one(t, score).Attributes, scoreNodesKey).AsStringSlice()
	if b.bound("web").Target.Name != node || best[0] != node || len(best) != 3 {
		t.Errorf("bound to %s, said %s, scored %v", b.bound("web").Target.Name, node, best)
	}
	checkTimes(t, attempt)
}

// checkTimes checks that each span lies within its parent.
func checkTimes(t *testing.T, attempt tree) {
	t.Helper()
	byID := map[trace.SpanID][2]time.Time{}
	for _, spans := range attempt {
		for _, span := range spans {
			byID[span.SpanContext.SpanID()] = [2]time.Time{span.StartTime, span.EndTime}
		}
	}
	for _, spans := range attempt {
		for _, span := range spans {
			if outer, found := byID[span.Parent.SpanID()]; found && (span.StartTime.Before(outer[0]) || span.EndTime.After(outer[1])) {
				t.Errorf("%s from %s to %s is not within %s to %s", span.Name, span.StartTime, span.EndTime, outer[0], outer[1])
			}
		}
	}
}

func TestARejectedPodNamesWhoRejectedWhichNodes(t *testing.T) {
	plugin := &custom{filter: func(_ context.Context, node string) *fwk.Status {
		if node == "node-b" {
			return fwk.NewStatus(fwk.Unschedulable, "not this one")
		}
		return nil
	}}
	b := newBench(t, benchOptions{nodes: 3, rate: 1, plugin: plugin})
	b.create("big", "100", nil)
	attempt := b.attempts("big", 1)[0]
	attempt.one(t, postFilter)
	fit := attempt.one(t, "filter/NodeResourcesFit")
	if len(fit.Events) != 1 || value(fit.Events[0].Attributes, nodesCountKey).AsInt64() != 3 {
		t.Errorf("events %v", fit.Events)
	}
	names := value(fit.Events[0].Attributes, nodesNamesKey).AsStringSlice()
	if !slices.Equal(names, []string{"node-a", "node-b", "node-c"}) {
		t.Errorf("nodes %v", names)
	}
	if attempt["filter/Custom"] != nil {
		t.Error("a plugin that no node came to has a span")
	}
	root := attempt.one(t, spanAttempt)
	if value(root.Attributes, resultKey).AsString() != unschedulable || !strings.Contains(root.Status.Description, "0/3 nodes are available") {
		t.Errorf("%v %v", root.Attributes, root.Status)
	}
	b.create("small", "1", nil)
	rejected := b.attempts("small", 1)[0].one(t, "filter/Custom")
	if len(rejected.Events) != 1 || value(rejected.Events[0].Attributes, reasonKey).AsString() != "not this one" {
		t.Errorf("events %v", rejected.Events)
	}
}

func TestSpansOfOtherPeoplesPluginsNestUnderThePlugin(t *testing.T) {
	begin := func(ctx context.Context, name string) {
		_, span := trace.SpanFromContext(ctx).TracerProvider().Tracer("theirs").Start(ctx, name)
		span.End()
	}
	plugin := &custom{
		preFilter: func(ctx context.Context) *fwk.Status { begin(ctx, "their preFilter"); return nil },
		filter:    func(ctx context.Context, _ string) *fwk.Status { begin(ctx, "their filter"); return nil },
		score:     func(ctx context.Context, _ string) (int64, *fwk.Status) { begin(ctx, "their score"); return 1, nil },
		reserve:   func(ctx context.Context) *fwk.Status { begin(ctx, "their reserve"); return nil },
	}
	b := newBench(t, benchOptions{nodes: 2, rate: 1, plugin: plugin})
	b.create("web", "1", nil)
	attempt := b.attempts("web", 1)[0]
	for point, number := range map[string]int{preFilter: 1, filter: 2, score: 2, reserve: 1} {
		theirs := attempt["their "+point]
		if len(theirs) != number {
			t.Fatalf("%d spans at %s", len(theirs), point)
		}
		for _, span := range theirs {
			if span.Parent.SpanID() != attempt.one(t, point+"/Custom").SpanContext.SpanID() {
				t.Errorf("their span at %s is not below their plugin's", point)
			}
		}
	}
}

func TestAnUnsampledAttemptRecordsNothingAndPassesItsContextOn(t *testing.T) {
	var seen []trace.SpanContext
	plugin := &custom{
		preFilter: func(ctx context.Context) *fwk.Status {
			seen = append(seen, trace.SpanContextFromContext(ctx))
			return nil
		},
		reserve: func(ctx context.Context) *fwk.Status {
			seen = append(seen, trace.SpanContextFromContext(ctx))
			return nil
		},
	}
	b := newBench(t, benchOptions{nodes: 2, rate: 0, propagates: true, plugin: plugin})
	b.create("web", "1", created)
	b.until("the binding", func() bool { return b.bound("web") != nil && b.underWay() == 0 })
	written := b.bound("web").Annotations[tracecontext.DefaultPrefix+"traceparent"]
	if !strings.HasSuffix(written, "-00") || written[3:35] == creation[3:35] {
		t.Errorf("the Pod carries %q", written)
	}
	for _, span := range seen {
		if tracecontext.Traceparent(span) != written {
			t.Errorf("a plugin saw %v, the Pod carries %q", span, written)
		}
	}
	if len(seen) != 2 || len(b.exporter.GetSpans()) > 0 {
		t.Errorf("%d calls, %d spans", len(seen), len(b.exporter.GetSpans()))
	}
}

func TestAPodThatWaitsForAPermitAndIsRejected(t *testing.T) {
	plugin := &custom{permit: func(_ context.Context, pod *v1.Pod) (*fwk.Status, time.Duration) {
		return fwk.NewStatus(fwk.Wait), time.Minute
	}}
	b := newBench(t, benchOptions{nodes: 2, rate: 1, plugin: plugin})
	pod := b.create("web", "1", nil)
	handle := b.sched.Profiles["default-scheduler"]
	b.until("the wait", func() bool { return handle.GetWaitingPod(pod.UID) != nil })
	handle.GetWaitingPod(pod.UID).Reject("Custom", "no")
	attempt := b.attempts("web", 1)[0]
	for _, name := range []string{waitOnPermit, unreserve, spanBindingCycle} {
		attempt.one(t, name)
	}
	if attempt[bind] != nil || value(attempt.one(t, waitOnPermit).Attributes, resultKey).AsString() != unschedulable {
		t.Errorf("%v", attempt.names())
	}
	root := attempt.one(t, spanAttempt)
	if value(root.Attributes, resultKey).AsString() != unschedulable || !strings.Contains(root.Status.Description, "no") {
		t.Errorf("%v %v", root.Attributes, root.Status)
	}
	checkTimes(t, attempt)
}

func TestAPluginThatFailsEndsAllSpans(t *testing.T) {
	fails := fwk.NewStatus(fwk.Error, "it broke")
	cases := map[string]*custom{
		preFilter: {preFilter: func(context.Context) *fwk.Status { return fails }},
		filter:    {filter: func(context.Context, string) *fwk.Status { return fails }},
		score:     {score: func(context.Context, string) (int64, *fwk.Status) { return 0, fails }},
		reserve:   {reserve: func(context.Context) *fwk.Status { return fails }},
		permit:    {permit: func(context.Context, *v1.Pod) (*fwk.Status, time.Duration) { return fails, 0 }},
	}
	for point, plugin := range cases {
		t.Run(point, func(t *testing.T) {
			b := newBench(t, benchOptions{nodes: 2, rate: 1, plugin: plugin})
			b.create("web", "1", nil)
			attempt := b.attempts("web", 1)[0]
			root, phase := attempt.one(t, spanAttempt), attempt.one(t, point)
			if value(root.Attributes, resultKey).AsString() != resultError || !strings.Contains(root.Status.Description, "it broke") {
				t.Errorf("%v %v", root.Attributes, root.Status)
			}
			if value(phase.Attributes, resultKey).AsString() != resultError || phase.Status.Code != codes.Error {
				t.Errorf("%v %v", phase.Attributes, phase.Status)
			}
			checkTimes(t, attempt)
		})
	}
}

func TestAttemptsAreForgottenWhateverBecomesOfThePod(t *testing.T) {
	b := newBench(t, benchOptions{nodes: 2, rate: 1})
	for _, pod := range []struct{ name, cpu string }{{"a", "1"}, {"b", "100"}, {"c", "1"}, {"d", "100"}} {
		b.create(pod.name, pod.cpu, nil)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		b.attempts(name, 1)
	}
	b.until("the end of all attempts", func() bool { return b.underWay() == 0 })
	if err := b.client.CoreV1().Pods("default").Delete(context.Background(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if b.hooks.searching.Load() != nil || b.underWay() != 0 {
		t.Error("something is still remembered")
	}
}

type panics struct{ noop.Tracer }

func (panics) Start(context.Context, string, ...trace.SpanStartOption) (context.Context, trace.Span) {
	panic("a mistake of ours")
}

func TestAPanicOfOursTurnsTracingOffAndSchedulingGoesOn(t *testing.T) {
	b := newBench(t, benchOptions{nodes: 2, rate: 1})
	b.hooks.tracer = panics{}
	b.create("web", "1", nil)
	b.until("the binding", func() bool { return b.bound("web") != nil })
	if !b.hooks.off.Load() || len(b.exporter.GetSpans()) > 0 {
		t.Error("tracing is still on")
	}
	b.create("other", "1", nil)
	b.until("the binding", func() bool { return b.bound("other") != nil })
}

type foreignFramework struct{ framework.Framework }

func TestWithoutTheFieldsOfThisReleaseThePhasesRemain(t *testing.T) {
	b := newBench(t, benchOptions{nodes: 2, rate: 1})
	inner := b.sched.Profiles["default-scheduler"].(*profile)
	p := newProfile(b.hooks, foreignFramework{inner.Framework})
	if p.traced != nil || len(p.scores) == 0 {
		t.Fatalf("%v %v", p.traced, p.scores)
	}
	b.sched.Profiles["default-scheduler"] = p
	b.create("web", "1", nil)
	b.create("big", "100", nil)
	attempt := b.attempts("web", 1)[0]
	for _, name := range []string{preFilter, filter, score, permit, bind, postBind} {
		attempt.one(t, name)
	}
	if attempt["bind/DefaultBinder"] != nil {
		t.Error("a plugin has a span")
	}
	b.attempts("big", 1)[0].one(t, "filter/NodeResourcesFit") // named by the verdicts
}
