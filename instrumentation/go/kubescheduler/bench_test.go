package kubescheduler

import (
	"context"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulerprofile "k8s.io/kubernetes/pkg/scheduler/profile"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

const patience = 2 * time.Minute

// bench is the real scheduler on a client that holds objects in memory.
type bench struct {
	t        *testing.T
	client   *fake.Clientset
	sched    *scheduler.Scheduler
	hooks    *instrumentation
	tracing  *Tracing
	exporter *tracetest.InMemoryExporter

	mu       sync.Mutex
	bindings map[types.UID]*v1.Binding
}

type benchOptions struct {
	nodes      int
	rate       float64
	propagates bool
	plugin     *custom
	change     func(*config.KubeSchedulerConfiguration)
}

func newBench(t *testing.T, o benchOptions) *bench {
	t.Helper()
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	b := &bench{t: t, bindings: map[types.UID]*v1.Binding{}, exporter: tracetest.NewInMemoryExporter()}
	var objects []runtime.Object
	for number := range o.nodes {
		name := "node-" + string(rune('a'+number))
		size := v1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")}
		objects = append(objects, &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
			Status:     v1.NodeStatus{Capacity: size, Allocatable: size},
		})
	}
	b.client = fake.NewClientset(objects...)
	b.client.PrependReactor("create", "pods", b.bind)
	settings, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	registry := frameworkruntime.Registry{}
	if o.plugin != nil {
		registry["Custom"] = func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return o.plugin, nil }
		settings.Profiles[0].Plugins.MultiPoint.Enabled = append(settings.Profiles[0].Plugins.MultiPoint.Enabled, config.Plugin{Name: "Custom", Weight: 1})
	}
	if o.change != nil {
		o.change(settings)
	}
	factory := informers.NewSharedInformerFactory(b.client, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: b.client.EventsV1()})
	b.sched, err = scheduler.New(ctx, b.client, factory, nil, schedulerprofile.NewRecorderFactory(broadcaster),
		scheduler.WithProfiles(settings.Profiles...), scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodInitialBackoffSeconds(1), scheduler.WithPodMaxBackoffSeconds(1))
	if err != nil {
		t.Fatal(err)
	}
	b.tracing, err = (&Tracing{}).with(b.exporter, int32(o.rate*allOfThem), o.propagates, "me")
	if err != nil {
		t.Fatal(err)
	}
	b.tracing.Instrument(b.sched, "0123456789ab", nil)
	b.hooks = b.sched.Profiles["default-scheduler"].(*profile).i
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := b.sched.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	go b.sched.Run(ctx)
	return b
}

// bind does what the API server does with a Binding.
func (b *bench) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
	b.mu.Lock()
	b.bindings[binding.UID] = binding
	b.mu.Unlock()
	return true, binding, nil
}

// create creates a Pod that asks for CPUs.
func (b *bench) create(name, cpu string, annotations map[string]string) *v1.Pod {
	b.t.Helper()
	made, err := b.client.CoreV1().Pods("default").Create(context.Background(), &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Annotations: annotations},
		Spec: v1.PodSpec{
			SchedulerName: "default-scheduler",
			Containers: []v1.Container{{
				Name: "c", Image: "image",
				Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// until waits for an event of the scheduler.
func (b *bench) until(what string, holds func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited for %s", what)
		}
	}
}

func (b *bench) bound(name string) *v1.Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bindings[types.UID("uid-"+name)]
}

func (b *bench) underWay() int {
	b.hooks.mu.Lock()
	defer b.hooks.mu.Unlock()
	return len(b.hooks.attempts)
}

// attempts waits for that many exported attempts of a Pod, and returns the spans of each.
func (b *bench) attempts(pod string, number int) []tree {
	b.t.Helper()
	var found []tree
	b.until("attempts of "+pod, func() bool {
		found = nil
		byTrace := map[trace.TraceID]tree{}
		var roots []tracetest.SpanStub
		for _, span := range b.exporter.GetSpans() {
			id := span.SpanContext.TraceID()
			if byTrace[id] == nil {
				byTrace[id] = tree{}
			}
			byTrace[id][path(span)] = append(byTrace[id][path(span)], span)
			if span.Name == spanAttempt && value(span.Attributes, podNameKey).AsString() == pod {
				roots = append(roots, span)
			}
		}
		for _, root := range roots {
			found = append(found, byTrace[root.SpanContext.TraceID()])
		}
		return len(found) >= number
	})
	return found
}

// tree holds the spans of an attempt by name; those of plugins by extension point and name.
type tree map[string][]tracetest.SpanStub

func path(span tracetest.SpanStub) string {
	if point := value(span.Attributes, extensionPointKey).AsString(); point != "" {
		return point + "/" + value(span.Attributes, pluginKey).AsString()
	}
	return span.Name
}

func (t tree) one(test *testing.T, name string) tracetest.SpanStub {
	test.Helper()
	if len(t[name]) != 1 {
		test.Fatalf("%d spans %s among %v", len(t[name]), name, t.names())
	}
	return t[name][0]
}

func (t tree) names() []string {
	var names []string
	for name := range t {
		names = append(names, name)
	}
	return names
}

func value(attributes []attribute.KeyValue, key attribute.Key) attribute.Value {
	for _, one := range attributes {
		if one.Key == key {
			return one.Value
		}
	}
	return attribute.Value{}
}

// custom is a plugin of somebody else at all extension points; a nil function has nothing to say.
type custom struct {
	preFilter func(context.Context) *fwk.Status
	filter    func(context.Context, string) *fwk.Status
	score     func(context.Context, string) (int64, *fwk.Status)
	reserve   func(context.Context) *fwk.Status
	permit    func(context.Context, *v1.Pod) (*fwk.Status, time.Duration)
}

func (c *custom) Name() string { return "Custom" }

func (c *custom) PreFilter(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if c.preFilter == nil {
		return nil, nil
	}
	return nil, c.preFilter(ctx)
}

func (c *custom) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (c *custom) Filter(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if c.filter == nil {
		return nil
	}
	return c.filter(ctx, node.Node().Name)
}

func (c *custom) Score(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	if c.score == nil {
		return 0, nil
	}
	return c.score(ctx, node.Node().Name)
}

func (c *custom) ScoreExtensions() fwk.ScoreExtensions { return nil }

func (c *custom) Reserve(ctx context.Context, _ fwk.CycleState, _ *v1.Pod, _ string) *fwk.Status {
	if c.reserve == nil {
		return nil
	}
	return c.reserve(ctx)
}

func (c *custom) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {}

func (c *custom) Permit(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	if c.permit == nil {
		return nil, 0
	}
	return c.permit(ctx, pod)
}
