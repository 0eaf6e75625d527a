// Package reconcile makes each reconcile of an operator a span: of controller-runtime's Reconcilers and of sync loops in
// the style of library-go.
//
//	err := ctrl.NewControllerManagedBy(mgr).For(&v1.Shop{}).
//		Complete(reconcile.Trace(reconciler, reconcile.For(mgr.GetClient(), &v1.Shop{})))
//
// A reconcile is a trace of its own, with a link to the span that the object's annotation names (KEP-5915) and, if the
// call is a repetition, a link to the call before. Objects that it creates or changes through a Client, or that are
// given to Carry, lead back to it.
//
// The tracer provider is the caller's. Reconciles never wait for it if spans leave through the SDK's batch processor
// without WithBlocking, which drops spans when its queue is full. The caller also shuts it down, with a deadline.
//
// A panic in this package or in the function that reads the object is recovered, logged once, and turns tracing off for
// that controller. A panic of the reconciler itself passes through.
package reconcile

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	runtimereconcile "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"podtrail/instrumentation/tracecontext"
)

// readTimeout bounds how long the read of the handled object may take. A client with a cache answers at once, but waits
// for the first list of a kind that nothing watches yet.
const readTimeout = time.Second

// Option changes how a controller is traced.
type Option func(*tracing)

// Named sets the name after "reconcile ". The default is the kind that For names in lower case, which is
// controller-runtime's default, or else the name of the reconciler's type or of the function.
func Named(name string) Option {
	return func(t *tracing) { t.name = name }
}

// For has the handled object read from reader, for its attributes and for the link that its annotation asks for. Objects
// have the type of example, of which nothing else is read. Without For or ForRequest nothing is read.
//
// The manager's client reads its cache: give an example of the type that the controller watches. With a reader that has
// no cache, each reconcile sends one request.
func For(reader client.Reader, example client.Object) Option {
	return func(t *tracing) {
		t.kind = kindOf(reader, example)
		t.read = func(ctx context.Context, key any) (client.Object, error) {
			name, ok := namespacedName(key)
			if !ok {
				return nil, errors.New("the request names no object; use reconcile.ForRequest")
			}
			object, ok := example.DeepCopyObject().(client.Object)
			if !ok {
				return nil, errors.New("the example is no object")
			}
			return object, reader.Get(ctx, name, object)
		}
	}
}

// ForRequest is For with a function that reads the object for a request, of the type that the reconciler or the sync loop
// takes.
func ForRequest[request any](read func(context.Context, request) (client.Object, error)) Option {
	return func(t *tracing) {
		t.read = func(ctx context.Context, key any) (client.Object, error) {
			wanted, ok := key.(request)
			if !ok {
				return nil, errors.New("reconcile.ForRequest reads another type of request")
			}
			return read(ctx, wanted)
		}
	}
}

// NotYet names errors that only ask for a repetition, such as library-go's factory.SyntheticRequeueError: their outcome
// is "retry", and the span has no error.
func NotYet(targets ...error) Option {
	return func(t *tracing) { t.notYet = append(t.notYet, targets...) }
}

// WithTracerProvider sets the tracer provider. The default is OpenTelemetry's global one.
func WithTracerProvider(provider trace.TracerProvider) Option {
	return func(t *tracing) { t.tracer = provider.Tracer(scopeName) }
}

// WithPrefix sets the prefix of the annotations. The default is "tracing.k8s.io/".
func WithPrefix(prefix string) Option {
	return func(t *tracing) { t.prefix = prefix }
}

// Trace returns a reconciler that makes each call of reconciler a span.
func Trace[request comparable](reconciler runtimereconcile.TypedReconciler[request], options ...Option) runtimereconcile.TypedReconciler[request] {
	t := newTracing(reconciler, options)
	return runtimereconcile.TypedFunc[request](func(ctx context.Context, r request) (runtimereconcile.Result, error) {
		return t.run(ctx, r, func(ctx context.Context) (runtimereconcile.Result, error) {
			return reconciler.Reconcile(ctx, r)
		})
	})
}

// Sync returns a function that makes each call of sync a span. The key is a string such as "namespace/name", a name of
// client-go or apimachinery, or a library-go SyncContext.
func Sync[key any](sync func(context.Context, key) error, options ...Option) func(context.Context, key) error {
	t := newTracing(sync, options)
	return func(ctx context.Context, k key) error {
		_, err := t.run(ctx, k, func(ctx context.Context) (runtimereconcile.Result, error) {
			return runtimereconcile.Result{}, sync(ctx, k)
		})
		return err
	}
}

// tracing is the state of one traced controller.
type tracing struct {
	name   string
	prefix string
	tracer trace.Tracer
	read   func(context.Context, any) (client.Object, error)
	kind   schema.GroupVersionKind
	notYet []error

	attempts attempts
	off      atomic.Bool
	unread   sync.Once
}

func newTracing(traced any, options []Option) *tracing {
	t := &tracing{prefix: tracecontext.DefaultPrefix}
	for _, option := range options {
		option(t)
	}
	if t.tracer == nil {
		t.tracer = otel.Tracer(scopeName)
	}
	if t.name == "" {
		t.name = strings.ToLower(t.kind.Kind)
	}
	if t.name == "" {
		t.name = typeName(traced)
	}
	return t
}

// run calls work within a span.
func (t *tracing) run(ctx context.Context, key any, work func(context.Context) (runtimereconcile.Result, error)) (runtimereconcile.Result, error) {
	inner, begun := t.begin(ctx, key)
	if begun == nil {
		return work(ctx)
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		// The panic goes on with its stack, because nothing was unwound. There is none if the goroutine ends.
		value := recover()
		begun.end(inner, panicked(value))
		if value != nil {
			panic(value)
		}
	}()
	result, err := work(inner)
	returned = true
	begun.end(inner, t.outcomeOf(inner, result, err))
	return result, err
}

// guard calls work; a panic in it is logged and turns tracing off.
func (t *tracing) guard(ctx context.Context, work func()) {
	defer func() {
		if value := recover(); value != nil && !t.off.Swap(true) {
			logf.FromContext(ctx).Info("Tracing of the controller is turned off after a panic in it", "controller", t.name, "panic", value, "stack", stack())
		}
	}()
	work()
}

// typeName returns the name of a function or of a value's type.
func typeName(traced any) string {
	value := reflect.ValueOf(traced)
	if value.Kind() == reflect.Func && !value.IsNil() {
		name := runtime.FuncForPC(value.Pointer()).Name()
		return strings.TrimSuffix(name[strings.LastIndex(name, "/")+1:], "-fm")
	}
	of := reflect.TypeOf(traced)
	for of != nil && of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of == nil || of.Name() == "" {
		return "controller"
	}
	name, _, _ := strings.Cut(of.Name(), "[")
	return name
}
