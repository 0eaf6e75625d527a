package reconcile

import (
	"context"
	"reflect"
	"sync"

	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"podtrail/instrumentation/tracecontext"
)

// call is one traced call of a reconciler.
type call struct {
	tracing *tracing
	span    trace.Span
	key     any
	subject subject
	// origin is the span that the handled object's annotation names; invalid if it names none.
	origin trace.SpanContext
	// carried is the span that created objects are to carry.
	carried trace.SpanContext
	before  attempt
	// nested is true for a call within a call for the same request.
	nested bool

	mu    sync.Mutex
	ended bool
	known known
}

type callKey struct{}

// current returns the call that ctx belongs to, nil outside of one.
func current(ctx context.Context) *call {
	found, _ := ctx.Value(callKey{}).(*call)
	return found
}

// begin starts the span of a call. It returns nil if the call is not traced.
func (t *tracing) begin(ctx context.Context, key any) (inner context.Context, begun *call) {
	if t.off.Load() {
		return ctx, nil
	}
	t.guard(ctx, func() {
		made := &call{tracing: t, key: identity(key)}
		object, found := t.object(ctx, key)
		made.subject = subjectOf(key, object, t.kind)
		started := made.start(ctx, object, found)
		inner, begun = context.WithValue(started, callKey{}, made), made
	})
	return inner, begun
}

// object reads the handled object; found is false if it is not there, or was not read.
func (t *tracing) object(ctx context.Context, key any) (object client.Object, found bool) {
	if given, ok := key.(client.Object); ok && t.read == nil {
		return given, !isNil(given)
	}
	if t.read == nil {
		return nil, false
	}
	limited, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	object, err := t.read(limited, key)
	if err == nil && !isNil(object) {
		return object, true
	}
	if err != nil && !apierrors.IsNotFound(err) {
		counts.extracted(t.name, t.kind.Kind, "error")
		t.unread.Do(func() {
			logf.FromContext(ctx).Info("The object could not be read for its trace context; said once", "controller", t.name, "reason", messageOf(err))
		})
	}
	return nil, false
}

// start starts the span: a child within a call for the same request, else a trace of its own.
func (c *call) start(ctx context.Context, object client.Object, found bool) context.Context {
	t := c.tracing
	attributes := append(c.subject.attributes(), controllerKey.String(cut(t.name, maxCharacters)))
	if id := reconcileID(ctx); id != "" {
		attributes = append(attributes, idKey.String(id))
	}
	outer := current(ctx)
	if outer != nil && outer.runs() && outer.key == c.key {
		c.nested, c.origin = true, outer.origin
		ctx, c.span = t.tracer.Start(ctx, spanPrefix+t.name, trace.WithAttributes(attributes...))
		c.carried = carriedBy(c.span, c.origin)
		return ctx
	}
	var links []trace.Link
	if found {
		link, result := tracecontext.Link(object.GetAnnotations(), t.prefix)
		counts.extracted(t.name, c.subject.kind.Kind, string(result))
		if result == tracecontext.Success {
			c.origin = link.SpanContext
			links = append(links, link)
		}
	}
	c.before = t.attempts.take(c.key, c.subject.uid)
	if c.before.number > 0 {
		attributes = append(attributes, retryKey.Int(c.before.number))
	} else {
		attributes = append(attributes, retryKey.Int(0))
	}
	if c.before.span.IsValid() {
		link := trace.Link{SpanContext: c.before.span}
		link.Attributes = append(link.Attributes, linkTypeKey.String(previousAttempt))
		links = append(links, link)
	}
	ctx, c.span = t.tracer.Start(
		ctx, spanPrefix+t.name,
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...), trace.WithAttributes(attributes...),
	)
	c.carried = carriedBy(c.span, c.origin)
	return ctx
}

// carriedBy is what created objects carry: the call's span, or what the handled object carries if that is not sampled.
func carriedBy(span trace.Span, origin trace.SpanContext) trace.SpanContext {
	if span.IsRecording() || !origin.IsValid() {
		return span.SpanContext()
	}
	return origin
}

// end writes the outcome and ends the span.
func (c *call) end(ctx context.Context, told outcome) {
	t := c.tracing
	c.mu.Lock()
	c.ended = true
	c.known = known{}
	c.mu.Unlock()
	t.guard(ctx, func() {
		defer c.span.End()
		told.write(c.span)
		if told.again && !c.nested {
			again := attempt{uid: c.subject.uid, number: c.before.number + 1}
			if c.span.IsRecording() {
				again.span = c.span.SpanContext()
			}
			t.attempts.remember(c.key, again)
		}
	})
}

func (c *call) runs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.ended
}

func isNil(object client.Object) bool {
	if object == nil {
		return true
	}
	value := reflect.ValueOf(object)
	return value.Kind() == reflect.Pointer && value.IsNil()
}
