package kubescheduler

import (
	"context"
	"net/http"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"

	"go.opentelemetry.io/otel/trace"

	"podtrail/instrumentation/tracecontext"
)

// annotatingHandle gives a Bind plugin clients that write the attempt's context into the Pod: the API server merges the
// annotations of a Binding into the Pod it binds. The request has the context as a header, too.
type annotatingHandle struct {
	fwk.Handle
	client kubernetes.Interface
	cacher fwk.APICacher
}

func newAnnotatingHandle(i *instrumentation, inner fwk.Handle) (*annotatingHandle, error) {
	client := inner.ClientSet()
	if config := inner.KubeConfig(); config != nil && client != nil {
		tracing := rest.CopyConfig(config)
		tracing.Wrap(func(next http.RoundTripper) http.RoundTripper { return headerWriter{next} })
		tracing.RateLimiter = client.CoreV1().RESTClient().GetRateLimiter() // one limit for both clients
		made, err := kubernetes.NewForConfig(tracing)
		if err != nil {
			return nil, err
		}
		client = made
	}
	handle := &annotatingHandle{Handle: inner, client: &annotatingClient{client, i}}
	if cacher := inner.APICacher(); cacher != nil {
		handle.cacher = &annotatingCacher{cacher, i}
	}
	return handle, nil
}

func (h *annotatingHandle) ClientSet() kubernetes.Interface { return h.client }
func (h *annotatingHandle) APICacher() fwk.APICacher        { return h.cacher }

type annotatingClient struct {
	kubernetes.Interface
	i *instrumentation
}

func (c *annotatingClient) CoreV1() corev1.CoreV1Interface {
	return &annotatingCore{c.Interface.CoreV1(), c.i}
}

type annotatingCore struct {
	corev1.CoreV1Interface
	i *instrumentation
}

func (c *annotatingCore) Pods(namespace string) corev1.PodInterface {
	return &annotatingPods{c.CoreV1Interface.Pods(namespace), c.i}
}

type annotatingPods struct {
	corev1.PodInterface
	i *instrumentation
}

func (c *annotatingPods) Bind(ctx context.Context, binding *v1.Binding, options metav1.CreateOptions) error {
	c.i.annotate(binding)
	return c.PodInterface.Bind(ctx, binding, options)
}

type annotatingCacher struct {
	fwk.APICacher
	i *instrumentation
}

func (c *annotatingCacher) BindPod(binding *v1.Binding) (<-chan error, error) {
	c.i.annotate(binding)
	return c.APICacher.BindPod(binding)
}

// annotate writes the context of the Pod's attempt into a binding.
func (i *instrumentation) annotate(binding *v1.Binding) {
	defer i.recovered()
	a := i.of(binding.UID)
	if a == nil || !i.propagates {
		return
	}
	changes, result := tracecontext.Inject(a.annotations, a.root.SpanContext(), tracecontext.DefaultPrefix)
	i.counters.injected(a.profile, result)
	for key, value := range changes {
		metav1.SetMetaDataAnnotation(&binding.ObjectMeta, key, value)
	}
}

// headerWriter adds the W3C header of the span in a request's context, so that the API server's spans join the attempt.
type headerWriter struct {
	next http.RoundTripper
}

func (w headerWriter) RoundTrip(request *http.Request) (*http.Response, error) {
	span := trace.SpanContextFromContext(request.Context())
	if span.IsValid() {
		request = request.Clone(request.Context())
		request.Header.Set("Traceparent", tracecontext.Traceparent(span))
		if state := span.TraceState().String(); state != "" {
			request.Header.Set("Tracestate", state)
		}
	}
	return w.next.RoundTrip(request)
}

// bindingExtender is an extender that binds Pods itself: the phase bind without a plugin.
type bindingExtender struct {
	fwk.Extender
	i *instrumentation
}

func (e *bindingExtender) Bind(binding *v1.Binding) error {
	e.i.annotate(binding)
	phase := e.begin(binding)
	err := e.Extender.Bind(binding)
	if phase != nil {
		phase.end(fwk.AsStatus(err))
	}
	return err
}

func (e *bindingExtender) begin(binding *v1.Binding) (started *phase) {
	defer e.i.recovered()
	a := e.i.of(binding.UID)
	if a == nil || !a.recording {
		return nil
	}
	started = newPhase(context.Background(), a, bind, a.parent(true), time.Now())
	started.span.SetAttributes(selectedNodeKey.String(binding.Target.Name))
	return started
}
